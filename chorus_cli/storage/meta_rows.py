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
LAST_THREAD = "last_thread:"
"""The key, with a persona's slug behind it, of the thread of the persona that was last used."""
THREADS_BEFORE = "threads_before:"
"""The key, with a slug behind it, of the newest thread of an earlier persona of that folder."""
WINDOW = "window:"
"""The key, with a persona's slug behind it, of the window that its journal has noted last, as JSON."""
CALIBRATION = "calibration:"
"""The key, with a model behind it, of the calibration of its token counts."""
MEMORY_RENEWED = "memory_renewed:"
"""The key, with a persona's slug behind it, of the time when its memory items last got their scores anew."""
FOLD_FAILED = "fold_failed:"
"""The key, with a thread's id behind it, of its newest message at the time when its last fold failed."""
TOOLS_REFUSED = "tools_refused:"
"""The key, with a model behind it, of the time at which it refused tools."""
PLAIN_HISTORY = "plain_history:"
"""The key, with a thread's id and a model behind it, of the boundary since which the model gets it as plain text."""


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
