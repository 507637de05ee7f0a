"""Views of threads for counts, notices, forks and edits, and the threads with a reply in progress.

A fork copies no rows. An undo of the fork closes the thread that it opened; a redo reopens the thread.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rules.preamble import ActiveThread
from chorus_cli.context.rules.view import ContextSnapshot, Reason, View, put_in, reasons_outside, view
from chorus_cli.core.errors import JournalError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.core.time.timeline import MAXIMUM_CONTEXT_HOURS
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import input_rows, message_rows, operation_rows, thread_lists, thread_rows
from chorus_cli.log.rows.interrupted_replies import Interrupted, interrupted_reply
from chorus_cli.log.rows.message_rows import counted_moment
from chorus_cli.log.rules.acts import Fork, Undo
from chorus_cli.log.rules.calls import called_name
from chorus_cli.log.rules.journal import ThreadJournal, concerns_memory, log_marks
from chorus_cli.log.rules.messages import Message, Role, Status, is_written, runs, turns
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.log.rules.threads import Exchange, last_exchange
from chorus_cli.models.rules.budget import tokens_of
from chorus_cli.personas.rules.persona import Target
from chorus_cli.storage.port import Connection

NOT_IN_CONTEXT = (
    "Message #{} is not in context here. /search shows the numbers of messages; /context edit brings a message back "
    "into context."
)
_MARK = re.compile(r" \(fork(?: \d+)?\)\Z")
_LONGEST_BASE = 53
_AT_FIRST = 8
_EVER = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)
_LIGHT = (
    "id, thread_id, COALESCE(turn_id, id), "
    "content <> '' OR tool_calls IS NOT NULL OR attachments IS NOT NULL AS is_written, "
    "timestamp, token_count, introduced_by, revises, superseded, role, model, status = 'streaming'"
)
"""The columns that the rules of the view depend on."""


def _light(row: tuple[Any, ...]) -> Message:
    """Return a message with only the fields that the view depends on; its content is ``x`` or, if empty, ``""``."""
    id_, thread_id, turn_id, is_written, timestamp, tokens, introduced_by, revises, superseded, role, *reply = row
    model, is_streaming = reply
    return Message(
        id_,
        "",
        thread_id,
        turn_id,
        Role(role),
        "x" if is_written else "",
        counted_moment(timestamp) or _LATEST,
        status=Status.STREAMING if is_streaming else Status.COMPLETE,
        model=model,
        token_count=tokens,
        introduced_by=introduced_by,
        revises=revises,
        superseded=bool(superseded),
    )


def _light_rows(connection: Connection, journal: ThreadJournal, since: datetime) -> list[Message]:
    """Return ``_light`` rows for a view: those after ``since`` and the boundary, and those that operations put in."""
    cursor = connection.execute(
        f"SELECT {_LIGHT} FROM messages INDEXED BY messages_of_thread "
        f"WHERE thread_id = :thread AND timestamp > :since AND id > :after AND {message_rows.THERE} "
        f"UNION SELECT {_LIGHT} FROM messages WHERE id IN (SELECT value FROM json_each(:put_in)) "
        f"AND {message_rows.THERE}",
        {
            "thread": journal.thread_id,
            "since": timestamps.to_text(since),
            "after": journal.boundary.after_message_id if journal.boundary else 0,
            "put_in": json.dumps([*put_in(journal, since)]),
        },
    )
    return [_light(row) for row in cursor.fetchall()]


def number_in_view(connection: Connection, journal: ThreadJournal, since: datetime, model: str) -> int:
    """Count the messages of a window that are sent to ``model`` word for word, without reading their texts."""
    rows, summaries = _light_rows(connection, journal, since), snapshot_rows.summaries_of(connection, journal)
    seen = replace(view(rows, journal, since, summaries), heard_by=model).verbatim
    return sum(is_written(row) and row.status is not Status.STREAMING for row in seen)


def turns_of_any_age(connection: Connection, journal: ThreadJournal) -> set[int]:
    """Return the ids of the turns that would be in context if no message were too old."""
    rows = _light_rows(connection, journal, timestamps.BEGINNING)
    return {row.turn_id for row in view(rows, journal, timestamps.BEGINNING).messages}


def newest_in_context(connection: Connection, journal: ThreadJournal) -> tuple[Message, ...]:
    """Return the newest messages of the view, of any age; read more and more rows until the last turn is whole."""
    thread_id, after = journal.thread_id, journal.boundary.after_message_id if journal.boundary else 0
    number, included = _AT_FIRST, [each.members_in(thread_id) for each in journal.operations]
    while True:
        newest = thread_lists.newest_ids(connection, thread_id, after, number)
        members = [id_ for each in included for id_ in each[-number:]]
        seen = view(message_rows.rows(connection, {*newest, *members}), journal, _EVER).messages
        are_all = len(newest) < number and all(len(each) <= number for each in included)
        if are_all or (seen and seen[0].turn_id != seen[-1].turn_id):
            return seen
        number *= 4


def last_exchange_of(connection: Connection, persona: str, thread_id: int) -> Exchange | None:
    """Return the last turn of the view, whatever its age; ``None`` if the view is empty."""
    return last_exchange(newest_in_context(connection, snapshot_rows.thread_journal(connection, persona, thread_id)))


class WindowFill(NamedTuple):
    """The number of messages in the window (``held``) and in the widest window (``reachable``), and two times.

    ``oldest`` is the time of the oldest reachable message, ``None`` without any; messages that the boundary put in are
    as old as the boundary, and messages that later operations keep do not count. ``last_spoken`` is ``None`` if the
    boundary put nothing in and nothing was said since.
    """

    held: int
    reachable: int
    oldest: datetime | None
    last_spoken: datetime | None


def window_fill(
    connection: Connection, persona: str, thread_id: int, since: datetime, earliest: datetime
) -> WindowFill:
    """Count the messages in the window, which begins at ``since``, and in the widest one, from ``earliest`` on."""
    journal = snapshot_rows.thread_journal(connection, persona, thread_id)
    rows, boundary = _light_rows(connection, journal, earliest), journal.boundary
    reachable, given = _seen(rows, journal, earliest), put_in(journal, earliest)
    said = [row.timestamp for row in reachable if row.id not in given]
    younger = [row for row in rows if row.timestamp > since or row.id in given]
    entered = boundary.created_at if boundary and boundary.members_in(thread_id) else None
    reached = [*said, *([entered] if entered and entered > earliest else [])]
    after, members = (boundary.after_message_id, {*boundary.members_in(thread_id)}) if boundary else (0, set[int]())
    spoken = (row for row in newest_in_context(connection, journal) if row.id > after and row.id not in members)
    return WindowFill(
        held=len(_seen(younger, journal, since)),
        reachable=len(reachable),
        oldest=min(reached, default=None),
        last_spoken=max((row.timestamp for row in spoken), default=entered),
    )


def read_on_arrival(connection: Connection, target: Target, now: datetime) -> tuple[WindowFill, Interrupted | None]:
    """Return how full the window is, and any interrupted reply in it. Other rows are read only to notice damage."""
    slug, thread_id = target.persona.slug, target.thread_id
    since = cutoff(now, target.persona.settings.context_hours)
    fill = window_fill(connection, slug, thread_id, since, min(since, cutoff(now, MAXIMUM_CONTEXT_HOURS)))
    interrupted = interrupted_reply(connection, slug, thread_id, since)
    input_rows.newest(connection, slug)
    # Closed threads are not read: imports may have brought thousands.
    connection.execute("SELECT title FROM threads WHERE persona = ? AND closed_at IS NULL", (slug,)).fetchall()
    return fill, interrupted


def _seen(rows: Sequence[Message], journal: ThreadJournal, since: datetime) -> list[Message]:
    return [row for row in view(rows, journal, since).messages if is_written(row)]


class Outside(NamedTuple):
    """The messages outside a view: number and tokens by reason, and the times of those that only the boundary hides."""

    messages: Counter[Reason]
    tokens: Counter[Reason]
    moments: list[datetime]


def count_outside(connection: Connection, persona: str, thread_id: int, view: View) -> Outside:
    """Count messages outside the view; of several wordings, only the first counts."""
    operations = operation_rows.all_of(connection, persona, thread_id)
    brought = operation_rows.said_elsewhere(connection, persona, thread_id)
    cursor = connection.execute(
        f"SELECT {_LIGHT} FROM messages WHERE thread_id = ? OR id IN (SELECT value FROM json_each(?))",
        (thread_id, json.dumps([*brought])),
    )
    rows = {row.id: row for row in map(_light, cursor.fetchall())}
    outside, marks = Outside(Counter(), Counter(), []), log_marks(operations, thread_id)
    for id_, reason in reasons_outside(thread_id, rows.values(), operations, view).items():
        outside.messages[reason] += 1
        outside.tokens[reason] += tokens_of(rows[id_])
        if reason is Reason.BOUNDARY and not marks.is_out(rows[id_]):
            outside.moments.append(rows[id_].timestamp)
    return outside


def forkable(view: View, through_id: int | None = None) -> View:
    """Return the view without turns in progress, up to the turn of ``through_id``; raise `JournalError` if empty."""
    if through_id is not None:
        view = view.through(_end_of_turn(view, through_id))
    running = {row.turn_id for row in view.messages if row.status is Status.STREAMING}
    if through_id is not None and any(row.id == through_id and row.turn_id in running for row in view.messages):
        raise JournalError(f"Message #{through_id} is still being answered. Fork the thread when the reply is done.")
    complete = tuple(row for row in view.messages if row.turn_id not in running)
    if not any(map(is_written, complete)):
        reason = "only a turn that is still being answered is in context" if running else "nothing is in context here"
        raise JournalError(f"There is nothing to fork: {reason}. /thread new opens an empty thread.")
    is_whole = complete[: view.folded_number] == view.folded
    return replace(view if is_whole else replace(view, summary=None, folded_number=0), messages=complete)


def title_of_fork(title: str) -> str:
    """Return the title of the thread that a fork of the thread ``title`` opens: ``Rome (fork)``."""
    return f"{shortened(without_mark(title), _LONGEST_BASE)} (fork)".lstrip()


def without_mark(title: str) -> str:
    """Return a title in one line without the mark of a fork."""
    return _MARK.sub("", " ".join(title.split()))


def _end_of_turn(view: View, message_id: int) -> int:
    """Return how many messages the view has up to the end of a message's turn; refuse a message outside the view."""
    end = 0
    for turn in turns(view.messages):
        end += len(turn)
        if any(row.id == message_id for row in turn):
            return end
    raise JournalError(NOT_IN_CONTEXT.format(message_id))


