"""Threads: the conversations of a persona, which always has at least one. The prompt needs this module."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.errors import ThreadError, UnknownThreadError
from chorus_cli.core.time import timestamps
from chorus_cli.storage import meta_rows

FIRST_WORDS = (
    "(SELECT SUBSTR(content, 1, 400) FROM messages INDEXED BY messages_of_thread "
    "WHERE thread_id = {thread} AND role = 'user' AND purged_by IS NULL ORDER BY timestamp, id LIMIT 1)"
)
"""The beginning of a thread's first message: the name of a thread without a title."""
OWN = f"id > COALESCE((SELECT value FROM meta WHERE key = '{meta_rows.THREADS_BEFORE}' || persona), 0) + 0"
"""The threads of a persona, without those of an earlier one of its folder."""


class ThreadKey(NamedTuple):
    """A thread by its id, which its rows hold, and by its number, which the user sees and types."""

    id: int
    number: int


def last_used(connection: sqlite3.Connection, persona: str) -> ThreadKey | None:
    """Return the open thread of a persona that was used last, else its newest one, ``None`` if it has none yet."""
    row = connection.execute(
        "SELECT id, number FROM threads WHERE persona = :persona AND closed_at IS NULL "
        "ORDER BY id = (SELECT value FROM meta WHERE key = :key) DESC, id DESC LIMIT 1",
        {"persona": persona, "key": meta_rows.LAST_THREAD + persona},
    ).fetchone()
    return ThreadKey(*row) if row else None


def last_used_or_new(connection: sqlite3.Connection, persona: str, now: datetime) -> ThreadKey:
    """Return the thread that was last used, or open the first one."""
    return last_used(connection, persona) or new(connection, persona, "", now)


def new(connection: sqlite3.Connection, persona: str, title: str, now: datetime) -> ThreadKey:
    """Open another thread of a persona."""
    cursor = connection.execute(
        "INSERT INTO threads(persona, title, created_at) VALUES (?, ?, ?)", (persona, title, timestamps.to_text(now))
    )
    # A trigger gives the number, which RETURNING would not know yet.
    return _key(connection, int(cursor.lastrowid or 0))


def numbers(connection: sqlite3.Connection, persona: str) -> dict[int, int]:
    """Return the numbers of all threads of a persona by their ids."""
    return dict(connection.execute("SELECT id, number FROM threads WHERE persona = ?", (persona,)).fetchall())


def numbered(connection: sqlite3.Connection, persona: str, number: int) -> ThreadKey:
    """Return the thread of a persona with a number; refuse one that it does not have."""
    row = connection.execute(
        f"SELECT id, number FROM threads WHERE persona = :persona AND number = :number AND {OWN}",
        {"persona": persona, "number": number},
    ).fetchone()
    if row is None:
        raise UnknownThreadError(f"#{number}")
    return ThreadKey(*row)


def number_and_name(connection: sqlite3.Connection, thread_id: int) -> tuple[int, str]:
    """Return the number of a thread, and its title or, if it has none, the beginning of its first message."""
    number, name = connection.execute(
        "SELECT COALESCE((SELECT number FROM threads WHERE id = :id), :id), "
        "COALESCE(NULLIF((SELECT title FROM threads WHERE id = :id), ''), "
        f"{FIRST_WORDS.format(thread=':id')}, '')",
        {"id": thread_id},
    ).fetchone()
    return int(number), str(name)


def titles(connection: sqlite3.Connection, persona: str) -> set[str]:
    """Return the titles of all threads of a persona, closed ones among them."""
    found = connection.execute("SELECT title FROM threads WHERE persona = ?", (persona,))
    return {str(title) for (title,) in found}


def is_open(connection: sqlite3.Connection, persona: str, thread_id: int) -> bool:
    """Return whether a persona has such a thread that is not closed."""
    (found,) = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM threads WHERE id = ? AND persona = ? AND closed_at IS NULL)", (thread_id, persona)
    ).fetchone()
    return bool(found)


def open_numbered(connection: sqlite3.Connection, persona: str, number: int) -> ThreadKey:
    """Return the open thread of a persona with a number; refuse a closed one."""
    found = numbered(connection, persona, number)
    if not is_open(connection, persona, found.id):
        raise ThreadError(f"Thread #{number} is closed. /thread {number} in the chat opens it again.")
    return found


def close(connection: sqlite3.Connection, thread_ids: Iterable[int], now: datetime) -> None:
    """Close threads; those that are closed already stay closed since then."""
    connection.executemany(
        "UPDATE threads SET closed_at = ? WHERE id = ? AND closed_at IS NULL",
        [(timestamps.to_text(now), id_) for id_ in thread_ids],
    )


def leave_behind(connection: sqlite3.Connection, persona: str, now: datetime) -> None:
    """Close every thread of an earlier persona of a folder, so that the new one does not see them."""
    found = connection.execute("SELECT id FROM threads WHERE persona = ?", (persona,)).fetchall()
    close(connection, [id_ for (id_,) in found], now)
    meta_rows.store(connection, meta_rows.THREADS_BEFORE + persona, str(max((id_ for (id_,) in found), default=0)))


def use(connection: sqlite3.Connection, persona: str, thread_id: int) -> ThreadKey:
    """Remember the thread to go on with, open it again if it is closed, and return it."""
    cursor = connection.execute(
        "UPDATE threads SET closed_at = NULL WHERE id = ? AND persona = ?", (thread_id, persona)
    )
    if not cursor.rowcount:
        number, _ = number_and_name(connection, thread_id)
        raise UnknownThreadError(f"#{number}")
    meta_rows.store(connection, meta_rows.LAST_THREAD + persona, str(thread_id))
    return _key(connection, thread_id)


def rename(connection: sqlite3.Connection, thread_id: int, title: str) -> None:
    """Give a thread a title; an empty one leaves it to its first message."""
    connection.execute("UPDATE threads SET title = ? WHERE id = ?", (title, thread_id))


def had(connection: sqlite3.Connection, persona: str, number: int, after: int = 0) -> ThreadKey:
    """Return the thread with a number that a persona has, or had; refuse any other with a list of its threads.

    With ``after``, closed threads count only if they have a message with a larger id.
    """
    asked = {"persona": persona, "after": after}
    found = connection.execute(
        "SELECT number, id FROM threads WHERE persona = :persona AND (closed_at IS NULL OR :after = 0 "
        "OR EXISTS (SELECT 1 FROM messages WHERE thread_id = threads.id AND id > :after))",
        asked,
    )
    known: dict[int, int] = dict(found)
    if number not in known:
        # Rows put in with plain SQL may name a thread of another persona, which has only its id here.
        known |= connection.execute(
            "SELECT thread_id, thread_id FROM messages WHERE persona = :persona AND id > :after "
            "AND thread_id NOT IN (SELECT id FROM threads WHERE persona = :persona)",
            asked,
        )
    if number not in known:
        listed = ", ".join(f"#{each}" for each in sorted(known))
        named = f"Its threads are {listed}." if known else "It has no thread yet."
        raise ThreadError(f"There is no thread #{number} of {persona}. {named}")
    return ThreadKey(known[number], number)


def writers(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return the threads with a reply in progress, each with the run that writes it: one look at an index."""
    return connection.execute(
        "SELECT DISTINCT thread_id, COALESCE(run, '') FROM messages WHERE status = 'streaming'"
    ).fetchall()


def _key(connection: sqlite3.Connection, thread_id: int) -> ThreadKey:
    return ThreadKey(*connection.execute("SELECT id, number FROM threads WHERE id = ?", (thread_id,)).fetchone())
