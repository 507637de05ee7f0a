"""While requests begin alike for a provider's cache, whatever shows or changes the context begins there too."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.services.world import World

_EARLY, _LATE = ["early", "ok"], ["late", "ok"]


@pytest.fixture
async def world_at_the_edge(world: World) -> World:
    """An early turn has left the window of eight hours by the clock, but not that of the last request."""
    await world.say("early")
    world.clock.advance(timedelta(hours=7, minutes=59))
    await world.say("late")
    world.clock.advance(timedelta(minutes=2))
    return world


async def _asked_after(world: World, line: str = "") -> list[str]:
    if line:
        await world.told(line)
    await world.say("and now?")
    return [content.split("\n\n")[-1] for _, content in world.asked()]


async def test_a_request_begins_where_the_last_one_did(world_at_the_edge: World) -> None:
    assert (await _asked_after(world_at_the_edge))[:4] == [*_EARLY, *_LATE]


@pytest.mark.parametrize("line", ["/new", "/context 4h", "/undo"])
async def test_whatever_is_done_to_the_context_lets_the_window_slide(world_at_the_edge: World, line: str) -> None:
    assert "early" not in await _asked_after(world_at_the_edge, line)


async def test_five_minutes_of_silence_let_the_window_slide(world_at_the_edge: World) -> None:
    world_at_the_edge.clock.advance(timedelta(minutes=4))
    assert "early" not in await _asked_after(world_at_the_edge)


async def test_another_reply_is_asked_for_with_what_the_first_one_saw(world_at_the_edge: World) -> None:
    async for _ in world_at_the_edge.conversation.retry(world_at_the_edge.focus.place()):
        pass
    assert await world_at_the_edge.seen() == [*_EARLY, *_LATE]


async def test_the_editor_shows_what_would_be_sent(world_at_the_edge: World) -> None:
    commands = world_at_the_edge.commands
    opened = await commands.context_editing.open(world_at_the_edge.focus.place())
    assert [entry.block.body for entry in opened.sheet.context] == await world_at_the_edge.seen() == [*_EARLY, *_LATE]


async def test_a_session_holds_what_would_be_sent(world_at_the_edge: World) -> None:
    world_at_the_edge.model.say("A summary.")
    assert (await world_at_the_edge.told("/context save edge")).startswith("Saved session")
    await world_at_the_edge.told("/new")
    await world_at_the_edge.told("/context restore 2026-02-12_edge")
    assert await world_at_the_edge.seen() == [*_EARLY, *_LATE]