def fork(connection: Connection, snapshot: ContextSnapshot, through_id: int | None, now: datetime) -> Operation:
    """Open a thread with the context of a snapshot, up to the turn of ``through_id`` if given; mark it last used."""
    persona, origin = snapshot.request_settings.target.persona.slug, snapshot.request_settings.target.thread_id
    if through_id is not None:
        through_id = present_wording(connection, snapshot.view.messages, through_id)
    seen = forkable(snapshot.view, through_id)
    origin_number, name = thread_rows.number_and_name(connection, origin)
    thread_id = thread_rows.new(connection, persona, title_of_fork(name), now).id
    act = Fork(origin=origin, origin_number=origin_number, summarised=seen.folded_number)
    members = tuple(row.id for row in seen.messages)
    operation = operation_rows.introduce(connection, NewOperation(persona, act, now, thread_id, members=members))
    if seen.summary is not None:
        stands_for = runs(row.id for row in seen.folded)
        carried = replace(seen.summary, operation_id=operation.id, boundary_id=operation.id, stands_for=stands_for)
        snapshot_rows.store(connection, persona, thread_id, carried)
    thread_rows.use(connection, persona, thread_id)
    return operation


def reverse(connection: Connection, new: NewOperation, forked: Operation) -> None:
    """Undo a fork, close its thread and return to the origin if that is open; or redo a fork and reopen its thread."""
    operation_rows.introduce_reversal(connection, new)
    thread_id, closed_at = forked.thread_id or 0, timestamps.to_text(new.created_at)
    is_undo = isinstance(new.act, Undo)
    connection.execute(
        "UPDATE threads SET closed_at = CASE WHEN ? THEN COALESCE(closed_at, ?) END WHERE id = ?",
        (is_undo, closed_at, thread_id),
    )
    if is_undo:
        wanted = forked.act.origin if isinstance(forked.act, Fork) else 0
        if not thread_rows.is_open(connection, new.persona, wanted):
            wanted = thread_rows.last_used_or_new(connection, new.persona, new.created_at).id
        thread_id = wanted
    thread_rows.use(connection, new.persona, thread_id)


