"""``/context``: show the context and the next request, set the window, undo and redo operations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from chorus_cli.commands.context.picture import drawn_parts, drawn_window, previewed, usage
from chorus_cli.commands.framework.arguments import ASKED_TIME, NUMBER, TIME, AskedTime, Parameter
from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Report, Table, Text
from chorus_cli.commands.wording import (
    confirmation,
    counted,
    deed,
    local,
    reach,
    rounding,
    shortened,
    speaker,
    start,
    turn,
)
from chorus_cli.core.context.tokens import tokens_of
from chorus_cli.core.log.messages import Message as Spoken
from chorus_cli.core.log.operations import BOUNDARIES, REVERSALS, Operation
from chorus_cli.core.time import timespan
from chorus_cli.core.time.timespan import Span
from chorus_cli.services.context.past import context_at
from chorus_cli.services.context.report import context_report
from chorus_cli.services.log.journal import Entry

GROUP: CommandGroup[CommandContext] = CommandGroup("context", "The part of the conversation that the model sees.")

_DEFAULT = ("reset", "default")
_LONGEST_SUMMARY = 1000


def _time_or_default(text: str, now: datetime) -> AskedTime | None:
    """Parse a time; ``None`` for the words that stand for the default."""
    return None if text.strip().casefold() in _DEFAULT else ASKED_TIME.parse(text, now)


WINDOW = Parameter(ASKED_TIME.name, _time_or_default, ASKED_TIME.help, ASKED_TIME.complete)

_EXAMPLES = "Try /context 24h, /context 24h?, /context edit, /context why, /context save, /new, /undo, /help context."


@GROUP.command("", guesses=("window",))
async def show(context: CommandContext) -> Report:
    """Show the context window, its messages over time, and how full the next request is.

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
    """Explain the next request: its parts and the messages left out, each with the reason.

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
        return await reset(context)
    if time.preview:
        choice = timespan.window_hours(time.span)
        return await previewed(context, choice, rounding(time.span, choice))
    assumed = "A number without a unit means hours.\n" if time.span.bare_number else ""
    state = await context.window.set(time.span)
    told = rounding(time.span, timespan.window_hours(time.span))
    rounded = f"{told}\n" if told else ""
    return Text(f"{assumed}{rounded}{confirmation(state)}")


@GROUP.command("add")
async def add(context: CommandContext, time: Annotated[AskedTime, ASKED_TIME]) -> Text | Report:
    """Widen the context window by a length of time.

    Examples:
        /context add 8h
    """
    return await _shifted(context, time, 1)


@GROUP.command("sub")
async def subtract(context: CommandContext, time: Annotated[AskedTime, ASKED_TIME]) -> Text | Report:
    """Narrow the context window by a length of time.

    Examples:
        /context sub 4h
    """
    return await _shifted(context, time, -1)


@GROUP.command(*_DEFAULT, guesses=("reset",))
async def reset(context: CommandContext) -> Text:
    """Reset the context window to its default.

    Examples:
        /context reset
    """
    state = await context.window.reset()
    lines = [f"Context window reset to default ({state.hours}h)", state.warning, reach(state)]
    return Text("\n".join(line for line in lines if line))


@GROUP.command("clear", aliases=("new", "clear"))
async def clear(context: CommandContext) -> Text:
    """Start a new conversation: earlier messages leave the context.

    Nothing is deleted; /context undo brings the messages back. It applies to all threads of the persona.

    Examples:
        /new
        /context clear
    """
    target = context.focus.target()
    await context.journal.clear(target)
    threads = len(await context.focus.threads())
    concerned = f" in all {threads} threads of {target.persona.name}" if threads > 1 else ""
    return Text(f"--- New conversation ---{concerned}")


@GROUP.command("undo")
async def undo(context: CommandContext, number: Annotated[int | None, NUMBER] = None) -> Text:
    """Undo the latest operation on the context, or the one with the given number.

    Automatic operations, such as a fold into the summary, are undone only by number.

    Examples:
        /context undo
        /context undo 3
    """
    return Text(f"Undone: {deed(await context.journal.undo(context.focus.target(), number))}")


@GROUP.command("redo")
async def redo(context: CommandContext, number: Annotated[int | None, NUMBER] = None) -> Text:
    """Redo the operation undone last, or the one with the given number.

    Without a number, this works only until something else is said or done; with a number, it always works. To redo
    a message that was undone, give the number of that undo.

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
    """List the operations on the context, with their numbers for undo and redo.

    Examples:
        /context ops
    """
    entries = await context.journal.entries(context.focus.target())
    if not entries:
        return Text("There are no operations on this context yet.")
    rows = [
        (str(entry.operation.id), local(entry.operation.created_at), deed(entry.operation), _standing(entry))
        for entry in entries
    ]
    return Table("", ("No.", "When", "What", ""), tuple(rows))


@GROUP.command("at")
async def at(context: CommandContext, time: Annotated[Span, TIME]) -> Report:
    """Show the context as it was at an earlier time.

    It is computed from the log and the operations in effect then; the system prompt and the documents are today's.

    Examples:
        /context at 2h
        /context at yesterday
        /context at monday 9am
    """
    target = context.focus.target()
    moment = time.before(context.clock.now())
    past = await context_at(context.context, target, moment)
    amount = f"{counted(len(past.messages), 'message')}, ~{sum(map(tokens_of, past.messages)):,} tokens"
    lines = [
        f"The context at {local(past.moment)}, with a window of {past.hours}h: {amount}.",
        "Earlier system prompts and documents are not kept; a request would have today's.",
    ]
    if past.summary is not None:
        folded = counted(past.folded_number, "message")
        lines.append(f"The first {folded} were summarised as: {shortened(past.summary.content, _LONGEST_SUMMARY)}")
    name = target.persona.name
    rows = [(local(row.timestamp), speaker(row.role, name), shortened(row.content)) for row in past.messages]
    table = [Table("", ("Time", "From", "Message"), tuple(rows))] if rows else []
    return Report((Text("\n".join(lines)), *table))


async def _shifted(context: CommandContext, time: AskedTime, sign: Literal[1, -1]) -> Text | Report:
    if not time.preview:
        return Text(confirmation(await context.window.shift(time.span, sign)))
    hours = context.focus.target().persona.settings.context_hours
    return await previewed(context, timespan.shifted(hours, time.span, sign))


async def _newer_boundary(context: CommandContext, redone: Operation | Spoken) -> str:
    """Name the newer boundary that hides one just restored; ``""`` if there is none."""
    base = (await context.context.seen(context.focus.target(), context.clock.now())).base
    if not isinstance(redone, Operation) or redone.kind not in BOUNDARIES or base is None or base.id == redone.id:
        return ""
    return f"The context still starts at {start(base)}; /context undo {base.id} reverts that."


def _standing(entry: Entry) -> str:
    return "undone" if not entry.counts and entry.operation.kind not in REVERSALS else ""
