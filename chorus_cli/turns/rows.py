"""Threads with a reply in progress, read from the rows that live processes are writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.context.rules.preamble import ActiveThread
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows, thread_rows
from chorus_cli.log.rules.calls import called_name
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from datetime import datetime

    from chorus_cli.log.rules.messages import Message


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
    number, name = thread_rows.number_and_name(connection, thread_id)
    return ActiveThread(number, name or question, now)


def _active(connection: sqlite3.Connection, row: Message) -> ActiveThread:
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
