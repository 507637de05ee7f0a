"""The condition for messages that count: those that were neither taken back nor replaced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.marks import log_marks

if TYPE_CHECKING:
    import sqlite3

    from chorus_cli.log.rules.marks import LogMarks

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
