"""What the view of a thread is computed from, read in one go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chorus_cli.core.context.view import view
from chorus_cli.core.log import operations as journal
from chorus_cli.storage.sqlite.context import summary_rows
from chorus_cli.storage.sqlite.log import message_rows, operation_rows

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

    from chorus_cli.core.context.summary import Summary
    from chorus_cli.core.context.view import View
    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.log.operations import Operation


@dataclass(frozen=True, slots=True)
class ContextRows:
    """The operations since a thread's base, the rows that may be in view, and when something was last said.

    ``since`` is where the window begins. ``summaries`` are those of the folds that count.
    """

    since: datetime
    operations: list[Operation]
    messages: list[Message]
    last_spoken: datetime | None
    summaries: list[Summary] = field(default_factory=list)


def context_rows(connection: sqlite3.Connection, persona: str, thread_id: int, since: datetime) -> ContextRows:
    """Read them; the cost follows the window and the operations since the base, never the log."""
    operations = operation_rows.since_base(connection, persona, thread_id)
    base = journal.base(operations)
    after = base.after_message_id if base else 0
    messages = message_rows.rows_since(connection, thread_id, after, since)
    if base is not None and base.members and base.created_at > since:
        messages += message_rows.rows(connection, set(base.members) - {message.id for message in messages})
    summaries = summary_rows.of_effective_folds(connection, thread_id, operations)
    last_spoken = message_rows.last_spoken_at(connection, thread_id)
    return ContextRows(since, operations, messages, last_spoken, summaries)


def view_of(rows: ContextRows, thread_id: int) -> View:
    """Return the view that rows of the store make."""
    return view(thread_id, rows.messages, rows.operations, rows.since, rows.summaries)
