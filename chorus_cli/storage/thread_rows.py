"""Threads: lines of conversation of a persona, which always has at least one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core import timestamps

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime


def current_or_first(connection: sqlite3.Connection, persona: str, now: datetime) -> int:
    """Return the thread that a persona was last used in, else its newest open one, else a new one."""
    last = connection.execute(
        "SELECT threads.id FROM meta JOIN threads ON threads.id = CAST(meta.value AS INTEGER) "
        "WHERE meta.key = 'thread:' || ?1 AND threads.persona = ?1 AND threads.closed_at IS NULL",
        (persona,),
    ).fetchone()
    row = (
        last
        or connection.execute(
            "SELECT id FROM threads WHERE persona = ? AND closed_at IS NULL ORDER BY id DESC LIMIT 1", (persona,)
        ).fetchone()
    )
    return int(row[0]) if row else create(connection, persona, now)


def create(connection: sqlite3.Connection, persona: str, now: datetime, title: str = "") -> int:
    """Open a new thread and return its number."""
    cursor = connection.execute(
        "INSERT INTO threads(persona, title, created_at) VALUES (?, ?, ?)", (persona, title, timestamps.to_text(now))
    )
    return int(cursor.lastrowid or 0)
