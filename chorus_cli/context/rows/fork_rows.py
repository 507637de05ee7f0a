"""Rows that a context begins with: those of a fork from another thread, and those that an edit can bring in.

The messages stay rows of the other thread. Undoing the operation closes the thread, redoing it opens it again.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.core.errors import JournalError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows, operation_rows, thread_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Fork, Undo
from chorus_cli.log.rules.messages import Status, is_written, runs, turns
from chorus_cli.log.rules.operations import NewOperation

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from chorus_cli.context.rules.view import ContextSnapshot, View
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.log.rules.operations import Operation


_MARK = re.compile(r" \(fork(?: \d+)?\)\Z")
_LONGEST_TITLE = 60


def forkable(view: View, through_id: int | None = None) -> View:
    """Return the view without turns in progress, and only up to the turn of message ``through_id`` if that is given.

    The summary stays where it stands for the beginning of the messages still.

    Raises:
        JournalError: nothing is left.
    """
    if through_id is not None:
        view = view.through(_end_of_turn(view, through_id))
    running = {row.turn_id for row in view.messages if row.status is Status.STREAMING}
    if through_id is not None and any(row.id == through_id and row.turn_id in running for row in view.messages):
        raise JournalError(
            f"The turn of message #{through_id} is still being answered. Fork it when the reply is there."
        )
    complete = tuple(row for row in view.messages if row.turn_id not in running)
    if not any(map(is_written, complete)):
        reason = "only a turn that is still being answered is in context" if running else "nothing is in context here"
        raise JournalError(f"There is nothing to fork: {reason}. /thread new opens an empty thread.")
    is_whole = complete[: view.folded_number] == view.folded
    return replace(view if is_whole else replace(view, summary=None, folded_number=0), messages=complete)


def title_of_fork(title: str, taken: Collection[str]) -> str:
    """Return the title of a fork: ``Rome (fork)``, or with a number if that title is among those ``taken``."""
    base = _MARK.sub("", " ".join(title.split()))
    number, mark = 1, "(fork)"
    while True:
        found = f"{shortened(base, _LONGEST_TITLE - len(mark) - 1)} {mark}".lstrip()
        if found not in taken:
            return found
        number += 1
        mark = f"(fork {number})"


def _end_of_turn(view: View, message_id: int) -> int:
    """Return the number of messages up to the end of the turn that a message of the view stands in."""
    end = 0
    for turn in turns(view.messages):
        end += len(turn)
        if any(row.id == message_id for row in turn):
            return end
    raise JournalError(
        f"Message #{message_id} is not in context here, so nothing was forked. /search shows the numbers of messages, "
        "/context edit brings one back into context."
    )


def fork(connection: sqlite3.Connection, snapshot: ContextSnapshot, through_id: int | None, now: datetime) -> Operation:
    """Open a thread with the context of a snapshot, up to the turn of message ``through_id`` if that is given.

    The next run goes on in it.
    """
    persona, origin = snapshot.target.persona.slug, snapshot.target.thread_id
    if through_id is not None:
        through_id = _present_wording(connection, snapshot.view, through_id)
    seen = forkable(snapshot.view, through_id)
    origin_number, name = thread_rows.number_and_name(connection, origin)
    title = title_of_fork(name, thread_rows.titles(connection, persona))
    thread_id = thread_rows.new(connection, persona, title, now).id
    act = Fork(origin=origin, origin_number=origin_number, summarised=seen.folded_number)
    members = tuple(row.id for row in seen.messages)
    operation = operation_rows.introduce(connection, NewOperation(persona, act, now, thread_id, members=members))
    if seen.summary is not None:
        stands_for = runs(row.id for row in seen.folded)
        carried = replace(seen.summary, operation_id=operation.id, boundary_id=operation.id, stands_for=stands_for)
        snapshot_rows.store(connection, persona, thread_id, carried)
    thread_rows.use(connection, persona, thread_id)
    return operation


def reverse(connection: sqlite3.Connection, new: NewOperation, forked: Operation) -> None:
    """Store the undo or the redo of a fork, close or open its thread, and let the next run go on where that leads.

    An undo leads back to the thread that was forked or, if that is closed, to the one last used.
    """
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


def _present_wording(connection: sqlite3.Connection, view: View, message_id: int) -> int:
    """Return the message of the view that is another wording of a message, or the message itself."""
    if any(row.id == message_id for row in view.messages):
        return message_id
    for row in view.messages:
        earlier = row.revises
        while earlier is not None and earlier != message_id:
            [known] = message_rows.rows(connection, [earlier])
            earlier = known.revises
        if earlier == message_id:
            return row.id
    return message_id


class EditableRows(NamedTuple):
    """The thread's history, all its operations, and the newest id of all.

    The messages of another thread that a fork has put into this one belong to its history.
    """

    history: list[Message]
    operations: list[Operation]
    newest_id: int


def editable_rows(
    connection: sqlite3.Connection, persona: str, thread_id: int, shown_since: datetime | None
) -> EditableRows:
    """Read the history as far back as it is to be shown."""
    history: list[Message] = []
    after = 0
    while page := message_rows.history(connection, persona, thread_id, shown_since, after):
        history += page
        after = page[-1].id
    elsewhere = message_rows.rows(connection, operation_rows.said_elsewhere(connection, persona, thread_id))
    # An operation that put such a row into its own thread does not concern this one.
    history += [
        row._replace(introduced_by=None) for row in elsewhere if shown_since is None or row.timestamp > shown_since
    ]
    return EditableRows(
        history=sorted(history, key=lambda row: row.id),
        operations=operation_rows.all_of(connection, persona, thread_id),
        newest_id=message_rows.newest_id(connection),
    )


def newest_change(operations: Sequence[Operation]) -> int:
    """Return the newest operation of the user's that changes what is in context, 0 when there is none."""
    by_id = {operation.id: operation for operation in operations}
    changes = (each.id for each in operations if each.act.changes_messages and not journal.concerns_memory(each, by_id))
    return max(changes, default=0)


def introduce_unless_overtaken(connection: sqlite3.Connection, new: NewOperation, expected: int) -> Operation | None:
    """Store an operation that was prepared when ``expected`` was the newest change; ``None`` if it no longer is."""
    if newest_change(operation_rows.all_of(connection, new.persona, new.thread_id or 0)) != expected:
        return None
    return operation_rows.introduce(connection, new)
