"""``/thoughts``: those of the newest reply that has any."""

from __future__ import annotations

from pathlib import Path

from chorus_cli.models.rules.costs import THOUGHT
from chorus_cli.models.rules.events import ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.turns.service.tool_talk import TOOLS, call
from tests.world import Tools, World, built

NOTHING = "No reply in this thread has thoughts."
HIDDEN = "The provider does not show the thoughts before the newest reply."


async def answered(world: World, thought: str, text: str = "Do you want my answer?") -> None:
    """Have a question answered after some thoughts, or by a model that keeps them to itself."""
    thoughts = [ReasoningDelta(thought)] if thought else []
    world.model.enqueue(*thoughts, TextDelta("Yes."), ReplyEnd("stop", {THOUGHT: 640}))
    await world.say(text)


def told(*thoughts: str) -> str:
    return "\n\n".join(f"thought for 0.1 s, 640 tokens\n{thought}" for thought in thoughts)


async def test_the_thoughts_of_the_newest_reply_that_has_any_are_printed_whole(world: World) -> None:
    assert await world.told("/thoughts") == NOTHING
    await answered(world, "")
    assert await world.told("/thoughts") == HIDDEN
    await answered(world, "First.")
    await answered(world, "Second,\n\nand more.\n")
    for number in range(40):
        world.model.enqueue(TextDelta("Yes."), ReplyEnd("stop"))
        await world.say(f"Number {number}?")
    assert await world.told("/thoughts") == told("Second,\n\nand more.")
    await answered(world, "")
    assert await world.told("/thoughts") == HIDDEN


async def test_each_round_of_a_reply_has_thoughts_of_its_own(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel
) -> None:
    tooled = await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))
    called = tuple(call("echo", {"text": "a"}, f"c{number}") for number in range(12))
    tooled.model.enqueue(ReasoningDelta("I must look."), ReplyEnd("tool_calls", {THOUGHT: 640}, called))
    await answered(tooled, "Gold!")
    assert await tooled.told("/thoughts") == told("I must look.", "Gold!")


async def test_what_was_taken_back_or_asked_again_or_cleared_is_not_printed(world: World) -> None:
    await answered(world, "First.")
    await answered(world, "Second.")
    world.model.enqueue(ReasoningDelta("Third."), TextDelta("No."), ReplyEnd("stop", {THOUGHT: 640}))
    _ = [event async for event in world.conversation.retry(world.current.target())]
    assert await world.told("/thoughts") == told("Third.")
    await world.told("/undo")
    assert await world.told("/thoughts") == told("Second.")
    await world.told("/undo")
    assert await world.told("/thoughts") == told("First.")
    await world.told("/thread fork")
    assert await world.told("/thoughts") == told("First.")
    await world.told("/new")
    assert await world.told("/thoughts") == NOTHING
