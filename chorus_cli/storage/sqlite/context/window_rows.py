"""How much of a thread the window holds, counted without reading it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.log import operations as journal
from chorus_cli.core.time import timestamps
from chorus_cli.storage.sqlite.log import operation_rows

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class WindowFill:
    """The messages since the boundary: those in the window, those that the widest window reaches, the oldest of them.

    What an edit or a restore put into the context counts as old as that operation. ``last_spoken`` is ``None`` when
    nothing was said since the boundary and it put nothing in.
    """

    held: int
    reachable: int
    oldest: datetime | None
    last_spoken: datetime | None


def window_fill(
    connection: sqlite3.Connection, persona: str, thread_id: int, since: datetime, earliest: datetime
) -> WindowFill:
    """Count what is younger than ``since`` and than ``earliest``; the cost follows the latter, never the log."""
    base = journal.base(operation_rows.since_base(connection, persona, thread_id))
    values = {
        "thread_id": thread_id,
        "since": timestamps.to_text(since),
        "earliest": timestamps.to_text(earliest),
        "after": base.after_message_id if base else 0,
    }
    reachable, held, oldest = connection.execute(
        "SELECT COUNT(*), COALESCE(SUM(timestamp > :since), 0), MIN(timestamp) FROM messages "
        "INDEXED BY messages_of_thread WHERE thread_id = :thread_id AND timestamp > :earliest AND id > :after "
        "AND introduced_by IS NULL AND content <> ''",
        values,
    ).fetchone()
    members = len(base.members) if base else 0
    held += members if base and base.created_at > since else 0
    reachable += members if base and base.created_at > earliest else 0
    entered = [base.created_at] if base and members and base.created_at > earliest else []
    newest = connection.execute(
        "SELECT timestamp FROM (SELECT id, timestamp FROM messages WHERE thread_id = :thread_id "
        "ORDER BY timestamp DESC LIMIT 1) WHERE id > :after",
        values,
    ).fetchone()
    said = _moment(newest[0] if newest else None) or (base.created_at if base and members else None)
    moments = [moment for moment in (_moment(oldest), *entered) if moment is not None]
    return WindowFill(held, reachable, min(moments, default=None), said)


def moments(connection: sqlite3.Connection, thread_id: int, since: datetime) -> list[datetime]:
    """Return when something was said in a thread after ``since``; other wordings of it do not count."""
    found = connection.execute(
        "SELECT timestamp FROM messages INDEXED BY messages_of_thread "
        "WHERE thread_id = ? AND timestamp > ? AND revises IS NULL",
        (thread_id, timestamps.to_text(since)),
    ).fetchall()
    return [moment for moment in (_moment(text) for (text,) in found) if moment is not None]


def _moment(text: str | None) -> datetime | None:
    """Read a time; one that cannot be read is told where the message is shown, not where messages are only counted."""
    try:
        return timestamps.from_text(text) if text else None
    except ValueError:
        return None
