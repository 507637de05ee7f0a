"""The prompt's input history of each persona, for Up, Down and Ctrl-R."""

from __future__ import annotations

from datetime import datetime

from chorus_cli.core import limits
from chorus_cli.core.time import timestamps
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection

MOST_ROWS = limits.INPUT_LINES.most
"""The largest number of inputs that are kept for each persona."""


def newest(connection: Connection, persona: str) -> list[str]:
    """Return the input history of a persona, newest first."""
    found = connection.execute(
        "SELECT content FROM input_history WHERE persona = ? ORDER BY id DESC LIMIT ?", (persona, MOST_ROWS)
    ).fetchall()
    return [content for (content,) in found]


def marked(connection: Connection, persona: str) -> tuple[list[str], str]:
    """Return the input history of a persona, newest first, and the mark of the newest purge."""
    return newest(connection, persona), purge_mark(connection)


def purge_mark(connection: Connection) -> str:
    """Return a mark that changes with every purge, because a purge may delete inputs."""
    return meta_rows.value(connection, meta_rows.NEWEST_PURGE) or ""


def add(connection: Connection, persona: str, content: str, now: datetime) -> None:
    """Add an input, unless it is very long or the same as the last, and delete the oldest inputs beyond the limit."""
    if len(content) > limits.INPUT_LINE.most:
        return
    last = connection.execute(
        "SELECT content FROM input_history WHERE persona = ? ORDER BY id DESC LIMIT 1", (persona,)
    ).fetchone()
    if last is not None and last[0] == content:
        return
    connection.execute(
        "INSERT INTO input_history(persona, content, created_at) VALUES (?, ?, ?)",
        (persona, content, timestamps.to_text(now)),
    )
    connection.execute(
        "DELETE FROM input_history WHERE persona = :persona AND id <= "
        "(SELECT id FROM input_history WHERE persona = :persona ORDER BY id DESC LIMIT 1 OFFSET :most)",
        {"persona": persona, "most": MOST_ROWS},
    )
