"""The rows of a thread that can be edited into its context: its history or the young part of it, in one read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules import journal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.log.rules.messages import Message
    from chorus_cli.log.rules.operations import NewOperation, Operation


@dataclass(frozen=True, slots=True)
class EditableRows:
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
