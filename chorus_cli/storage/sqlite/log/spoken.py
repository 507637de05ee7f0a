"""Whether and when something was said: most of what an operation put in was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.log.messages import Status
from chorus_cli.storage.sqlite.log.message_columns import stored_moment

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime


def is_spoken_after(connection: sqlite3.Connection, persona: str, after: int) -> bool:
    """Return whether something was said to or by a persona after message ``after``.

    What an operation put in was not said, but the reply of a retry was, unless it stayed empty.
    """
    cursor = connection.execute(
        "SELECT introduced_by, run, status, content FROM messages WHERE id > ? AND persona = ? ORDER BY id",
        (after, persona),
    )
    return any(
        introduced_by is None or (run is not None and (status == Status.STREAMING or content.strip()))
        for introduced_by, run, status, content in cursor
    )


def last_spoken_at(connection: sqlite3.Connection, thread_id: int) -> datetime | None:
    """Return when something was last said in a thread.

    What an operation put in was not, but for the reply of a retry and for imported messages.
    """
    row = connection.execute(
        "SELECT timestamp, id, persona FROM messages WHERE thread_id = ? AND (introduced_by IS NULL OR run IS NOT NULL "
        "OR introduced_by IN (SELECT id FROM operations WHERE kind = 'import')) ORDER BY timestamp DESC LIMIT 1",
        (thread_id,),
    ).fetchone()
    return stored_moment(*row) if row else None
