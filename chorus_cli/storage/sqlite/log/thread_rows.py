"""Threads: the conversations of a persona, which always has at least one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ThreadError
from chorus_cli.core.log.acts import ACTS
from chorus_cli.core.log.messages import Status
from chorus_cli.core.time import timestamps
from chorus_cli.storage.sqlite import meta_rows
from chorus_cli.storage.sqlite.log import message_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from datetime import datetime

    from chorus_cli.core.log.messages import Message


class ThreadKey(NamedTuple):
    """A thread by its id, which its rows hold, and by its number, which the user sees and types."""

    id: int
    number: int


class Thread(NamedTuple):
    """One line of conversation: its id, its number, its title or first words, and its ``status``.

    That is the status of its newest message, or streaming if any reply in it still arrives.
    """

    id: int
    number: int
    title: str
    created_at: datetime
    messages: int
    last_spoken: datetime | None
    status: Status | None


def last_used(connection: sqlite3.Connection, persona: str) -> ThreadKey | None:
    """Return the open thread of a persona that was used last, else its newest one, ``None`` if it has none yet."""
    row = connection.execute(
        "SELECT id, number FROM threads WHERE persona = :persona AND closed_at IS NULL "
        "ORDER BY id = (SELECT value FROM meta WHERE key = :key) DESC, id DESC LIMIT 1",
        {"persona": persona, "key": meta_rows.last_thread_key(persona)},
    ).fetchone()
    return ThreadKey(*row) if row else None


def last_used_or_new(connection: sqlite3.Connection, persona: str, now: datetime) -> ThreadKey:
    """Return the thread that was last used, or open the first one."""
    return last_used(connection, persona) or new(connection, persona, "", now)


def new(connection: sqlite3.Connection, persona: str, title: str, now: datetime) -> ThreadKey:
    """Open another thread of a persona."""
    cursor = connection.execute(
        "INSERT INTO threads(persona, title, created_at) VALUES (?, ?, ?)",
        (persona, title, timestamps.to_text(now)),
    )
    # A trigger gives the number, which RETURNING would not know yet.
    return _key(connection, int(cursor.lastrowid or 0))


def numbers(connection: sqlite3.Connection, persona: str) -> dict[int, int]:
    """Return the numbers of all threads of a persona by their ids."""
    return dict(connection.execute("SELECT id, number FROM threads WHERE persona = ?", (persona,)).fetchall())


def numbered(connection: sqlite3.Connection, persona: str, number: int) -> ThreadKey:
    """Return the thread of a persona with a number.

    Raises:
        ThreadError: there is none.
    """
    row = connection.execute(
        "SELECT id, number FROM threads WHERE persona = ? AND number = ?", (persona, number)
    ).fetchone()
    if row is None:
        raise _unknown(number)
    return ThreadKey(*row)


def open_numbered(connection: sqlite3.Connection, persona: str, number: int) -> ThreadKey:
    """Return the open thread of a persona with a number.

    Raises:
        ThreadError: there is none, or it is closed.
    """
    found = numbered(connection, persona, number)
    is_closed = "SELECT closed_at IS NOT NULL FROM threads WHERE id = ?"
    if connection.execute(is_closed, (found.id,)).fetchone()[0]:
        raise _closed(number)
    return found


def close(connection: sqlite3.Connection, thread_ids: Iterable[int], now: datetime) -> None:
    """Close threads; those that are closed already stay closed since then."""
    connection.executemany(
        "UPDATE threads SET closed_at = ? WHERE id = ? AND closed_at IS NULL",
        [(timestamps.to_text(now), id_) for id_ in thread_ids],
    )


def close_all(connection: sqlite3.Connection, persona: str, now: datetime) -> None:
    """Close every thread of a persona."""
    connection.execute(
        "UPDATE threads SET closed_at = ? WHERE persona = ? AND closed_at IS NULL", (timestamps.to_text(now), persona)
    )


def use(connection: sqlite3.Connection, persona: str, thread_id: int) -> ThreadKey:
    """Remember the thread to go on with, and return it.

    Raises:
        ThreadError: the persona has no such thread, or it is closed.
    """
    found = connection.execute(
        "SELECT number, closed_at IS NOT NULL FROM threads WHERE id = ? AND persona = ?", (thread_id, persona)
    ).fetchone()
    if found is None:
        raise _unknown(thread_id)
    number, is_closed = found
    if is_closed:
        raise _closed(number)
    meta_rows.store(connection, meta_rows.last_thread_key(persona), str(thread_id))
    return ThreadKey(thread_id, number)


def had(connection: sqlite3.Connection, persona: str, number: int, after: int = 0) -> ThreadKey:
    """Return the thread with a number that a persona has, or had.

    With ``after``, closed threads count only if they have a message with a larger id.

    Raises:
        ThreadError: it never had one; the sentence lists its threads.
    """
    found = connection.execute(
        "SELECT number, id FROM threads WHERE persona = :persona AND (closed_at IS NULL OR :after = 0 "
        "OR EXISTS (SELECT 1 FROM messages WHERE thread_id = threads.id AND id > :after)) ORDER BY number",
        {"persona": persona, "after": after},
    ).fetchall()
    known = dict(found)
    if number not in known:
        named = f"Its threads are {', '.join(f'#{each}' for each in known)}." if known else "It has no thread yet."
        raise ThreadError(f"There is no thread #{number} of {persona}. {named}")
    return ThreadKey(known[number], number)


def open_threads(connection: sqlite3.Connection, persona: str) -> list[Thread]:
    """Return the open threads of a persona, oldest first."""
    found = connection.execute(
        "SELECT id, number, title, created_at, "
        "(SELECT COUNT(*) FROM messages WHERE thread_id = threads.id), "
        "(SELECT MAX(timestamp) FROM messages WHERE thread_id = threads.id), "
        "(SELECT content FROM messages WHERE thread_id = threads.id AND role = 'user' ORDER BY timestamp LIMIT 1), "
        "COALESCE((SELECT status FROM messages WHERE status = 'streaming' AND thread_id = threads.id LIMIT 1), "
        "(SELECT status FROM messages WHERE thread_id = threads.id ORDER BY timestamp DESC, id DESC LIMIT 1)) "
        "FROM threads WHERE persona = ? AND closed_at IS NULL ORDER BY id",
        (persona,),
    ).fetchall()
    return [_thread(*row) for row in found]


def newest_messages(connection: sqlite3.Connection, persona: str, thread_id: int, number: int) -> list[Message]:
    """Return the newest messages of a thread of a persona, in the order of the log."""
    found = connection.execute(
        "SELECT id FROM messages INDEXED BY messages_of_thread WHERE thread_id = ? AND persona = ? "
        "ORDER BY timestamp DESC, id DESC LIMIT ?",
        (thread_id, persona, number),
    )
    return message_rows.rows(connection, [id_ for (id_,) in found])


def titles_in_context(
    connection: sqlite3.Connection, persona: str, active_thread_id: int, since: datetime
) -> dict[int, str]:
    """Return the titles of the threads that may have messages in context, always with the active one.

    The members of a boundary are as old as it, those of any other operation stay whatever their age. The cost grows
    with the window and the operations, not with the number of threads or messages.
    """
    found = connection.execute(
        "SELECT thread_id, COALESCE(threads.title, '') FROM ("
        "SELECT :active AS thread_id "
        "UNION SELECT thread_id FROM messages INDEXED BY messages_of_persona "
        "WHERE persona = :persona AND timestamp > :since "
        "UNION SELECT messages.thread_id FROM operations "
        "JOIN operation_members ON operation_id = operations.id JOIN messages ON messages.id = message_id "
        "WHERE operations.persona = :persona "
        "AND (operations.created_at > :since OR kind NOT IN (SELECT value FROM json_each(:boundaries)))"
        ") LEFT JOIN threads ON threads.id = thread_id ORDER BY thread_id",
        {
            "persona": persona,
            "active": active_thread_id,
            "since": timestamps.to_text(since),
            "boundaries": json.dumps([kind for kind, act in ACTS.items() if act.is_boundary]),
        },
    ).fetchall()
    return dict(found)


def _key(connection: sqlite3.Connection, thread_id: int) -> ThreadKey:
    return ThreadKey(*connection.execute("SELECT id, number FROM threads WHERE id = ?", (thread_id,)).fetchone())


def _closed(number: int) -> ThreadError:
    return ThreadError(f"Thread #{number} is closed. /thread lists the open ones.")


def _unknown(number: int) -> ThreadError:
    return ThreadError(f"There is no thread #{number} here. /thread lists them, /thread new opens one.")


def _thread(id_: int, number: int, title: str | None, created_at: str, *said: int | str | None) -> Thread:
    messages, last_spoken, first_words, status = said
    return Thread(
        id=id_,
        number=number,
        title=title or str(first_words or ""),
        created_at=timestamps.from_text(created_at),
        messages=int(messages or 0),
        last_spoken=timestamps.from_text(str(last_spoken)) if last_spoken else None,
        status=Status(str(status)) if status else None,
    )