def present_wording(connection: Connection, seen: Sequence[Message], message_id: int) -> int:
    """Return the id of the present wording of a message among ``seen``; ``message_id`` itself if there is none."""
    if any(row.id == message_id for row in seen):
        return message_id
    for row in seen:
        earlier = row.revises
        while earlier is not None and earlier != message_id:
            earlier = next((known.revises for known in message_rows.rows(connection, [earlier])), None)
        if earlier == message_id:
            return row.id
    return message_id


def replaced_before(connection: Connection, view: View, row: Message, thread_id: int) -> set[int]:
    """Return the ids of the earlier questions, or of the earlier replies, that ``row`` has replaced in its turn.

    A new retry replaces these messages too, so that undoing an earlier retry or edit brings back no second reply.
    """
    seen, is_question = {each.id for each in view.messages}, row.role is Role.USER
    known = (*view.taken_back, *message_rows.rows_since(connection, thread_id, row.turn_id, view.cutoff))
    of_turn = [each for each in known if each.turn_id == row.turn_id and (each.role is Role.USER) is is_question]
    # In a thread that a fork opened, the first wording may be a row of the origin.
    worded = {each.revises for each in (row, *of_turn) if each.revises is not None}
    return ({each.id for each in of_turn} | worded) - seen


class EditableRows(NamedTuple):
    """A thread's history with the messages that a fork put in, its operations, and the newest message id of the log."""

    history: list[Message]
    operations: list[Operation]
    newest_id: int


