"""What all threads of a persona have in context, read in one go, so that a session is of one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core import timestamps
from chorus_cli.storage.context_rows import ContextRows, context_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class PersonaRows:
    """The titles of the threads that may have something in context, and what their views are computed from.

    The active thread is always among them. ``operation_id`` is the newest operation of all.
    """

    titles: Mapping[int, str]
    rows: Mapping[int, ContextRows]
    operation_id: int


def persona_rows(connection: sqlite3.Connection, persona: str, active_thread_id: int, since: datetime) -> PersonaRows:
    """Read them; the cost follows the window, never the number of threads or of messages."""
    found = connection.execute(
        "SELECT thread_id, COALESCE(threads.title, '') FROM ("
        "SELECT :active AS thread_id "
        "UNION SELECT thread_id FROM messages INDEXED BY messages_of_persona "
        "WHERE persona = :persona AND timestamp > :since "
        "UNION SELECT messages.thread_id FROM operations "
        "JOIN operation_members ON operation_id = operations.id JOIN messages ON messages.id = message_id "
        "WHERE operations.persona = :persona AND operations.created_at > :since"
        ") LEFT JOIN threads ON threads.id = thread_id ORDER BY thread_id",
        {"persona": persona, "active": active_thread_id, "since": timestamps.to_text(since)},
    ).fetchall()
    (operation_id,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM operations").fetchone()
    titles: dict[int, str] = dict(found)
    rows = {thread_id: context_rows(connection, persona, thread_id, since) for thread_id in titles}
    return PersonaRows(titles, rows, operation_id)
