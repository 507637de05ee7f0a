"""``/context at``: an earlier view, by the journal."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.world import World


@pytest.fixture
async def day(world: World) -> World:
    """At 0 h: One. At 2 h: a window of 4 h. At 3 h: Two. At 4 h: /new. At 5 h: Three. At 6 h: its undo. Now: 7 h."""
    await world.say("One")
    world.clock.advance(timedelta(hours=2))
    await world.told("/context 4h")
    world.clock.advance(timedelta(hours=1))
    await world.say("Two")
    world.clock.advance(timedelta(hours=1))
    await world.told("/new")
    world.clock.advance(timedelta(hours=1))
    await world.say("Three")
    world.clock.advance(timedelta(hours=1))
    await world.told("/context undo")
    world.clock.advance(timedelta(hours=1))
    return world


@pytest.mark.parametrize(
    ("time", "hours", "seen"),
    [
        ("6h", 8, ["One"]),
        ("3h 30m", 4, ["One", "Two"]),
        ("2h 30m", 4, []),
        ("1h 30m", 4, ["Three"]),
        ("30m", 4, ["Two", "Three"]),
        ("20h", 8, []),
    ],
)
async def test_the_view_of_a_moment_is_what_it_was(day: World, time: str, hours: int, seen: list[str]) -> None:
    text = await day.told(f"/context at {time}")
    assert f"with a window of {hours}h: {2 * len(seen)} messages, ~" in text
    assert [word for word in ("One", "Two", "Three") if f"Human   {word}" in text] == seen
    assert "today's" in text


async def test_looking_back_changes_nothing(day: World) -> None:
    before = (await day.seen(), await day.journal.entries(day.current.target()), day.settings_text())
    await day.told("/context at 3h")
    assert (await day.seen(), await day.journal.entries(day.current.target()), day.settings_text()) == before


async def test_an_edit_and_its_undo_are_seen_where_they_counted(world: World) -> None:
    await world.say("One")
    world.clock.advance(timedelta(hours=1))
    world.editor.enqueue(lambda path: path.write_text(path.read_text().replace("Human: One", "Human: Won")))
    await world.told("/context edit")
    world.clock.advance(timedelta(hours=1))
    await world.told("/undo")
    world.clock.advance(timedelta(hours=1))
    assert "Human   One" in await world.told("/context at 2h 30m")
    assert "Human   Won" in await world.told("/context at 90m")
    assert "Human   One" in await world.told("/context at 30m")
