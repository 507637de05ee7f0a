"""Small facts about the whole installation, such as who was talked to last."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

LAST_PERSONA = "last_persona"


def last_thread_key(persona: str) -> str:
    """Return the key of the thread that was last talked in with ``persona``."""
    return f"last_thread:{persona}"


def calibration_key(model: str) -> str:
    """Return the key of what was learned of how ``model`` counts tokens."""
    return f"calibration:{model}"


def value(connection: sqlite3.Connection, key: str) -> str | None:
    """Return what was stored under ``key``."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def store(connection: sqlite3.Connection, key: str, text: str) -> None:
    """Store ``text`` under ``key``, in place of what was there."""
    connection.execute(
        "INSERT INTO meta VALUES (:key, :text) ON CONFLICT(key) DO UPDATE SET value = :text", {"key": key, "text": text}
    )
