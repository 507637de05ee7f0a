"""Thoughts of models in a search: found on request only, and marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rows import message_rows, search_index
from chorus_cli.log.rows.search_index import COUNTED, Scope
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.log.rules.wording import local
from tests.fakes import START
from tests.imports.service.foreign_talk import ROME, WHERE, taken_in
from tests.log.service.thinking_talk import parts_of, think

if TYPE_CHECKING:
    import sqlite3

    from tests.world import World

EVERYWHERE = Scope(None, None, 10, with_thoughts=True)


async def found(world: World, words: str, scope: Scope = EVERYWHERE) -> list[tuple[int, bool]]:
    """Return the id of each message found, and whether it was found by the thought before it."""
    findings = await world.search.find(words, scope, lambda _told: None)
    return [(match.message.id, match.is_thought) for match in findings.matches]


@pytest.fixture
async def thoughtful(world: World) -> World:
    """Two turns: in the first, question, thought and reply have the word, in the second one the thought alone."""
    think(world, "A ring of gold, for Gandalf.", "The ring.", parts=parts_of("A secret ring"))
    await world.say("Which ring?")
    think(world, "Not the Ring → but 金 Sauron?", "Nothing.")
    await world.say("What else?")
    return world


async def test_a_thought_is_found_on_request_only_and_beside_its_reply(thoughtful: World) -> None:
    assert await found(thoughtful, "ring") == [(4, True), (2, False), (2, True), (1, False)]
    assert await found(thoughtful, "ring", Scope(None, None, 10)) == [(2, False), (1, False)]
    for words in ("gandalf", "sauron", "金"):
        assert await found(thoughtful, words, Scope(None, None, 10)) == []


@pytest.mark.parametrize(
    ("words", "ids"),
    [("gold ring", [2]), ("ring sauron", [4]), ('"but 金"', [4]), ("gand*", [2]), ("→", [4]), ("→ sauron", [4]),
     ("→ gold", []), ("金", [4]), ("which gold", []), ("secret", [])],
)  # fmt: skip
async def test_all_words_must_be_in_the_readable_thought(thoughtful: World, words: str, ids: list[int]) -> None:
    assert await found(thoughtful, words) == [(id_, True) for id_ in ids]


async def test_the_result_says_that_it_is_a_thought(thoughtful: World) -> None:
    when = local(thoughtful.clock.now())
    assert await thoughtful.told("/search gandalf --thoughts") == (
        f"#2  {when}  chorus, thread #1  [thought]\nchorus: A ring of gold, for «Gandalf»."
    )
    findings = await thoughtful.search.find("gandalf", EVERYWHERE, lambda _told: None)
    assert [match.as_json()["in_thoughts"] for match in findings.matches] == [True]


async def test_where_only_beginnings_would_be_found_in_a_thought_that_is_said(thoughtful: World) -> None:
    assert "gand* finds words that begin so." in await thoughtful.told("/search gand --thoughts")
    assert await thoughtful.told("/search gand") == "Nothing was found."


async def test_the_limits_of_a_search_hold_for_thoughts(thoughtful: World) -> None:
    assert await found(thoughtful, "ring", Scope(None, None, 10, 2, with_thoughts=True)) == [(4, True)]
    assert await found(thoughtful, "ring", Scope(None, "frodo", 10, with_thoughts=True)) == []
    assert await found(thoughtful, "ring", Scope(thoughtful.clock.now(), None, 10, with_thoughts=True)) == []
    assert await found(thoughtful, "ring", Scope(None, None, 2, with_thoughts=True)) == [(4, True), (2, False)]
    findings = await thoughtful.search.find("ring", Scope(None, None, 2, with_thoughts=True), lambda _told: None)
    assert (findings.more, findings.more_is_least) == (2, False)


async def test_a_thought_of_an_undone_import_or_a_purged_message_is_not_found(thoughtful: World) -> None:
    await taken_in(thoughtful, ROME, {**WHERE, "reasoning": "Over the Alps."})
    assert await found(thoughtful, "alps") == [(5, True)]
    await thoughtful.told("/context undo")
    assert await found(thoughtful, "alps") == []
    await (await thoughtful.asked_back("/purge message 4")).confirmed()
    assert await found(thoughtful, "sauron") == []


async def test_many_thoughts_are_read_page_by_page_and_counted_no_further_than_needed(thoughtful: World) -> None:
    def put(connection: sqlite3.Connection) -> None:
        long = f"a wizard {'word ' * 25_000}"
        for number in range(COUNTED + 30):
            text = long if number < 20 else "a wizard"
            content = MessageContent(1, Role.ASSISTANT, "Hm.", START, 1, reasoning=text)
            message_rows.insert_row(connection, "chorus", content)

    await thoughtful.store.write(put)
    first = await thoughtful.store.read(search_index.page_of_thoughts, EVERYWHERE, 24)
    assert len(first.texts) == 8
    assert first.before == min(first.texts)
    findings = await thoughtful.search.find("wizard", EVERYWHERE, lambda _told: None)
    assert [match.message.id for match in findings.matches] == list(range(COUNTED + 34, COUNTED + 24, -1))
    assert (findings.more, findings.more_is_least) == (COUNTED, True)
