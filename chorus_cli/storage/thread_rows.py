"""Threads: lines of conversation of a persona, which always has at least one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core import timestamps

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime


def current(connection: sqlite3.Connection, persona: str) -> int:
    """Return the newest open thread of a persona, 0 when it has none yet."""
    row = connection.execute(
        "SELECT id FROM threads WHERE persona = ? AND closed_at IS NULL ORDER BY id DESC LIMIT 1", (persona,)
    ).fetchone()
    return int(row[0]) if row else 0


def current_or_new(connection: sqlite3.Connection, persona: str, now: datetime) -> int:
    """Return the newest open thread of a persona, opening its first if need be."""
    known = current(connection, persona)
    if known:
        return known
    cursor = connection.execute(
        "INSERT INTO threads(persona, created_at) VALUES (?, ?)", (persona, timestamps.to_text(now))
    )
    return int(cursor.lastrowid or 0)
