"""``/context``, its previews and pasts, ``/why`` and ``/thoughts``."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest

from chorus_cli.context.commands import correction
from chorus_cli.context.service.report import context_report
from chorus_cli.core.errors import ModelError
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.replies import Reply, plain
from chorus_cli.models.rules.budget import Calibration
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.models.rules.costs import THOUGHT
from chorus_cli.models.rules.events import ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import NO_ECHO, Echo, Span
from chorus_cli.terminal.drawing import draw
from chorus_cli.terminal.screen.output import Screen
from tests.editing.commands.test_context_edit import replacing, without
from tests.turns.service.tool_talk import call, calls
from tests.world import World


class TerminalStream(StringIO):
    def isatty(self) -> bool:
        return True


async def drawn_context(world: World) -> list[str]:
    stream = TerminalStream()
    draw(await world.carry_out("/context"), Screen(stream, {"NO_COLOR": "1"}))
    return stream.getvalue().splitlines()


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
    assert "█ = 2 messages in 10 m   │ new conversation, " in text
    assert all(f"\n{word} " in text for word in ("system prompt", "documents", "messages", "total"))
    assert "Limit for a request: 80% (8,000 tokens)." in text


async def test_the_window_draws_nothing_that_was_undone_before_its_boundary(world: World) -> None:
    await world.say("One")
    await world.told("/undo")
    await world.say("Two")
    await world.told("/new")
    report = await context_report(world.context, world.current.target(), world.clock.now())
    assert len(report.moments) == 2


async def test_the_window_counts_no_reply_that_only_calls_tools(tooled: World) -> None:
    for number in range(2):
        calls(tooled, call("echo", {"text": "ring"}, f"c{number}"))
    await tooled.say("Where is it?")
    shown = await tooled.told("/context")
    assert "█ = 6 messages in 10 m" in shown
    assert " 6 in the 8h window" in shown


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


@pytest.mark.parametrize(("columns", "slots"), [(200, 48), (60, 48), (40, 28), (20, 8)])
async def test_the_window_fits_the_terminal(
    world: World, monkeypatch: pytest.MonkeyPatch, columns: int, slots: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    drawn = await drawn_context(world)
    (line,) = [line for line in drawn if "··" in line]
    assert (line.count("·"), len(line)) == (slots, slots + len("00:00  00:00"))
    assert not any("█ " in line for line in drawn)


@pytest.mark.parametrize(
    ("hours", "begin", "end"),
    [
        (8, "06:30", "14:30"),
        (16, "Wed 22:30", "Thu 14:30"),
        (24, "Wed 14:30", "Thu 14:30"),
        (150, "Fri 08:30", "Thu 14:30"),
        (168, "02-05", "02-12"),
    ],
)
@pytest.mark.parametrize("columns", [200, 40])
async def test_the_ends_of_the_window_are_told_apart(
    world: World, monkeypatch: pytest.MonkeyPatch, hours: int, begin: str, end: str, columns: int
) -> None:
    await world.told(f"/context {hours}h")
    await world.say("One")
    monkeypatch.setenv("COLUMNS", str(columns))
    line, legend = [line for line in await drawn_context(world) if "█" in line][:2]
    assert (line.startswith(f"{begin} "), line.endswith(f" {end}"), len(line) <= columns) == (True, True, True)
    assert legend.startswith(" " * len(f"{begin} ") + "█")


@pytest.mark.parametrize(
    ("days", "begin", "legend"),
    [
        (0.01, "13:44", "█ = 2 messages in 1 m"),
        (20, "02-12", "█ = 2 messages in 1 day"),
        (400, "2026-02-12", "█ = 2 messages in 9 days"),
    ],
)
async def test_without_a_cutoff_the_timeline_begins_with_the_oldest_message_and_shows_days(
    world: World, days: float, begin: str, legend: str
) -> None:
    await world.say("One")
    world.clock.advance(timedelta(days=days))
    await world.say("Two")
    await world.told("/context all")
    line, below = [line for line in (await world.told("/context")).splitlines() if "█" in line][:2]
    assert line.startswith(f"{begin} "), line
    assert below.strip() == legend


@pytest.mark.parametrize(("hours", "other"), [(8, "24h"), (24, "2 days"), (48, "24h")])
async def test_another_window_than_the_present_one_is_suggested(world: World, hours: int, other: str) -> None:
    await world.told(f"/context {hours}h")
    assert f"Try /context {other}, /context {other}?, /context edit" in await world.told("/context")


async def test_why_gives_the_reason_for_each_part_and_for_what_is_left_out(world: World) -> None:
    await world.say("One")
    assert "No message is left out." in await world.told("/why")
    await world.told("/new")
    text = await world.told("/context why")
    assert "always sent" in text
    assert "0 since your /new of" in text
    assert "before the context starts  2 " in text


async def test_why_tells_messages_kept_by_an_edit_from_those_in_the_window(world: World) -> None:
    await world.say("One")
    world.clock.advance(timedelta(hours=7))
    await world.say("Two")
    world.editor.enqueue(replacing("Two", "Too"))
    await world.told("/context edit")
    assert "4 since your edit of" in await world.told("/why")
    world.clock.advance(timedelta(hours=2))
    text = await world.told("/why")
    assert "2 since your edit of" in text
    assert ", 2 kept by your edit" in text


async def test_a_window_of_all_draws_the_messages_that_a_session_brought_back(world: World) -> None:
    await world.say("One")
    await world.told("/context save talk")
    world.clock.advance(timedelta(hours=3))
    await world.told("/context restore talk")
    await world.told("/context all")
    report = await context_report(world.context, world.current.target(), world.clock.now())
    assert len(report.moments) == 2


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (Calibration(), ""),
        (Calibration(1.0, 0.0), ""),
        (Calibration(1.004, -0.004), ""),
        (
            Calibration(1.0, 0.2),
            "Chorus multiplies its estimates for this model by 1.00; the last one was off by +20%.",
        ),
    ],
)
def test_estimates_are_spoken_of_only_when_they_are_corrected(known: Calibration, sentence: str) -> None:
    assert correction(known) == sentence


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
    assert text.startswith("With 24h:\n\n4 messages, ~")
    assert "tokens, would be added; first and last:" in text
    assert "Human   One and more" in text
    assert "chorus  ok" in text
    assert "Each request would cost about $0." in text
    assert text.endswith("Nothing was changed.")
    assert told.settings_text() == "{}"
    assert await told.seen() == ["Three", "ok"]


async def test_what_would_fall_out_is_shown_too(told: World) -> None:
    await told.told("/context 24h")
    text = await told.told("/context sub 12h ?")
    assert text.startswith("With 12h:\n\n2 messages, ~")
    assert "would be left out" in text
    assert "less." in text
    assert told.current.target().persona.settings.context_hours == 24


async def test_a_preview_names_the_same_view_bounds_and_a_nearer_boundary(told: World) -> None:
    text = await told.told("/context add 1h?")
    assert "With 9h the model would see the same messages." in text
    assert "cost" not in text
    assert "Warning: 400h is more than 168h (7 days); using 168h" in await told.told("/context 400h?")
    await told.told("/new")
    assert "The context starts at your /new of " in await told.told("/context 24h?")


async def test_a_preview_names_the_end_of_a_summary_and_what_each_request_would_cost_then(world: World) -> None:
    async def size() -> int:
        return (await world.context.planned(world.current.target(), world.clock.now())).meter.tokens

    await world.say("Old")
    world.clock.advance(timedelta(hours=10))
    for number in range(6):
        world.model.say("word " * 300)
        await world.say(f"Question {number}")
    world.model.say("Short.")
    await world.told("/compact")
    before, text = await size(), await world.told("/context 24h?")
    await world.told("/context 24h")
    assert f"cost about ${(await size() - before) * 0.001:.2f} more.\n" in text
    assert "10 messages, ~" in text
    assert "\nThe summary would no longer apply.\n" in text


async def test_a_preview_counts_only_what_would_be_sent(world: World) -> None:
    world.current.use_model("chorus", ELIZA)
    await world.say("Said to ELIZA")
    world.current.use_model("chorus", None)
    world.model.enqueue(ModelError("It is down."))
    await world.say("One")
    world.clock.advance(timedelta(hours=10))
    assert (await world.told("/context 24h?")).startswith("With 24h:\n\n1 message, ~")


@pytest.fixture
async def day(world: World) -> World:
    """At 0 h: One. At 2 h: a window of 4 h. At 3 h: Two. At 4 h: /new. At 5 h: Three. At 6 h: its undo. Now: 7 h."""
    for text in ("One", "/context", "/context 4h", "Two", "/new", "Three", "/context undo"):
        await (world.told(text) if text.startswith("/") else world.say(text))
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
    before = (await day.seen(), await day.journal.entries(day.current.target()), day.settings_text())
    text = await day.told(f"/context at {time}")
    assert f"with a window of {hours}h: {2 * len(seen)} messages, ~" in text
    assert [word for word in ("One", "Two", "Three") if f"Human   {word}" in text] == seen
    assert "today's" in text
    assert (await day.seen(), await day.journal.entries(day.current.target()), day.settings_text()) == before


NOTHING = "No reply in context has thoughts."
HIDDEN = "The provider does not show the thoughts before the newest reply."


async def answered(world: World, thought: str, text: str = "Do you want my answer?") -> None:
    """Have a question answered after some thoughts, or by a model that keeps them to itself."""
    thoughts = [ReasoningDelta(thought)] if thought else []
    world.model.enqueue(*thoughts, TextDelta("Yes."), ReplyEnd("stop", {THOUGHT: 640}))
    await world.say(text)


def printed(*thoughts: str) -> str:
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
    assert await world.told("/thoughts") == printed("Second,\n\nand more.")
    await answered(world, "")
    assert await world.told("/thoughts") == HIDDEN


async def test_each_round_of_a_reply_has_thoughts_of_its_own(tooled: World) -> None:
    called = tuple(call("echo", {"text": "a"}, f"c{number}") for number in range(12))
    tooled.model.enqueue(ReasoningDelta("I must look."), ReplyEnd("tool_calls", {THOUGHT: 640}, called))
    await answered(tooled, "Gold!")
    assert await tooled.told("/thoughts") == printed("I must look.", "Gold!")


async def test_what_was_taken_back_or_asked_again_or_cleared_is_not_printed(world: World) -> None:
    await answered(world, "First.")
    await answered(world, "Second.")
    world.model.enqueue(ReasoningDelta("Third."), TextDelta("No."), ReplyEnd("stop", {THOUGHT: 640}))
    _ = [event async for event in world.conversation.retry(world.current.target())]
    assert await world.told("/thoughts") == printed("Third.")
    await world.told("/undo")
    assert await world.told("/thoughts") == printed("Second.")
    await world.told("/undo")
    assert await world.told("/thoughts") == printed("First.")
    await world.told("/thread fork")
    assert await world.told("/thoughts") == printed("First.")
    await world.told("/new")
    assert await world.told("/thoughts") == NOTHING


REASON = "before 2 replies, sent back to the model that had them"


@pytest.fixture
async def thoughtful(tooled: World) -> World:
    """A world in which a tool was called after 300 tokens of thoughts, and the answer came after 40."""
    called, model = (call("echo", {"text": "gold"}),), tooled.model
    model.enqueue(ReasoningDelta("I must look."), TextDelta("Hm."), ReplyEnd("tool_calls", {THOUGHT: 300}, called))
    model.enqueue(ReasoningDelta("Gold!"), TextDelta("It is gold."), ReplyEnd("stop", {THOUGHT: 40}))
    await tooled.say("What is it?")
    return tooled


def echoing(world: World, echo: Echo) -> World:
    """Return the same world with a model that is sent its thoughts again."""
    context = replace(world.context, echo_of=lambda _model: echo)
    return replace(world, services=replace(world.services, context=context))


@pytest.mark.parametrize(
    ("echo", "tokens"),
    [(NO_ECHO, None), (Echo(Span.TURN), None), (Echo(Span.EVER), 300), (Echo(Span.EVER, calls_only=False), 340)],
)
async def test_thoughts_that_go_back_are_a_part_of_their_own(thoughtful: World, echo: Echo, tokens: int | None) -> None:
    without = await context_report(thoughtful.context, thoughtful.current.target(), thoughtful.clock.now())
    world = echoing(thoughtful, echo)
    report = await context_report(world.context, world.current.target(), world.clock.now())
    parts = {part.name: part.tokens for part in report.parts}
    assert parts.pop("thoughts", None) == tokens
    assert parts == {part.name: part.tokens for part in without.parts}
    assert sum(part.tokens for part in report.parts) == report.plan.meter.tokens
    told = report.as_json()["messages"]
    assert isinstance(told, list)
    thoughts = [message["thoughts"] for message in told if "thoughts" in message]
    assert thoughts == ["I must look.", "Gold!"][: {None: 0, 300: 1, 340: 2}[tokens]]


async def test_the_user_reads_them_apart(thoughtful: World) -> None:
    services = echoing(thoughtful, Echo(Span.EVER, calls_only=False)).services
    answer = await resolve(services.registry, "/context", thoughtful.clock.now()).run(services)
    assert isinstance(answer, Reply)
    row = next(row for row in plain(answer).splitlines() if row.startswith("thoughts"))
    assert all(word in row for word in ("340", REASON))
