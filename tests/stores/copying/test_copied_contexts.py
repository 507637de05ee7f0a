"""Whatever a user has said, done and taken back: in a copy of the log each context is the same."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.storage.port import Engine, OpenConnection
from chorus_cli.storage.store import Store
from chorus_cli.stores.copying.log_copy import PART_MESSAGES, LogCopy
from chorus_cli.stores.copying.log_copy import copied as rows_copied
from chorus_cli.stores.rules.references import THREADS
from tests.amount import examples
from tests.fakes import START
from tests.log.service.test_journal_stateful import ACTS, ActingUser
from tests.log.service.user_story import Shown, UserStory
from tests.storage.database import Quick, quick
from tests.stores.copying.copies import contents, contents_of
from tests.world import World, built

PARTS = st.sampled_from([1, 4, PART_MESSAGES])
_LIMIT_TOKENS = 100_000
_LATER = START + timedelta(milliseconds=1)
"""When the other machine begins: no two open a thread in the same microsecond."""


@contextmanager
def acting(data: st.DataObject, acts: int, start: datetime = START) -> Iterator[ActingUser]:
    user = ActingUser(start)
    try:
        user.begin(data)
        for _ in range(acts):
            data.draw(st.sampled_from(ACTS), "act")(user, data)
        yield user
    finally:
        user.story.end()


def copied(story: UserStory, target: Engine, part_messages: int = PART_MESSAGES) -> Mapping[int, int]:
    """Copy the log of a story, and return the threads that its threads are there."""

    def work(here: OpenConnection) -> Mapping[int, int]:
        with closing(target.open()) as there:
            copying = LogCopy(here, there, part_messages=part_messages)
            copying.run()
            return copying.ids[THREADS]

    return story.run(story.store.write_in_steps(work))


def seen_in(log: Engine, user: ActingUser, slug: str, threads: list[int]) -> dict[int, Shown]:
    """Return what is in context in threads of another log."""
    story, store = user.story, Store(log)
    before, mine = story.world, story.run(_opened(story, store))
    try:
        story.world = mine
        return story.seen(slug, threads)
    finally:
        story.world = before
        story.run(store.close())


async def _opened(story: UserStory, store: Store) -> World:
    await store.open()
    return await built(story.folder, store, story.clock, story.model, _LIMIT_TOKENS)


def compare(user: ActingUser, log: Engine, threads: Mapping[int, int]) -> None:
    # A process that made requests holds the beginnings of their windows for a while.
    user.story.start_again()
    for slug, persona in user.personas.items():
        here = user.story.seen(slug, persona.threads)
        there = seen_in(log, user, slug, [threads[each] for each in persona.threads])
        assert list(there.values()) == list(here.values())


@pytest.mark.timeout(900)  # only for finding the shortest story that fails
@examples(20)
@given(st.data())
def test_a_log_on_a_server_and_a_file_made_of_it_have_every_row(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, acting(data, 20) as user:
        server, back = quick(Path(folder) / "server.db"), Quick(Path(folder) / "back.db")
        threads = copied(user.story, server, data.draw(PARTS, "messages of a part"))
        here = user.story.run(user.story.store.read(contents_of))
        assert contents(server) == here
        rows_copied(server, back)
        assert contents(back) == here
        compare(user, back, threads)
        compare(user, server, threads)


@pytest.mark.timeout(900)
@examples(20)
@given(st.data())
def test_a_log_that_joins_another_keeps_its_contexts_and_leaves_those_of_the_other(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, acting(data, 20) as user, acting(data, 5, _LATER) as other:
        server = quick(Path(folder) / "server.db")
        own = copied(other.story, server)
        threads = copied(user.story, server, data.draw(PARTS, "messages of a part"))
        compare(user, server, threads)
        compare(other, server, own)
        joined = contents(server)
        copied(user.story, server)
        copied(other.story, server)
        assert contents(server) == joined
