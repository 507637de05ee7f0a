"""Thoughts of models stay in the log: nobody but the model that had them sees them, and an edit leaves them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.rules.request import Echo, Span
from tests.log.service.thinking_talk import parts_of, think
from tests.stores.service.canary_talk import holding
from tests.turns.service.tool_talk import TOOLS, call, calls, events_of, results
from tests.world import Tools, World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Store
    from tests.fakes import FakeClock, ScriptedModel

WORD = "xylograph"
CODE = f"```py\nfirst = '{WORD}'\nsecond = 2\nthird = 3\n```"


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    """A world in which a model has thought of a word, and is sent its thoughts for ever."""
    model.echo = Echo(Span.EVER, calls_only=False)
    world = await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))
    think(world, f"Of the {WORD}:\n{CODE}", "A woodcut.", parts=parts_of(f"Of the {WORD}"))
    await world.say("What is it?")
    return world


def is_told(world: World) -> bool:
    """Return whether the newest request of all has the word."""
    return WORD in repr(world.model.requests[-1])


async def test_the_model_that_thought_sees_its_thoughts_and_another_one_does_not(world: World) -> None:
    await world.say("Go on")
    assert is_told(world)
    await world.told("/model openai/gpt-5.4-mini")
    await world.say("Who are you?")
    assert "A woodcut." in repr(world.model.requests[-1])
    assert not is_told(world)


async def test_neither_a_search_in_the_log_nor_a_look_at_another_thread_tells_a_model(world: World) -> None:
    await world.told("/thread new")
    calls(world, call("read_thread", {"id": 1}), call("search_history", {"query": "woodcut"}, "c2"))
    await events_of(world, "What was there?")
    assert all("woodcut" in result and WORD not in result for result in results(world))
    calls(world, call("search_history", {"query": WORD}))
    await events_of(world, "And that?")
    assert results(world)[-1].startswith("No message contains all of these words.")


@pytest.mark.parametrize("line", ["/context compact", "/context save about it"])
async def test_a_summary_is_not_made_of_thoughts(world: World, line: str) -> None:
    for text in ("Go on", "Is it old?"):
        await world.say(text)
    asked = len(world.model.requests)
    world.model.say("They speak of prints.")
    await world.told(line)
    assert [WORD in repr(request) for request in world.model.requests[asked:]] == [False]
    assert "A woodcut." in repr(world.model.requests[-1])
    assert holding(world.folder, WORD) == ["chorus.db"]


async def test_the_code_in_a_thought_is_not_remembered(world: World) -> None:
    assert "#1" not in await world.told("/memory list")
    world.model.say(CODE)
    await world.say("Show it")
    assert "#1" in await world.told("/memory list")


async def test_a_reworded_reply_has_no_thoughts_and_its_model_is_not_sent_those_of_the_old_one(world: World) -> None:
    def reword(path: Path) -> None:
        path.write_text(path.read_text(encoding="utf-8").replace("A woodcut.", "A print."), encoding="utf-8")

    world.editor.enqueue(reword)
    await world.told("/context edit")
    await world.say("Go on")
    assert ("assistant", "A print.") in world.asked()
    assert not is_told(world)
    query = (
        "SELECT content, reasoning, thought_parts, thought_seconds, thought_tokens FROM messages "
        "WHERE content IN ('A woodcut.', 'A print.') ORDER BY id"
    )
    rows = await world.store.read(lambda connection: connection.execute(query).fetchall())
    assert [[value is None for value in row] for row in rows] == [[False] * 5, [False, *[True] * 4]]
    assert "[thought for" not in (await world.told("/thread history")).partition("A print.")[2]
    await world.told("/undo")
    await world.told("/undo")
    await world.say("Go on")
    assert is_told(world)
