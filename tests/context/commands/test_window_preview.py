"""``/context 24h?``: the preview of a window, which changes nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.world import World


@pytest.fixture
async def told(world: World) -> World:
    """Three turns: twenty hours, ten hours and one hour ago."""
    world.configure("{}")
    for text, later in (("One\nand more", 10), ("Two", 9), ("Three", 1)):
        await world.say(text)
        world.clock.advance(timedelta(hours=later))
    return world


async def test_what_would_come_in_is_counted_weighed_and_shown_by_its_ends(told: World) -> None:
    text = await told.told("/context 24h?")
    assert text.startswith("With a context window of 24h instead of 8h:\n\n4 messages, ~")
    assert "tokens, would come in; first and last:" in text
    assert "Human   One and more" in text
    assert "chorus  ok" in text
    assert "Each request would cost about $0." in text
    assert text.endswith("Nothing was changed.")
    assert told.settings_text() == "{}"
    assert await told.seen() == ["Three", "ok"]


async def test_what_would_fall_out_is_shown_too(told: World) -> None:
    await told.told("/context 24h")
    text = await told.told("/context sub 12h ?")
    assert text.startswith("With a context window of 12h instead of 24h:\n\n2 messages, ~")
    assert "would fall out" in text
    assert "less." in text
    assert (await told.window.state()).hours == 24


async def test_the_same_view_is_said_to_be_the_same_and_bounds_are_warned_of(told: World) -> None:
    text = await told.told("/context add 1h?")
    assert "The model would see the same messages." in text
    assert "cost" not in text
    assert "Warning: 400h is more than 168h (7 days); using 168h" in await told.told("/context 400h?")


@pytest.mark.parametrize("line", ["/context 90m?", "/context 90m"])
async def test_a_length_that_is_rounded_is_told_also_in_a_preview(told: World, line: str) -> None:
    assert "1h 30m is rounded to whole hours.\n" in await told.told(line)


async def test_a_boundary_that_is_nearer_is_named(told: World) -> None:
    await told.told("/new")
    text = await told.told("/context 24h?")
    assert "The context starts at your /new of " in text


@pytest.mark.parametrize("line", ["/context ?", "/context banana?", "/context tomorrow?"])
async def test_what_is_no_time_is_refused_with_its_sentence(told: World, line: str) -> None:
    assert (await told.told(line)).count("\n") == 0
    assert told.settings_text() == "{}"


async def test_a_window_that_cannot_reach_older_messages_names_the_edit(told: World) -> None:
    edit = "No window reaches further back; /context edit brings in older messages that you choose."
    assert edit not in await told.told("/context 200h")
    told.clock.advance(timedelta(days=10))
    assert (await told.told("/context 200h")).endswith(edit)
    assert (await told.told("/context add 1h")).endswith(edit)
    assert edit not in await told.told("/context 167h")
    await told.told("/new")
    assert edit not in await told.told("/context 168h")
