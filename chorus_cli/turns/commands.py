"""Acts on the context: ``/context clear``, ``ops``, ``undo``, ``redo``, ``at``, ``compact``, ``summary``; ``/pin``."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from chorus_cli.context.commands import drawn_pins
from chorus_cli.context.rules.view import ContextSnapshot, Summary, View, usable
from chorus_cli.context.service.journal import pin, unpin
from chorus_cli.context.service.transcript import numbers_of
from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.phrases import counted, enumerated, quoted, shortened
from chorus_cli.core.time.timespan import Span
from chorus_cli.core.time.timestamps import in_hours
from chorus_cli.framework.arguments import NUMBER, TEXT, TIME, Candidate, Parameter
from chorus_cli.framework.drafts import Refused, answered
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Reply, Report, Said, Table, Text, data_of
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Fork, Retry, Window
from chorus_cli.log.rules.calls import called_name
from chorus_cli.log.rules.log_acts import Greeting
from chorus_cli.log.rules.messages import Message as Spoken
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.log.rules.operations import Operation
from chorus_cli.log.rules.wording import local, told_by
from chorus_cli.mcp.rules.declarations import BETWEEN
from chorus_cli.models.rules.budget import tokens_of
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("context")
TOP: CommandGroup[Services] = CommandGroup("", topic="context")
MESSAGE = replace(NUMBER, name="message", help="a message's number, such as 12 or #12, as /search shows it")
OVERTAKEN = Refused("The context changed in the meantime, so your edit was not applied.")

_LONGEST_SUMMARY = 1000


@GROUP.command("clear", aliases=("new", "clear"), listed="everyday")
async def clear(services: Services) -> Text | Report:
    """Start a new conversation; nothing is deleted.

    Earlier messages leave the context; /undo brings them back. The command applies to all threads of the persona. A
    persona of a character card says its greeting again in each open thread.

    Examples:
        /new
        /context clear
    """
    target = services.current.target()
    greeting = await services.cards.first_greeting(target)
    await services.journal.clear(target, greeting)
    told = Text(f"--- New conversation ---{await _in_all_threads(services)}")
    return Report((told, Said(greeting, target.persona.name))) if greeting else told


@GROUP.command("undo", listed="nowhere")
async def undo(services: Services, number: Annotated[int | None, NUMBER] = None) -> Text:
    """Undo the latest operation on the context, or one by its number.

    An automatic operation, such as a summary, is undone only by its number.

    Examples:
        /context undo
        /context undo 3
    """
    await services.current.note_edit(services.current.slug)
    undone = await services.journal.undo(services.current.target(), number)
    told = await reversal_line(services, undone, is_undone=True)
    return Text(told + await follow_fork(services, undone))


@GROUP.command("redo", listed="nowhere")
async def redo(services: Services, number: Annotated[int | None, NUMBER] = None) -> Text:
    """Redo the operation that was undone last, or one by its number.

    Without a number, this works only until something else is said or done; with a number, it works later too. To redo
    a message that was undone, give the number of its undo.

    Examples:
        /context redo
        /context redo 3
    """
    return Text(await redone_lines(services, await services.journal.redo(services.current.target(), number)))


@GROUP.command("ops", listed="nowhere")
async def operations(services: Services) -> Text | Table:
    """List the operations on the context with their numbers.

    Examples:
        /context ops
    """
    await services.current.note_edit(services.current.slug)
    entries = await services.journal.entries(services.current.target())
    if not entries:
        return Text("There are no operations on this context yet.")
    rows: list[tuple[str, ...]] = []
    values: list[dict[str, object]] = []
    for operation, description, counts in entries:
        state = "" if counts or operation.subject else "undone"
        rows.append((str(operation.number), local(operation.created_at), description, state))
        values.append({"number": operation.number, "time": operation.created_at, "what": description})
    return Table("", ("No.", "When", "What", ""), tuple(rows), data=data_of(values))


@TOP.command("pin")
async def pin_message(services: Services, message: Annotated[int | None, MESSAGE] = None) -> Text | Table:
    """Keep a message in context, or list the pinned ones.

    The model sees the message word for word, whatever its age, as long as all pinned messages fit into a request.
    /unpin, /undo, /new, an edit or a restored session ends this.

    Examples:
        /pin 12
        /pin
    """
    target = services.current.target()
    if message is None:
        pins = drawn_pins((await services.context.snapshot(target, services.clock.now())).view, target.persona.speakers)
        return pins or Text("No message is pinned. /pin 12 pins message 12; /search shows the numbers.")
    pinned = await pin(services.journal, target, message)
    return Text(f'Pinned: #{pinned.id} "{shortened(pinned.content)}". /unpin {pinned.id} ends that.')


@TOP.command("unpin")
async def unpin_message(services: Services, message: Annotated[int, MESSAGE]) -> Text:
    """Let a pinned message leave the context.

    Examples:
        /unpin 12
    """
    unpinned = await unpin(services.journal, services.current.target(), message)
    return Text(f'No longer pinned: #{unpinned.id} "{shortened(unpinned.content)}".')


@GROUP.command("at")
async def at(services: Services, time: Annotated[Span, TIME]) -> Report:
    """Show the context as it was at an earlier time.

    Chorus computes it from the log and the operations in effect then. The system prompt and the documents are today's.

    Examples:
        /context at 2h
        /context at yesterday
        /context at monday 9am
    """
    target = services.current.target()
    moment = time.before(services.clock.now())
    past = await services.context.past(target, moment)
    view, hours = past.view, past.request_settings.target.persona.settings.context_hours
    heard = [row for row in view.messages if row.id not in view.withheld]
    amount = f"{counted(len(heard), 'message')}, ~{sum(map(tokens_of, heard)):,} tokens"
    lines = [
        f"The context at {local(moment)}, with a window of {in_hours(hours)}: {amount}.",
        "Earlier system prompts and documents are not kept; a request would have today's.",
        *filter(None, [past.withheld_notice]),
    ]
    then = past.request_settings.target
    if then.thread_id != target.thread_id:
        lines.insert(1, f"Thread #{then.thread_number} had this context; this thread was forked from it later.")
    if view.summary is not None:
        folded = counted(sum(row.id not in view.withheld for row in view.folded), "message")
        lines.append(f"The first {folded} were summarised as: {shortened(view.summary.content, _LONGEST_SUMMARY)}")
    names = target.persona.speakers
    rows = [(local(row.timestamp), told_by(row.role, names), shortened(row.content)) for row in heard]
    table = [Table("", ("Time", "From", "Message"), tuple(rows))] if rows else []
    return Report((Text("\n".join(lines)), *table))


async def follow_fork(services: Services, reversed_: Operation | Spoken) -> str:
    """After an undo or a redo of a fork, go to the last used thread and say so; an undo stops replies in the fork."""
    if not isinstance(reversed_, Operation) or not isinstance(reversed_.act, Fork):
        return ""
    await services.current.turn_to_last_thread()
    target = services.current.target()
    if target.thread_id == reversed_.thread_id:
        return f".\nThread #{target.thread_number} is open again, and you are in it."
    not_sent = services.replies.not_sent_line([reversed_.thread_id or 0])
    await services.replies.stop(reversed_.thread_id or 0)
    numbers = await numbers_of(services.context.store, target.persona.slug)
    closed = numbers.thread(reversed_.thread_id or 0)
    told = f".\nThread #{closed} is closed; you are in thread #{target.thread_number}."
    return f"{told}\n{not_sent}" if not_sent else told


async def named(services: Services, done: Operation | Spoken) -> str:
    """Name a turn or an operation; say how many threads a boundary concerns."""
    name = await services.context.store.read(operation_rows.name_of, done)
    if not isinstance(done, Operation) or not done.act.is_boundary or done.thread_id is not None:
        return name
    return name + await _in_all_threads(services, done)


async def reversal_line(services: Services, done: Operation | Spoken, *, is_undone: bool) -> str:
    """Say that an operation or a turn was undone or redone, and which window or reply is in force now."""
    told = f"{'Undone' if is_undone else 'Redone'}: {await named(services, done)}"
    act = done.act if isinstance(done, Operation) else None
    if isinstance(act, Window):
        return f"{told}; it is {act.result(is_undone=is_undone)} again."
    if isinstance(act, Greeting) or (isinstance(act, Retry) and not act.message):
        exchange = await services.current.last_exchange()
        return f'{told}\nIn context: "{shortened(exchange.reply)}"' if exchange and exchange.reply else told
    if is_undone and isinstance(done, Spoken) and (names := await _carried_out(services, done)):
        return f"{told}\nChorus cannot undo what {enumerated(names)} did."
    return told


async def _carried_out(services: Services, question: Spoken) -> list[str]:
    """Return the names of the server tools that ran in a turn."""
    rows = await services.context.store.read(message_rows.of_turn, question.id)
    refused = {row.tool_call_id for row in rows if row.role is Role.TOOL_RESULT and row.status is Status.FAILED}
    used = [row for row in rows if row.role is Role.TOOL_USE and row.tool_call_id not in refused]
    names = (called_name(row.tool_calls or "") for row in used)
    return [*dict.fromkeys(name for name in names if BETWEEN in name)]


async def redone_lines(services: Services, redone: Operation | Spoken) -> str:
    """Say that an operation or a turn was redone, and which thread is open again."""
    return await reversal_line(services, redone, is_undone=False) + await follow_fork(services, redone)


async def _in_all_threads(services: Services, done: Operation | None = None) -> str:
    """Say how many threads an act on all threads concerns: `` in all 3 threads of Frodo``; empty if there is one."""
    threads = await services.threads.open_threads()
    number = sum(done is None or done.concerns(each.id) for each in threads)
    those = f"all {number}" if number == len(threads) else f"{number}"
    return f" in {those} threads of {services.current.target().persona.name}" if number > 1 else ""


SUMMARY: CommandGroup[Services] = CommandGroup("context")

_EDIT = "edit"
_MOST_RUNS = 6


def _edit_word(text: str, _now: datetime) -> str:
    if text.casefold() != _EDIT:
        raise CommandError(f"/context summary takes only the argument edit, not {quoted(text)}.")
    return _EDIT


FOCUS = replace(TEXT, name="focus", help="what the summary should focus on")
_MEANING = "open it in your editor"
EDIT_WORD = Parameter(_EDIT, _edit_word, _MEANING, lambda _services, _text: [Candidate(_EDIT, _MEANING)])


@SUMMARY.command("compact", aliases=("compact",), stoppable=True)
async def compact(services: Services, focus: Annotated[str, FOCUS] = "") -> Text:
    """Summarise the older part of the conversation now.

    The last two turns stay word for word. Nothing is deleted; /undo brings the messages back. This happens
    automatically when a conversation nears the limit of its model.

    Examples:
        /context compact
        /compact what we decided about the bridge
    """
    summary, number = await services.folding.fold_all(services.current.target(), " ".join(focus.split()))
    told = f"{counted(number, 'message')} summarised; the summary has ~{summary.token_count or 0:,} tokens."
    return Text(f"{told} /undo reverts this.\n\n{summary.content}")


@SUMMARY.command("summary")
async def show_summary(services: Services, edit: Annotated[str, EDIT_WORD] = "") -> Reply:
    """Show the summary of the older part, or edit it in your editor.

    From then on the model gets your version; /undo restores the old one.

    Examples:
        /context summary
        /context summary edit
    """
    snapshot = await services.context.snapshot(services.current.target(), services.clock.now())
    summary = snapshot.view.summary
    if summary is None:
        return Text("There is no summary of this context. /compact summarises all but its last two turns.")
    if edit:
        return await _edited(services, snapshot, summary)
    return Text(f"{_described(snapshot.view, summary)}\n\n{summary.content}")


async def _edited(services: Services, snapshot: ContextSnapshot, summary: Summary) -> Reply:

    async def store(text: str) -> Reply | Refused:
        content = cleaned_input(text)[0].strip()
        if await services.folding.reword(snapshot, content) is None:
            return OVERTAKEN
        return Text("Summary replaced. /undo restores the previous one.")

    edited = await services.drafts.edit("summary.md", f"{summary.content}\n")
    return await answered(services.drafts, edited, store, "The summary")


def _described(view: View, summary: Summary) -> str:
    number = counted(len(usable(view.folded)), "message")
    runs = [f"#{first}" if first == last else f"#{first} to #{last}" for first, last in summary.stands_for]
    ids = ", ".join([*runs[:_MOST_RUNS], *(["…"] if len(runs) > _MOST_RUNS else [])])
    author = summary.model or "you"
    return (
        f"Summary of {number} ({ids}), by {author}, {local(summary.created_at)}, ~{summary.token_count or 0:,} tokens. "
        f"/context undo {summary.number} reverts it."
    )