def editable_rows(connection: Connection, persona: str, thread_id: int, shown_since: datetime | None) -> EditableRows:
    """Read the history since ``shown_since``, or all of it, with all operations."""
    history: list[Message] = []
    after = 0
    while page := message_rows.history(connection, persona, thread_id, shown_since, after):
        history += page
        after = page[-1].id
    elsewhere = message_rows.rows(connection, operation_rows.said_elsewhere(connection, persona, thread_id))
    # An operation that put a row into the other thread does not concern this thread.
    history += [
        row._replace(introduced_by=None) for row in elsewhere if shown_since is None or row.timestamp > shown_since
    ]
    return EditableRows(
        history=sorted(history, key=lambda row: row.id),
        operations=operation_rows.all_of(connection, persona, thread_id),
        newest_id=message_rows.newest_id(connection),
    )


def newest_change(operations: Sequence[Operation]) -> int:
    """Return the id of the newest operation that changes which messages are in context; 0 if there is none."""
    by_id = {operation.id: operation for operation in operations}
    changes = (each.id for each in operations if each.act.changes_messages and not concerns_memory(each, by_id))
    return max(changes, default=0)


def introduce_unless_overtaken(connection: Connection, new: NewOperation, expected: int) -> Operation | None:
    """Store an operation if ``expected`` is still the newest change of the context; otherwise return ``None``."""
    if newest_change(operation_rows.all_of(connection, new.persona, new.thread_id or 0)) != expected:
        return None
    return operation_rows.introduce(connection, new)


def others_at_work(
    connection: Connection, persona: str, thread_id: int, in_progress: Iterable[int]
) -> list[ActiveThread]:
    """Return the other threads of a persona that the rows ``in_progress`` belong to, in order of number."""
    rows = message_rows.rows(connection, in_progress)
    # If two processes write replies in one thread, the newer reply counts.
    by_thread = {row.thread_id: row for row in rows if row.persona == persona and row.thread_id != thread_id}
    return sorted(_active(connection, row) for row in by_thread.values())


def thread_at_work(connection: Connection, thread_id: int, question: str, now: datetime) -> ActiveThread:
    """Return the thread whose next turn begins ``now`` with ``question``."""
    number, name = thread_rows.number_and_name(connection, thread_id)
    return ActiveThread(number, name or question, now)


def _active(connection: Connection, row: Message) -> ActiveThread:
    question = next(iter(message_rows.rows(connection, [row.turn_id])), row)
    turn = message_rows.replies(connection, question)
    replies = [each for each in turn if each.role is Role.ASSISTANT and each.introduced_by == row.introduced_by]
    made_at = "SELECT created_at FROM operations WHERE id = ?"
    retried = connection.execute(made_at, (row.introduced_by,)).fetchone()
    return ActiveThread(
        *thread_rows.number_and_name(connection, row.thread_id),
        timestamps.from_text(retried[0]) if retried else question.timestamp,
        max(1, len(replies)),
        has_words=bool(row.content.strip()),
        tool=called_name(row.tool_calls or "") if row.role is Role.TOOL_USE else "",
    )
