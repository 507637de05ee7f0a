"""Whether a message counts, and whether and when it was said: most of what an operation put in was not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rows.message_rows import counted_moment, stored_moment
from chorus_cli.log.rules.journal import NO_MARKS, log_marks
from chorus_cli.log.rules.messages import Status

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

    from chorus_cli.log.rules.journal import LogMarks

LIVE = (
    "COALESCE(introduced_by, 0) NOT IN (SELECT value FROM json_each(:undone)) "
    "AND COALESCE(turn_id, id) NOT IN (SELECT value FROM json_each(:undone_turns)) "
    "AND id NOT IN (SELECT value FROM json_each(:off)) "
    "AND (NOT superseded OR id IN (SELECT value FROM json_each(:back)))"
)
"""The rule of ``LogMarks`` in SQL: a message is neither undone nor replaced."""


def live_values(marks: LogMarks) -> dict[str, str]:
    """Return the parameters of ``LIVE``."""
    moved = marks.moved_off
    return {
        "undone": json.dumps([*marks.undone_operations]),
        "undone_turns": json.dumps([*marks.undone_turns]),
        "off": json.dumps([*marks.replaced, *(id_ for id_, is_off in moved.items() if is_off)]),
        "back": json.dumps([id_ for id_, is_off in moved.items() if not is_off]),
    }


def left_out_by_imports(connection: sqlite3.Connection, persona: str) -> dict[int, int]:
    """Return the numbers of messages that imports of a persona have left out of its threads, by the thread."""
    found = connection.execute(
        "WITH out(id, thread_id) AS ("
        "SELECT id, thread_id FROM messages WHERE superseded AND id NOT IN (SELECT value FROM json_each(:back)) "
        "UNION SELECT id, thread_id FROM messages WHERE id IN (SELECT value FROM json_each(:off)) "
        # Without an undone import no message is read.
        "UNION SELECT id, thread_id FROM messages WHERE json_array_length(:undone) > 0 "
        "AND thread_id IN (SELECT thread_id FROM imported_conversations WHERE persona = :persona) "
        "AND introduced_by IN (SELECT value FROM json_each(:undone))"
        ") SELECT thread_id, COUNT(*) FROM out GROUP BY thread_id",
        {"persona": persona, **live_values(import_marks(connection, persona))},
    )
    return dict(found.fetchall())


def import_marks(connection: sqlite3.Connection, persona: str | None = None) -> LogMarks:
    """Return the marks that imports of a persona or of all have left."""
    return log_marks(operation_rows.imports_of(connection, persona), 0)


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

    What an operation put in was not, but for the reply of a retry and for imported messages that count.
    """
    newest = connection.execute(
        "SELECT timestamp, id, persona, introduced_by FROM messages WHERE thread_id = ? "
        "ORDER BY timestamp DESC LIMIT 1",
        (thread_id,),
    ).fetchone()
    if newest is None:
        return None
    *moment, introduced_by = newest
    return stored_moment(*moment) if introduced_by is None else _last_among_introduced(connection, thread_id)


def _last_among_introduced(connection: sqlite3.Connection, thread_id: int) -> datetime | None:
    row = connection.execute(
        "SELECT timestamp, id, persona FROM messages WHERE thread_id = :thread "
        "AND (introduced_by IS NULL OR run IS NOT NULL "
        "OR introduced_by IN (SELECT id FROM operations WHERE kind = 'import')) "
        f"AND {LIVE} ORDER BY timestamp DESC LIMIT 1",
        {"thread": thread_id, **live_values(import_marks(connection))},
    ).fetchone()
    return stored_moment(*row) if row else None


def moments(connection: sqlite3.Connection, persona: str, thread_id: int, since: datetime) -> list[datetime]:
    """Return when something was said in a thread after ``since``.

    Other wordings of it do not count, nor what was taken back or replaced.
    """
    operations = operation_rows.all_of(connection, persona, thread_id)
    marks = log_marks(operations, thread_id) if operations else NO_MARKS
    found = connection.execute(
        "SELECT timestamp FROM messages INDEXED BY messages_of_thread "
        f"WHERE thread_id = :thread AND timestamp > :since AND revises IS NULL AND {LIVE}",
        {"thread": thread_id, "since": timestamps.to_text(since), **live_values(marks)},
    ).fetchall()
    read = (counted_moment(text) for (text,) in found)
    return [moment for moment in read if moment is not None and moment > since]
