"""Single values of the whole installation, such as the persona last used."""

from __future__ import annotations

import sqlite3

# The keys; one that ends with a colon is followed by a persona's slug, unless its comment says otherwise.
LAST_PERSONA = "last_persona"
BROKEN_OFF_THREADS = "broken_off_threads"  # those whose replies ended with their process and that no chat has named
PURGE = "purge"  # the one that was decided and is not complete
NEWEST_PURGE = "newest_purge"  # the newest operation that has overwritten rows of a purge
LAST_THREAD = "last_thread:"  # the thread that was last used
THREADS_BEFORE = "threads_before:"  # the newest thread of an earlier persona of that folder
WINDOW = "window:"  # the window that the journal has noted last, as JSON
CALIBRATION = "calibration:"  # of the token counts of a model
MEMORY_RENEWED = "memory_renewed:"  # the time when the memory items last got their scores anew
FOLD_FAILED = "fold_failed:"  # of a thread's id: its newest message at the time when its last fold failed
TOOLS_REFUSED = "tools_refused:"  # the time at which a model refused tools
PLAIN_HISTORY = "plain_history:"  # of a thread's id and a model: the boundary since which turns are sent as plain text


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
