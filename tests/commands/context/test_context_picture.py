"""``/context`` and ``/why``: the window as a picture, the request part by part."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.services.world import World


async def test_context_draws_the_window_with_its_boundary_and_the_parts_with_bars(world: World) -> None:
    await world.say("One")
    world.clock.advance(timedelta(hours=2))
    await world.told("/new")
    world.clock.advance(timedelta(hours=1))
    await world.say("Two")
    text = await world.told("/context")
    assert text.startswith("Context window: 8h (default: 8h)\nMessages since ")
    assert "A boundary is nearer and is what binds: new conversation of " in text
    (line,) = [line for line in text.splitlines() if "│" in line and "·" in line]
    assert line.count("█") == 2
    assert line.index("█") < line.index("│") < line.rindex("█")
    assert "█ 2 messages in 10 m   │ new conversation, " in text
    assert [word for word in ("system prompt", "documents", "messages", "together") if f"\n{word} " in text] == [
        "system prompt",
        "documents",
        "messages",
        "together",
    ]
    assert "the mark is at 80%" in text


async def test_an_empty_window_is_a_line_without_blocks(world: World) -> None:
    text = await world.told("/context")
    assert "·" * 48 in text
    assert "█ " not in text


async def test_why_gives_the_reason_for_each_part_and_for_what_is_left_out(world: World) -> None:
    await world.say("One")
    assert "Nothing is left out." in await world.told("/why")
    await world.told("/new")
    text = await world.told("/context why")
    assert "always sent" in text
    assert "0 in the 8h window since the boundary" in text
    assert "before the boundary  2 " in text
