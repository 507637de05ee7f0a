"""Threads: lines of conversation of a persona, which always has at least one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core import timestamps
from chorus_cli.storage import meta_rows

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime


def last_used(connection: sqlite3.Connection, persona: str) -> int:
    """Return the open thread of a persona that was talked in last, else its newest, 0 when it has none yet."""
    row = connection.execute(
        "SELECT id FROM threads WHERE persona = :persona AND closed_at IS NULL "
        "ORDER BY id = (SELECT value FROM meta WHERE key = :key) DESC, id DESC LIMIT 1",
        {"persona": persona, "key": meta_rows.last_thread_key(persona)},
    ).fetchone()
    return int(row[0]) if row else 0


def last_used_or_new(connection: sqlite3.Connection, persona: str, now: datetime) -> int:
    """Return the thread to go on with, opening a persona's first if need be."""
    known = last_used(connection, persona)
    if known:
        return known
    cursor = connection.execute(
        "INSERT INTO threads(persona, created_at) VALUES (?, ?)", (persona, timestamps.to_text(now))
    )
    return int(cursor.lastrowid or 0)
