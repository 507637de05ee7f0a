"""Searching the log: the index is brought up to date first, and mended if need be."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import CommandError
from chorus_cli.log.rows import search_index
from chorus_cli.log.rows.search_index import BATCH_ROWS, Scope
from chorus_cli.log.rules.messages import Status
from chorus_cli.recall.service import Search
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from tests.world import World

RENEWED = "The index of the search was damaged and is made again from the log; no message is concerned."
EVERYWHERE = Scope(None, None, 10)


async def found(search: Search, typed: str, tell: Callable[[str], None] | None = None) -> list[int]:
    findings = await search.find(typed, EVERYWHERE, tell or nothing)
    return [match.message.id for match in findings.matches]


def nothing(text: str) -> None:
    raise AssertionError(text)


def put(connection: sqlite3.Connection, contents: Iterable[str]) -> None:
    connection.executemany(
        "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
        "VALUES ('gone', 9, 'user', ?, '2026-02-12T14:30:00.000000Z')",
        [(content,) for content in contents],
    )


class SlowClock(FakeClock):
    """A clock on which a second and a half goes by between two looks."""

    def monotonic(self) -> float:
        self._monotonic += 1.5
        return self._monotonic


async def test_what_was_just_said_is_found_and_a_row_put_in_by_plain_sql_too(world: World) -> None:
    world.model.say("Three rings for the elves.")
    await world.say("Tell me of the ring")
    await world.store.write(put, ["a ring by hand"])
    assert await found(world.search, "ring") == [3, 1]
    assert await found(world.search, "rings elves") == [2]


async def test_a_reply_that_is_still_being_written_is_found_when_it_has_ended(world: World) -> None:
    gate = asyncio.Event()
    world.model.enqueue(gate)
    turn = asyncio.ensure_future(world.say("Go on"))
    await world.log_row_with_status(1, Status.STREAMING)
    assert await found(world.search, "go") == [1]
    gate.set()
    await turn
    await world.store.write(
        lambda connection: connection.execute("UPDATE messages SET content = 'went on' WHERE id = 2")
    )
    assert await found(world.search, "went") == [2]


async def test_an_undone_turn_and_a_replaced_reply_are_found_and_marked(world: World) -> None:
    world.model.say("the first answer")
    await world.say("a question")
    world.model.say("the second answer")
    async for _ in world.conversation.retry(world.current.target()):
        pass
    await world.say("another question")
    await world.told("/undo")
    findings = await world.search.find("question", EVERYWHERE, nothing)
    assert [(match.message.content, match.taken_back) for match in findings.matches] == [
        ("another question", True),
        ("a question", False),
    ]
    findings = await world.search.find("first answer", EVERYWHERE, nothing)
    assert [match.taken_back for match in findings.matches] == [True]


async def test_findings_as_json_hold_the_message_and_its_excerpt(world: World) -> None:
    await world.say("Where is the ring?")
    value = (await world.search.find("ring", EVERYWHERE, nothing)).as_json()
    assert value["more"] == 0
    assert value["more_is_least"] is False
    results = value["results"]
    assert isinstance(results, list)
    [result] = results
    assert (result["id"], result["excerpt"], result["taken_back"]) == (1, "Where is the «ring»?", False)


async def test_a_long_log_is_indexed_in_batches_and_how_far_it_is_told_after_a_second(store: Store) -> None:
    await store.write(put, ["row"] * (2 * BATCH_ROWS + 1))
    told: list[str] = []
    findings = await Search(store, SlowClock()).find("row", EVERYWHERE, told.append)
    assert told == ["Indexing the log: 49% done.", "Indexing the log: 99% done."]
    assert (findings.more, findings.more_is_least) == (1000, True)


async def test_in_the_background_there_is_a_pause_after_each_batch_and_nothing_is_told(
    store: Store, clock: FakeClock
) -> None:
    await store.write(put, ["row"] * (BATCH_ROWS + 1))
    await Search(store, clock).catch_up()
    assert len(clock.slept) == 2
    assert (await store.read(search_index.progress)).is_whole


async def test_the_index_is_kept_up_to_date_until_it_is_stopped(store: Store, clock: FakeClock) -> None:
    storage = asyncio.ensure_future(Search(store, clock).keep_up())
    for number in range(3):
        await store.write(put, [f"row {number}"])
        for _ in range(5000):
            if (await store.read(search_index.progress)).is_whole:
                break
            await asyncio.sleep(0.001)
    storage.cancel()
    with suppress(asyncio.CancelledError):
        await storage
    assert (await store.read(search_index.progress)).through == 3


@pytest.mark.parametrize("typed", ["ring", "ring sword"])
async def test_a_damaged_index_is_made_anew_while_it_is_searched(world: World, typed: str) -> None:
    await world.store.write(put, ["a ring and a sword"] * 30)
    assert len(await found(world.search, "ring")) == 10
    await world.store.write(lambda connection: connection.execute("DELETE FROM message_words_data WHERE id > 10"))
    await world.store.write(put, ["a ring and a sword"])
    told: list[str] = []
    assert (await found(world.search, typed, told.append))[0] == 31
    assert told == [RENEWED]


async def test_a_message_is_stored_and_answered_whatever_the_index_is_like(world: World) -> None:
    await world.store.write(lambda connection: connection.execute("DROP TABLE message_words"))
    assert (await world.say("Hello")).error is None
    assert await world.seen() == ["Hello", "ok"]


async def test_an_index_that_cannot_be_made_anew_gets_a_sentence(world: World) -> None:
    await world.store.write(put, ["ring"])
    await found(world.search, "ring")
    await world.store.write(
        lambda connection: connection.execute(
            "CREATE TEMP TRIGGER vandal AFTER INSERT ON main.message_words_docsize BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    )
    await world.store.write(put, ["ring"])
    told: list[str] = []
    assert await found(world.search, "ring", told.append) == []
    assert "damaged" in told[0]


async def test_what_is_indexed_is_searched_also_while_another_program_writes(world: World) -> None:
    await world.store.write(put, ["an old ring"])
    await found(world.search, "ring")
    await world.store.write(put, ["a new ring"])
    path = world.folder / "chorus.db"
    impatient, other = Store(path, busy_timeout_seconds=0.01), Store(path)
    await impatient.open()
    await other.open()
    told: list[str] = []

    def hold(connection: sqlite3.Connection) -> list[int]:
        connection.execute("UPDATE messages SET model = model")
        return asyncio.run_coroutine_threadsafe(
            found(Search(impatient, world.clock), "ring", told.append), loop
        ).result(10)

    loop = asyncio.get_running_loop()
    assert await other.write(hold) == [1]
    await impatient.close()
    await other.close()
    assert len(told) == 1
    assert "The newest messages may be missing" in told[0]


async def test_nothing_to_look_for_is_refused(world: World) -> None:
    with pytest.raises(CommandError, match="nothing to look for"):
        await found(world.search, '""')
