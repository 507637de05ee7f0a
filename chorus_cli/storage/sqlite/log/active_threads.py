"""Threads with a reply in progress, read from the rows that live processes are writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.context.preamble import ActiveThread
from chorus_cli.core.log.messages import Role
from chorus_cli.core.time import timestamps
from chorus_cli.core.tools.calls import called_name
from chorus_cli.storage.sqlite.log import message_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from datetime import datetime

    from chorus_cli.core.log.messages import Message

_TITLE_CHARACTERS = 400


def others(
    connection: sqlite3.Connection, persona: str, thread_id: int, in_progress: Iterable[int]
) -> list[ActiveThread]:
    """Return the other threads of a persona that the rows ``in_progress`` belong to, in order of number."""
    rows = message_rows.rows(connection, in_progress)
    # Should two processes have met in one thread, its newer reply counts.
    by_thread = {row.thread_id: row for row in rows if row.persona == persona and row.thread_id != thread_id}
    return sorted(_active(connection, row) for row in by_thread.values())


def beginning(connection: sqlite3.Connection, thread_id: int, question: str, now: datetime) -> ActiveThread:
    """Return the thread whose next turn begins ``now`` with ``question``."""
    return ActiveThread(thread_id, _title(connection, thread_id) or question, now)


def _active(connection: sqlite3.Connection, row: Message) -> ActiveThread:
    question = next(iter(message_rows.rows(connection, [row.turn_id])), row)
    turn = message_rows.replies(connection, question)
    replies = [each for each in turn if each.role is Role.ASSISTANT and each.introduced_by == row.introduced_by]
    return ActiveThread(
        row.thread_id,
        _title(connection, row.thread_id),
        _retried_at(connection, row.introduced_by) or question.timestamp,
        max(1, len(replies)),
        has_words=bool(row.content.strip()),
        tool=called_name(row.tool_calls or "") if row.role is Role.TOOL_USE else "",
    )


def _retried_at(connection: sqlite3.Connection, retry_id: int | None) -> datetime | None:
    found = connection.execute("SELECT created_at FROM operations WHERE id = ?", (retry_id,)).fetchone()
    return timestamps.from_text(found[0]) if found else None


def _title(connection: sqlite3.Connection, thread_id: int) -> str:
    """Return the title of a thread, or the beginning of its first message."""
    (title,) = connection.execute(
        "SELECT COALESCE(NULLIF((SELECT title FROM threads WHERE id = :thread), ''), "
        "(SELECT SUBSTR(content, 1, :characters) FROM messages INDEXED BY messages_of_thread "
        "WHERE thread_id = :thread AND role = 'user' ORDER BY timestamp, id LIMIT 1), '')",
        {"thread": thread_id, "characters": _TITLE_CHARACTERS},
    ).fetchone()
    return str(title)
