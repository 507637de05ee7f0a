"""``/context``: show the context and the next request, set the window, undo and redo operations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from chorus_cli.commands.context.picture import drawn_parts, drawn_window, previewed, usage
from chorus_cli.commands.framework.arguments import ASKED_TIME, NUMBER, TIME, AskedTime, Parameter
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Report, Table, Text
from chorus_cli.commands.framework.services import Services
from chorus_cli.commands.wording import confirmation, local, reach, reset_confirmation, rounding, speaker, start, turn
from chorus_cli.core.context.budget import tokens_of
from chorus_cli.core.log.messages import Message as Spoken
from chorus_cli.core.log.operations import Operation
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.core.time import timespan
from chorus_cli.core.time.timespan import Span
from chorus_cli.services.context.report import context_report
from chorus_cli.services.context.window import window_state
from chorus_cli.services.log.journal import Entry

GROUP: CommandGroup[Services] = CommandGroup("context", "The part of the conversation that the model sees.")

_DEFAULT = ("reset", "default")
_LONGEST_SUMMARY = 1000


def _time_or_default(text: str, now: datetime) -> AskedTime | None:
    """Parse a time; ``None`` for the words that stand for the default."""
    return None if text.strip().casefold() in _DEFAULT else ASKED_TIME.parse(text, now)


WINDOW = Parameter(ASKED_TIME.name, _time_or_default, ASKED_TIME.help, ASKED_TIME.complete)

_EXAMPLES = "Try /context 24h, /context 24h?, /context edit, /context why, /context save, /new, /undo, /help context."


@GROUP.command("", guesses=("window",))
async def show(services: Services) -> Report:
    """Show the context window, its messages over time, and how full the next request is.

    Examples:
        /context
    """
    target = services.focus.target()
    now = services.machine.clock.now()
    report = await context_report(services.context.planner, target, now)
    state = window_state(report.plan.snapshot)
    default = target.persona.defaults.context_hours
    window = f"Context window: {state.hours}h (default: {default}h)\n{reach(state)}"
    parts, filled = drawn_parts(report), usage(report, target.persona.settings.context_usage_threshold)
    return Report(
        (
            Text(window),
            Text(drawn_window(state, report.moments, now)),
            parts,
            Text(filled),
            *map(Text, target.persona.warnings),
            Text(_EXAMPLES),
        )
    )


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
    return Report((Table("", ("Part", "Tokens", "Why"), tuple(rows)), left_out, end))


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
        return await previewed(services, choice, rounding(time.span, choice))
    assumed = "A number without a unit means hours.\n" if time.span.bare_number else ""
    state = await services.context.window.set(time.span)
    told = rounding(time.span, timespan.window_hours(time.span))
    rounded = f"{told}\n" if told else ""
    return Text(f"{assumed}{rounded}{confirmation(state)}")


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
    return Text(reset_confirmation(state))


@GROUP.command("clear", aliases=("new", "clear"))
async def clear(services: Services) -> Text:
    """Start a new conversation: earlier messages leave the context.

    Nothing is deleted; /context undo brings the messages back. It applies to all threads of the persona.

    Examples:
        /new
        /context clear
    """
    target = services.focus.target()
    await services.log.journal.clear(target)
    threads = len(await services.focus.threads())
    concerned = f" in all {threads} threads of {target.persona.name}" if threads > 1 else ""
    return Text(f"--- New conversation ---{concerned}")


@GROUP.command("undo")
async def undo(services: Services, number: Annotated[int | None, NUMBER] = None) -> Text:
    """Undo the latest operation on the context, or the one with the given number.

    Automatic operations, such as a fold into the summary, are undone only by number.

    Examples:
        /context undo
        /context undo 3
    """
    return Text(f"Undone: {(await services.log.journal.undo(services.focus.target(), number)).describe()}")


@GROUP.command("redo")
async def redo(services: Services, number: Annotated[int | None, NUMBER] = None) -> Text:
    """Redo the operation undone last, or the one with the given number.

    Without a number, this works only until something else is said or done; with a number, it always works. To redo
    a message that was undone, give the number of that undo.

    Examples:
        /context redo
        /context redo 3
    """
    target = services.focus.target()
    if number is None:
        redone = await services.log.journal.redo(target)
    else:
        redone = await services.log.journal.redo_by_number(target, number)
    told = f"Redone: {redone.describe() if isinstance(redone, Operation) else turn(redone)}"
    binding = await _newer_boundary(services, redone)
    return Text(f"{told}\n{binding}" if binding else told)


@GROUP.command("ops")
async def operations(services: Services) -> Text | Table:
    """List the operations on the context, with their numbers for undo and redo.

    Examples:
        /context ops
    """
    entries = await services.log.journal.entries(services.focus.target())
    if not entries:
        return Text("There are no operations on this context yet.")
    rows = [
        (str(entry.operation.id), local(entry.operation.created_at), entry.description, _standing(entry))
        for entry in entries
    ]
    return Table("", ("No.", "When", "What", ""), tuple(rows))


@GROUP.command("at")
async def at(services: Services, time: Annotated[Span, TIME]) -> Report:
    """Show the context as it was at an earlier time.

    It is computed from the log and the operations in effect then; the system prompt and the documents are today's.

    Examples:
        /context at 2h
        /context at yesterday
        /context at monday 9am
    """
    target = services.focus.target()
    moment = time.before(services.machine.clock.now())
    past = await services.context.planner.past(target, moment)
    view, hours = past.view, past.frame.target.persona.settings.context_hours
    amount = f"{counted(len(view.messages), 'message')}, ~{sum(map(tokens_of, view.messages)):,} tokens"
    lines = [
        f"The context at {local(moment)}, with a window of {hours}h: {amount}.",
        "Earlier system prompts and documents are not kept; a request would have today's.",
    ]
    if view.summary is not None:
        folded = counted(view.folded_number, "message")
        lines.append(f"The first {folded} were summarised as: {shortened(view.summary.content, _LONGEST_SUMMARY)}")
    name = target.persona.name
    rows = [(local(row.timestamp), speaker(row.role, name), shortened(row.content)) for row in view.messages]
    table = [Table("", ("Time", "From", "Message"), tuple(rows))] if rows else []
    return Report((Text("\n".join(lines)), *table))


async def _shifted(services: Services, time: AskedTime, sign: Literal[1, -1]) -> Text | Report:
    if not time.preview:
        return Text(confirmation(await services.context.window.shift(time.span, sign)))
    hours = services.focus.target().persona.settings.context_hours
    return await previewed(services, timespan.shifted(hours, time.span, sign))


async def _newer_boundary(services: Services, redone: Operation | Spoken) -> str:
    """Name the newer boundary that hides one just restored; ``""`` if there is none."""
    boundary = (
        await services.context.planner.snapshot(services.focus.target(), services.machine.clock.now())
    ).view.boundary
    if not isinstance(redone, Operation) or not redone.act.is_boundary or boundary is None or boundary.id == redone.id:
        return ""
    return f"The context still starts at {start(boundary)}; /context undo {boundary.id} reverts that."


def _standing(entry: Entry) -> str:
    return "undone" if not entry.counts and entry.operation.subject is None else ""
