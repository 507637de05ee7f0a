"""``/context clear``, ``ops``, ``undo``, ``redo`` and ``at``: acts on the context, and their journal."""

from __future__ import annotations

from typing import Annotated

from chorus_cli.commands.framework.arguments import NUMBER, TIME
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Report, Table, Text
from chorus_cli.commands.framework.services import Services
from chorus_cli.commands.wording import local, speaker, start, turn
from chorus_cli.core.context.budget import tokens_of
from chorus_cli.core.log.messages import Message as Spoken
from chorus_cli.core.log.operations import Operation
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.core.time.timespan import Span
from chorus_cli.services.log.journal import Entry

GROUP: CommandGroup[Services] = CommandGroup("context")

_LONGEST_SUMMARY = 1000


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
        (str(entry.operation.number), local(entry.operation.created_at), entry.description, _standing(entry))
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


async def _newer_boundary(services: Services, redone: Operation | Spoken) -> str:
    """Name the newer boundary that hides one just restored; ``""`` if there is none."""
    boundary = (
        await services.context.planner.snapshot(services.focus.target(), services.machine.clock.now())
    ).view.boundary
    if not isinstance(redone, Operation) or not redone.act.is_boundary or boundary is None or boundary.id == redone.id:
        return ""
    return f"The context still starts at {start(boundary)}; /context undo {boundary.number} reverts that."


def _standing(entry: Entry) -> str:
    return "undone" if not entry.counts and entry.operation.subject is None else ""
