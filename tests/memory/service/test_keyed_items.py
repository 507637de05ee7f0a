"""Items with keys are sent when a message has one of them, and not otherwise."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chorus_cli.memory.rules.items import ItemType
from tests.world import World

LIGHTHOUSE = "Keys: lighthouse, beacon; with: night, storm\nIt was built in 1820."


@pytest.fixture
async def keyed(world: World) -> World:
    """A world in which item #1 has keys, and #2 has not."""
    await world.services.memory.remember("chorus", ItemType.PRD_SECTION, LIGHTHOUSE)
    await world.services.memory.remember("chorus", ItemType.PRD_SECTION, "The harbour freezes.")
    return world


async def recalled(world: World, question: str, reply: str = "So.") -> bool:
    """Ask, and return whether item #1 went with the question."""
    world.model.say(reply)
    await world.say(question)
    asked = (await world.log())[-2]
    return "From memory:" in asked.preamble and "#1 PRD_SECTION" in asked.preamble


@pytest.mark.parametrize(
    ("question", "is_sent"),
    [
        ("The lighthouse at night", True),
        ("BEACONS in a storm", True),
        ("The lighthouse", False),
        ("The night", False),
        ("It was built in 1820", False),
        ("tell me of #1", True),
    ],
)
async def test_an_item_is_called_by_its_keys_alone_or_its_number(keyed: World, question: str, *, is_sent: bool) -> None:
    assert await recalled(keyed, question) is is_sent


async def test_the_reply_before_calls_it_too(keyed: World) -> None:
    assert not await recalled(keyed, "hello", "At night the lighthouse shines.")
    assert await recalled(keyed, "does it?")
    assert not await recalled(keyed, "the lighthouse at night"), "it is in the request already"


@pytest.mark.parametrize("flash", [False, True])
async def test_it_is_called_in_every_tier(keyed: World, *, flash: bool) -> None:
    keyed.clock.advance(timedelta(days=60))
    if flash:
        await keyed.told("/memory flash --force")
        assert "ARCHIVED" in await keyed.told("/memory show 1")
    assert await recalled(keyed, "The lighthouse at night")


async def test_a_forgotten_one_is_not_called(keyed: World) -> None:
    await keyed.services.memory.forget("chorus", 1)
    assert not await recalled(keyed, "The lighthouse at night")


async def test_why_names_the_keys(keyed: World) -> None:
    assert "sent when a message has one of its keys" in await keyed.told("/why")


async def test_the_question_goes_before_the_reply_where_room_is_short(world: World) -> None:
    for number in range(1, 41):
        text = f"Keys: k{number:02}\n{'word ' * 40}{number}"
        await world.services.memory.remember("chorus", ItemType.PRD_SECTION, text)
    world.model.say(" ".join(f"k{number:02}" for number in range(1, 40)))
    await world.say("hello")
    world.model.say("So.")
    await world.say("k40")
    preamble = (await world.log())[-2].preamble
    assert "Keys: k40" in preamble
    assert preamble.count("Keys:") < 40
