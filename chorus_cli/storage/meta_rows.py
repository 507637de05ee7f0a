"""Single values of the whole installation, such as the persona last used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

LAST_PERSONA = "last_persona"
BROKEN_OFF_THREADS = "broken_off_threads"
"""The key of the threads whose replies ended with their process and that no chat has named yet."""
PURGE = "purge"
"""The key of a purge that was decided and is not complete."""
NEWEST_PURGE = "newest_purge"
"""The key of the newest operation that has overwritten rows of a purge."""


def last_thread_key(persona: str) -> str:
    """Return the key of the thread of ``persona`` that was last used."""
    return f"last_thread:{persona}"


def threads_before_key(persona: str) -> str:
    """Return the key of the newest thread of an earlier persona of the folder ``persona``."""
    return f"threads_before:{persona}"


def window_key(persona: str) -> str:
    """Return the key of the window of ``persona`` that its journal has noted last, as JSON."""
    return f"window:{persona}"


def calibration_key(model: str) -> str:
    """Return the key of the calibration of token counts for ``model``."""
    return f"calibration:{model}"


def memory_renewed_key(persona: str) -> str:
    """Return the key of the time when the scores of a persona's memory items were last renewed."""
    return f"memory_renewed:{persona}"


def fold_failed_key(thread_id: int) -> str:
    """Return the key of the newest message of a thread at the time when its last fold failed."""
    return f"fold_failed:{thread_id}"


def tools_refused_key(model: str) -> str:
    """Return the key of the time at which ``model`` refused tools."""
    return f"tools_refused:{model}"


def plain_history_key(thread_id: int, model: str) -> str:
    """Return the key of the boundary since which ``model`` is sent earlier turns of a thread as plain text."""
    return f"plain_history:{thread_id}:{model}"


def value(connection: sqlite3.Connection, key: str) -> str | None:
    """Return the text under ``key``, ``None`` if there is none."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def taken(connection: sqlite3.Connection, key: str) -> str | None:
    """Delete the text under ``key`` and return it, ``None`` if there was none."""
    found = value(connection, key)
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))
    return found


def store(connection: sqlite3.Connection, key: str, text: str) -> None:
    """Store ``text`` under ``key``, in place of the old one."""
    connection.execute(
        "INSERT INTO meta VALUES (:key, :text) ON CONFLICT(key) DO UPDATE SET value = :text", {"key": key, "text": text}
    )
