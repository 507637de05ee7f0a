"""Single values of the whole installation, such as the persona last used."""

from __future__ import annotations

from chorus_cli.storage.port import Connection

# The keys, and the meaning of their values. A persona's slug follows a colon, unless the comment names something else.
LAST_PERSONA = "last_persona"
BROKEN_OFF_THREADS = "broken_off_threads"  # threads with broken-off replies that no chat has reported
PURGE = "purge"  # a purge that is decided but not complete, as JSON
NEWEST_PURGE = "newest_purge"  # the operation of the newest purge that has overwritten rows
LAST_THREAD = "last_thread:"  # the thread that was last used
THREADS_BEFORE = "threads_before:"  # the newest thread of earlier personas with the same folder
WINDOW = "window:"  # the window that the journal noted last, as JSON
LINKS_TOLD = "links_told:"  # the sentences about files in other folders that the user saw last
CALIBRATION = "calibration:"  # a model follows: how far estimates of its tokens were off
MEMORY_RENEWED = "memory_renewed:"  # when the scores of the memory items were last computed
FOLD_FAILED = "fold_failed:"  # a thread's id follows: the thread's newest message when its last fold failed
TOOLS_REFUSED = "tools_refused:"  # a model follows: when it refused tools
SEARCH_INDEX = "search_index"  # how far the search index has come, as JSON


def plain_history(thread_id: int, model: str) -> str:
    """Return the key of the boundary after which a model gets the turns of a thread as plain text."""
    return f"plain_history:{thread_id}:{model}"


def value(connection: Connection, key: str) -> str | None:
    """Return the text under ``key``; ``None`` if there is none."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def taken(connection: Connection, key: str) -> str | None:
    """Delete the text under ``key`` and return it; ``None`` if there was none."""
    found = value(connection, key)
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))
    return found


def store(connection: Connection, key: str, text: str) -> None:
    """Store ``text`` under ``key``, in place of the old one."""
    connection.execute(
        "INSERT INTO meta VALUES (:key, :text) ON CONFLICT(key) DO UPDATE SET value = :text", {"key": key, "text": text}
    )
