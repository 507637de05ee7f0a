"""``/context``: show the window and the next request, explain them, and change the window."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from chorus_cli.context.commands.context_chart import (
    drawn_memory,
    drawn_parts,
    drawn_pins,
    drawn_window,
    previewed,
    usage,
)
from chorus_cli.context.service.report import context_report, request_report
from chorus_cli.core.time import timespan
from chorus_cli.core.time.timespan import Span, WindowChoice, format_span
from chorus_cli.framework.arguments import ASKED_TIME, AskedTime, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Drawing, Report, Table, Text
from chorus_cli.log.rules.wording import reach
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("context", "The part of the conversation that the model sees.")

_DEFAULT = ("reset", "default")
_HOURS_OF_A_DAY = 24


def _time_or_default(text: str, now: datetime) -> AskedTime | None:
    """Parse a time; ``None`` for the words that stand for the default."""
    return None if text.strip().casefold() in _DEFAULT else ASKED_TIME.parse(text, now)


WINDOW = Parameter(ASKED_TIME.name, _time_or_default, ASKED_TIME.help, ASKED_TIME.complete)


@GROUP.command("", guesses=("window",))
async def show(services: Services) -> Report:
    """Show the context window, its messages over time, and how full the next request is.

    Examples:
        /context
    """
    target = services.focus.target()
    settings, now = target.persona.settings, services.machine.clock.now()
    report = await request_report(services.context.planner, target, now)
    view, hours, default = report.plan.snapshot.view, settings.context_hours, target.persona.defaults.context_hours
    window = f"Context window: {hours}h (default: {default}h)\n{reach(view.cutoff, view.boundary)}"
    parts, filled = drawn_parts(report), usage(report, settings.context_usage_threshold)
    return Report(
        (
            Text(window),
            Drawing(partial(drawn_window, view, report.moments, now)),
            parts,
            *([pins] if (pins := drawn_pins(view, target.persona.name)) else []),
            Text(filled),
            *map(Text, target.persona.warnings),
            Text(_examples(hours)),
        )
    )


def _examples(hours: int) -> str:
    """Suggest other windows than the present one, and further commands."""
    other = "2 days" if hours == _HOURS_OF_A_DAY else "24h"
    also = "/context edit, /context why, /context save, /new, /undo, /help context"
    return f"Try /context {other}, /context {other}?, {also}."


@GROUP.command("why", aliases=("why",))
async def why(services: Services) -> Report:
    """Explain the next request: its parts and the messages left out, each with the reason.

    Examples:
        /context why
        /why
    """
    target = services.focus.target()
    report = await context_report(services.context.planner, target, services.machine.clock.now())
    rows = [(part.name, f"{part.tokens:,}", part.reason) for part in report.parts]
    out = [(omission.reason, f"{omission.messages:,}", f"{omission.tokens:,}") for omission in report.omissions]
    left_out = Table("Left out", ("Why", "Messages", "Tokens"), tuple(out)) if out else Text("Nothing is left out.")
    end = Text(usage(report, target.persona.settings.context_usage_threshold))
    here = f"The next request in thread #{target.thread_number} of {target.persona.name}:"
    # Most chats have one thread, which goes without saying.
    heading = [Text(here)] if target.thread_number > 1 else []
    memory = [drawn_memory(report.memory)] if report.memory else []
    pins = drawn_pins(report.plan.snapshot.view, target.persona.name)
    parts = Table("", ("Part", "Tokens", "Why"), tuple(rows))
    return Report((*heading, parts, *memory, *([pins] if pins else []), left_out, end))


@GROUP.command("set", default=True)
async def set_window(services: Services, time: Annotated[AskedTime | None, WINDOW]) -> Text | Report:
    """Set the context window to a length of time, or preview the change with a question mark.

    The window slides with the clock and is rounded to whole hours from 1 to 168 (7 days). Messages from before /new
    stay out, however wide the window is.

    Examples:
        /context 24h
        /context set 2 days
        /context since monday
        /context 24h?
    """
    if time is None:
        return await reset(services)
    if time.preview:
        choice = timespan.window_hours(time.span)
        return await previewed(services, choice, _rounding(time.span, choice))
    assumed = "A number without a unit means hours.\n" if time.span.bare_number else ""
    state = await services.context.window.set(time.span)
    told = _rounding(time.span, timespan.window_hours(time.span))
    rounded = f"{told}\n" if told else ""
    return Text(f"{assumed}{rounded}{state.confirmation()}")


@GROUP.command("add")
async def add(services: Services, time: Annotated[AskedTime, ASKED_TIME]) -> Text | Report:
    """Widen the context window by a length of time.

    Examples:
        /context add 8h
    """
    return await _shifted(services, time, 1)


@GROUP.command("sub")
async def subtract(services: Services, time: Annotated[AskedTime, ASKED_TIME]) -> Text | Report:
    """Narrow the context window by a length of time.

    Examples:
        /context sub 4h
    """
    return await _shifted(services, time, -1)


@GROUP.command(*_DEFAULT, guesses=("reset",))
async def reset(services: Services) -> Text:
    """Reset the context window to its default.

    Examples:
        /context reset
    """
    state = await services.context.window.reset()
    return Text(state.reset_confirmation())


async def _shifted(services: Services, time: AskedTime, sign: Literal[1, -1]) -> Text | Report:
    if not time.preview:
        return Text((await services.context.window.shift(time.span, sign)).confirmation())
    hours = services.focus.target().persona.settings.context_hours
    return await previewed(services, timespan.shifted(hours, time.span, sign))


def _rounding(span: Span, choice: WindowChoice) -> str:
    """Say that a length of time is rounded to hours; ``""`` for a moment, or if a warning says more."""
    if choice.warning or span.is_moment or span.seconds == choice.hours * 3600:
        return ""
    return f"{format_span(span.seconds)} is rounded to whole hours."
