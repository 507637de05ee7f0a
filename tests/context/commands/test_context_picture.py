"""``/context`` and ``/why``: the window as a picture, the request part by part."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest

from chorus_cli.context.commands import correction, request_limit
from chorus_cli.models.rules.budget import Budget, Calibration, Limit
from chorus_cli.terminal.screen.drawing import draw
from chorus_cli.terminal.screen.output import Screen
from tests.editing.commands.edited_texts import replacing, without
from tests.world import World


class TerminalStream(StringIO):
    def isatty(self) -> bool:
        return True


async def test_context_draws_the_window_with_its_boundary_and_the_parts_with_bars(world: World) -> None:
    await world.say("One")
    world.clock.advance(timedelta(hours=2))
    await world.told("/new")
    world.clock.advance(timedelta(hours=1))
    await world.say("Two")
    text = await world.told("/context")
    assert text.startswith("Context window: 8h (default: 8h)\nMessages since ")
    assert "The context starts at your /new of " in text
    (line,) = [line for line in text.splitlines() if "│" in line and "·" in line]
    assert line.count("█") == 2
    assert line.index("█") < line.index("│") < line.rindex("█")
    assert "█ 2 messages in 10 m   │ new conversation, " in text
    assert [word for word in ("system prompt", "documents", "messages", "total") if f"\n{word} " in text] == [
        "system prompt",
        "documents",
        "messages",
        "total",
    ]
    assert "Limit for a request: 80 % (8,000 tokens)." in text


@pytest.mark.parametrize(
    ("lines", "start"),
    [
        (["/new"], "your /new of "),
        (["/context edit"], "your edit of "),
        (["/context save Rome", "/context restore 2"], "the session restored on "),
    ],
)
async def test_the_boundary_that_the_context_starts_at_is_named(world: World, lines: list[str], start: str) -> None:
    await world.say("One")
    world.editor.enqueue(without("ok"))
    for line in lines:
        await world.told(line)
    assert f"\nThe context starts at {start}" in await world.told("/context")


async def test_the_context_of_a_persona_that_was_created_again_starts_there(world: World) -> None:
    await world.told("/persona new Ada")
    await world.say("Secrets")
    await world.told("/persona archive")
    await world.persona_admin.delete("ada")
    await world.told("/persona new Ada")
    assert "\nThe context starts at the creation of this persona on " in await world.told("/context")


async def test_an_empty_window_is_a_line_without_blocks(world: World) -> None:
    text = await world.told("/context")
    assert "·" * 48 in text
    assert "█ " not in text


@pytest.mark.parametrize(("columns", "slots"), [(200, 48), (60, 48), (40, 28), (20, 8)])
async def test_the_line_of_the_window_fits_the_terminal(
    world: World, monkeypatch: pytest.MonkeyPatch, columns: int, slots: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = TerminalStream()
    draw(await world.carry_out("/context"), Screen(stream, {"NO_COLOR": "1"}))
    (line,) = [line for line in stream.getvalue().splitlines() if "··" in line]
    assert (line.count("·"), len(line)) == (slots, slots + len("00:00  00:00"))


@pytest.mark.parametrize(
    ("hours", "begin", "end"),
    [
        (8, "06:30", "14:30"),
        (16, "Wed 22:30", "Thu 14:30"),
        (24, "Wed 14:30", "Thu 14:30"),
        (150, "Fri 08:30", "Thu 14:30"),
        (168, "02-05 14:30", "02-12 14:30"),
    ],
)
@pytest.mark.parametrize("columns", [200, 40])
async def test_the_ends_of_the_window_are_told_apart(
    world: World, monkeypatch: pytest.MonkeyPatch, hours: int, begin: str, end: str, columns: int
) -> None:
    await world.told(f"/context {hours}h")
    await world.say("One")
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = TerminalStream()
    draw(await world.carry_out("/context"), Screen(stream, {"NO_COLOR": "1"}))
    line, legend = [line for line in stream.getvalue().splitlines() if "█" in line][:2]
    assert (line.startswith(f"{begin} "), line.endswith(f" {end}"), len(line) <= columns) == (True, True, True)
    assert legend.startswith(" " * len(f"{begin} ") + "█")


@pytest.mark.parametrize(("hours", "other"), [(8, "24h"), (24, "2 days"), (48, "24h")])
async def test_another_window_than_the_present_one_is_suggested(world: World, hours: int, other: str) -> None:
    await world.told(f"/context {hours}h")
    assert f"Try /context {other}, /context {other}?, /context edit" in await world.told("/context")


async def test_why_gives_the_reason_for_each_part_and_for_what_is_left_out(world: World) -> None:
    await world.say("One")
    assert "Nothing is left out." in await world.told("/why")
    await world.told("/new")
    text = await world.told("/context why")
    assert "always sent" in text
    assert "0 in the 8h window since the boundary" in text
    assert "before the boundary  2 " in text


async def test_why_tells_messages_kept_by_an_edit_from_those_in_the_window(world: World) -> None:
    await world.say("One")
    world.clock.advance(timedelta(hours=7))
    await world.say("Two")
    world.editor.enqueue(replacing("Two", "Too"))
    await world.told("/context edit")
    assert "4 in the 8h window since the boundary" in await world.told("/why")
    world.clock.advance(timedelta(hours=2))
    assert "2 in the 8h window since the boundary, 2 kept by your edit" in await world.told("/why")


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (102_400, "Limit for a request: 80 % (102,400 tokens)."),
        (116_480, "Limit for a request: 80 % (102,400 tokens); 116,480 tokens because a fold was undone."),
        (64_000, "Limit for a request: 64,000 tokens; max_output_tokens are kept free for the reply."),
    ],
)
def test_the_limit_for_a_request_is_the_share_or_has_a_reason(tokens: int, sentence: str) -> None:
    assert request_limit(Budget(Limit(128_000, "the model's own"), tokens), 0.8) == sentence


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (Calibration(), ""),
        (Calibration(1.0, 0.0), ""),
        (Calibration(1.004, -0.004), ""),
        (Calibration(1.0, 0.2), "The last estimate was off by +20%."),
        (Calibration(1.08, 0.0), "Estimates are multiplied by 1.08 for this model."),
        (Calibration(1.08, 0.03), "Estimates are multiplied by 1.08 for this model; the last estimate was off by +3%."),
    ],
)
def test_estimates_are_spoken_of_only_when_they_are_corrected(known: Calibration, sentence: str) -> None:
    assert correction(known) == sentence
