"""``/context``: what the model sees, how far back it reaches, and taking back what was done to it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from chorus_cli.commands.context.picture import drawn_parts, drawn_window, usage
from chorus_cli.commands.context.preview import previewed
from chorus_cli.commands.framework.arguments import Parameter
from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.parameters import ASKED_TIME, NUMBER, AskedTime
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Report, Table, Text
from chorus_cli.commands.wording import confirmation, deed, local, reach, rounding, start, turn
from chorus_cli.core.log.messages import Message as Spoken
from chorus_cli.core.log.operations import BOUNDARIES, REVERSALS, Operation
from chorus_cli.core.time import timespan
from chorus_cli.services.context.report import context_report
from chorus_cli.services.log.journal import Entry

GROUP: CommandGroup[CommandContext] = CommandGroup("context", "The part of the conversation that the model sees.")

_DEFAULT = ("reset", "default")


def _time_or_default(text: str, now: datetime) -> AskedTime | None:
    """Read a time; none is meant by the words that stand for the default."""
    return None if text.strip().casefold() in _DEFAULT else ASKED_TIME.parse(text, now)


WINDOW = Parameter(ASKED_TIME.name, _time_or_default, ASKED_TIME.help, ASKED_TIME.complete)

_EXAMPLES = "Try /context 24h, /context 24h?, /context edit, /context why, /context save, /new, /undo, /help context."


@GROUP.command("", guesses=("window",))
async def show(context: CommandContext) -> Report:
    """Show how far back the model sees, when how much was said, and how full a request is.

    Examples:
        /context
    """
    target = context.focus.target()
    report = await context_report(context.context, context.clock, target)
    state = await context.window.state()
    moments = await context.window.moments(state.since)
    default = target.persona.defaults.context_hours
    return Report(
        (
            Text(f"Context window: {state.hours}h (default: {default}h)\n{reach(state)}"),
            Text(drawn_window(state, moments, context.clock.now())),
            drawn_parts(report),
            Text(usage(report, target.persona.settings.context_usage_threshold)),
            *map(Text, target.persona.warnings),
            Text(_EXAMPLES),
        )
    )


@GROUP.command("why", aliases=("why",))
async def why(context: CommandContext) -> Report:
    """Show each part of the next request with the reason for it, and what is left out and why.

    Examples:
        /context why
        /why
    """
    target = context.focus.target()
    report = await context_report(context.context, context.clock, target)
    rows = [(part.name, f"{part.tokens:,}", part.reason) for part in report.parts]
    out = [(omission.reason, f"{omission.messages:,}", f"{omission.tokens:,}") for omission in report.omissions]
    left_out = Table("Left out", ("Why", "Messages", "Tokens"), tuple(out)) if out else Text("Nothing is left out.")
    end = Text(usage(report, target.persona.settings.context_usage_threshold))
    return Report((Table("", ("Part", "Tokens", "Why"), tuple(rows)), left_out, end))


@GROUP.command("set", default=True)
async def set_window(context: CommandContext, time: Annotated[AskedTime | None, WINDOW]) -> Text | Report:
    """Reach back a given length of time, or with a question mark see what that would change.

    The window slides with the clock and is rounded to whole hours from 1 to 168 (7 days). It never reaches across a
    boundary that /new has set.

    Examples:
        /context 24h
        /context set 2 days
        /context since monday
        /context 24h?
    """
    if time is None:
        return await reset(context)
    if time.preview:
        choice = timespan.window_hours(time.span)
        return await previewed(context, choice, rounding(time.span, choice))
    assumed = "A number alone means hours.\n" if time.span.bare_number else ""
    state = await context.window.set(time.span)
    told = rounding(time.span, timespan.window_hours(time.span))
    rounded = f"{told}\n" if told else ""
    return Text(f"{assumed}{rounded}{confirmation(state)}")


@GROUP.command("add")
async def add(context: CommandContext, time: Annotated[AskedTime, ASKED_TIME]) -> Text | Report:
    """Reach back further by a length of time.

    Examples:
        /context add 8h
    """
    return await _shifted(context, time, 1)


@GROUP.command("sub")
async def subtract(context: CommandContext, time: Annotated[AskedTime, ASKED_TIME]) -> Text | Report:
    """Reach back less far by a length of time.

    Examples:
        /context sub 4h
    """
    return await _shifted(context, time, -1)


@GROUP.command(*_DEFAULT, guesses=("reset",))
async def reset(context: CommandContext) -> Text:
    """Reach back as far as the default says.

    Examples:
        /context reset
    """
    state = await context.window.reset()
    lines = [f"Context window reset to default ({state.hours}h)", state.warning, reach(state)]
    return Text("\n".join(line for line in lines if line))


@GROUP.command("clear", aliases=("new", "clear"))
async def clear(context: CommandContext) -> Text:
    """Begin a new conversation: the model sees nothing of what was said before.

    Nothing is deleted; /context undo brings it back. It concerns every thread of the persona.

    Examples:
        /new
        /context clear
    """
    await context.journal.clear(context.focus.target())
    return Text("--- New conversation ---")


@GROUP.command("undo")
async def undo(context: CommandContext, number: Annotated[int | None, NUMBER] = None) -> Text:
    """Take back the newest operation on the context, or the one with the given number.

    What happened by itself, such as a fold into the summary, is only taken back by its number.

    Examples:
        /context undo
        /context undo 3
    """
    return Text(f"Undone: {deed(await context.journal.undo(context.focus.target(), number))}")


@GROUP.command("redo")
async def redo(context: CommandContext, number: Annotated[int | None, NUMBER] = None) -> Text:
    """Put back what the last undo took back, or the undone operation with the given number.

    Without a number nothing may have followed the undo; by its number an operation comes back whatever followed. A
    message that was taken back has the number of its undo.

    Examples:
        /context redo
        /context redo 3
    """
    target = context.focus.target()
    if number is None:
        redone = await context.journal.redo(target)
    else:
        redone = await context.journal.redo_by_number(target, number)
    told = f"Redone: {deed(redone) if isinstance(redone, Operation) else turn(redone)}"
    binding = await _newer_boundary(context, redone)
    return Text(f"{told}\n{binding}" if binding else told)


@GROUP.command("ops")
async def operations(context: CommandContext) -> Text | Table:
    """List what was done to the context, with the numbers that undo and redo take.

    Examples:
        /context ops
    """
    entries = await context.journal.entries(context.focus.target())
    if not entries:
        return Text("Nothing was done to this context yet.")
    rows = [
        (str(entry.operation.id), local(entry.operation.created_at), deed(entry.operation), _standing(entry))
        for entry in entries
    ]
    return Table("", ("No.", "When", "What", ""), tuple(rows))


async def _shifted(context: CommandContext, time: AskedTime, sign: Literal[1, -1]) -> Text | Report:
    if not time.preview:
        return Text(confirmation(await context.window.shift(time.span, sign)))
    hours = context.focus.target().persona.settings.context_hours
    return await previewed(context, timespan.shifted(hours, time.span, sign))


async def _newer_boundary(context: CommandContext, redone: Operation | Spoken) -> str:
    """Say which boundary keeps a boundary that was put back from being seen, if one does."""
    base = (await context.context.seen(context.focus.target(), context.clock.now())).base
    if not isinstance(redone, Operation) or redone.kind not in BOUNDARIES or base is None or base.id == redone.id:
        return ""
    return f"The context still starts at {start(base)}; /context undo {base.id} takes that back."


def _standing(entry: Entry) -> str:
    return "undone" if not entry.counts and entry.operation.kind not in REVERSALS else ""
