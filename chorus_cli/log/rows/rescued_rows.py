"""Texts that the database once refused, brought into the log: as closed threads, outside of every context."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows, thread_rows
from chorus_cli.log.rules.messages import MessageContent, Role

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime

TITLE = "Rescued texts"


class RescuedText(NamedTuple):
    """A text, its persona, its role, and the time when it could not be stored."""

    persona: str
    role: Role
    content: str
    at: datetime


class BroughtIn(NamedTuple):
    """The thread of a persona that holds its texts now, by its number, and how many."""

    persona: str
    thread_number: int
    texts: int


def bring_in(connection: sqlite3.Connection, texts: Sequence[RescuedText], now: datetime) -> tuple[BroughtIn, ...]:
    """Store texts in a closed thread of each persona; those that an interrupted attempt has stored are left out."""
    brought = []
    for persona in sorted({text.persona for text in texts}):
        fresh = [text for text in texts if text.persona == persona and not _is_stored(connection, text)]
        if not fresh:
            continue
        thread = thread_rows.new(connection, persona, TITLE, now)
        for text in fresh:
            content = MessageContent(thread.id, text.role, text.content, text.at)
            id_ = message_rows.insert_row(connection, persona, content)
            connection.execute("UPDATE messages SET turn_id = id WHERE id = ?", (id_,))
        thread_rows.close(connection, [thread.id], now)
        brought.append(BroughtIn(persona, thread.number, len(fresh)))
    return tuple(brought)


def _is_stored(connection: sqlite3.Connection, text: RescuedText) -> bool:
    (found,) = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM messages JOIN threads ON threads.id = thread_id WHERE title = ? "
        "AND messages.persona = ? AND role = ? AND timestamp = ? AND content = ?)",
        (TITLE, text.persona, text.role, timestamps.to_text(text.at), text.content),
    ).fetchone()
    return bool(found)
