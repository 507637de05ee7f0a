"""What the view of a thread is computed from, read in one go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chorus_cli.core import operations as journal
from chorus_cli.core.view import view
from chorus_cli.storage import message_log, operation_log, summary_rows

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

    from chorus_cli.core.messages import Message
    from chorus_cli.core.operations import Operation
    from chorus_cli.core.summary import Summary
    from chorus_cli.core.view import View


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
    operations = operation_log.since_base(connection, persona, thread_id)
    base = journal.base(operations)
    after = base.after_message_id if base else 0
    messages = message_log.rows_since(connection, thread_id, after, since)
    if base is not None and base.members and base.created_at > since:
        messages += message_log.rows(connection, set(base.members) - {message.id for message in messages})
    summaries = summary_rows.of_effective_folds(connection, thread_id, operations)
    last_spoken = message_log.last_spoken_at(connection, thread_id)
    return ContextRows(since, operations, messages, last_spoken, summaries)


def view_of(rows: ContextRows, thread_id: int) -> View:
    """Return the view that rows of the store make."""
    return view(thread_id, rows.messages, rows.operations, rows.since, rows.summaries)
