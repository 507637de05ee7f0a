"""Threads: the conversations of a persona."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.errors import ThreadError, UnknownThreadError
from chorus_cli.core.text.phrases import first_few
from chorus_cli.core.time import timestamps
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection

FIRST_WORDS = (
    "(SELECT SUBSTR(content, 1, 400) FROM messages INDEXED BY messages_of_thread "
    "WHERE thread_id = {thread} AND role = 'user' AND purged_by IS NULL ORDER BY timestamp, id LIMIT 1)"
)
"""SQL: the beginning of the user's first message in a thread, which names a thread without a title."""
OWN = f"id > COALESCE((SELECT CAST(value AS BIGINT) FROM meta WHERE key = '{meta_rows.THREADS_BEFORE}' || persona), 0)"
"""The SQL condition that a thread does not belong to an earlier persona of the same folder."""


class ThreadKey(NamedTuple):
    """A thread by its id, which its rows hold, and by its number, which the user sees and types."""

    id: int
    number: int


def last_used(connection: Connection, persona: str) -> ThreadKey | None:
    """Return the open thread of a persona that was used last, or else the newest open one; ``None`` if none is open."""
    last = int(meta_rows.value(connection, meta_rows.LAST_THREAD + persona) or 0)
    is_open = "persona = ? AND closed_at IS NULL ORDER BY id = ? DESC, id DESC LIMIT 1"
    return _found(connection, is_open, (persona, last))


def last_used_or_new(connection: Connection, persona: str, now: datetime) -> ThreadKey:
    """Return the open thread that was last used; if none is open, make a new one."""
    return last_used(connection, persona) or new(connection, persona, "", now)


def new(connection: Connection, persona: str, title: str, now: datetime) -> ThreadKey:
    """Make another thread of a persona, and return its key."""
    (id_,) = connection.execute(
        "INSERT INTO threads(persona, title, created_at) VALUES (?, ?, ?) RETURNING id",
        (persona, title, timestamps.to_text(now)),
    ).fetchone()
    # A trigger sets the number after the insert, so RETURNING would not return it.
    return _key(connection, id_)


def numbers(connection: Connection, persona: str) -> dict[int, int]:
    """Return the numbers of all threads of a persona by their ids."""
    return dict(connection.execute("SELECT id, number FROM threads WHERE persona = ?", (persona,)).fetchall())


def numbered(connection: Connection, persona: str, number: int) -> ThreadKey:
    """Return the thread of a persona with a number; raise `UnknownThreadError` if there is none."""
    if found := _found(connection, f"persona = ? AND number = ? AND {OWN}", (persona, number)):
        return found
    raise UnknownThreadError(f"#{number}")


def number_and_name(connection: Connection, thread_id: int) -> tuple[int, str]:
    """Return the number of a thread, and its title or, if it has none, the beginning of its first message."""
    number, name = connection.execute(
        "SELECT COALESCE((SELECT number FROM threads WHERE id = :id), :id), "
        "COALESCE(NULLIF((SELECT title FROM threads WHERE id = :id), ''), "
        f"{FIRST_WORDS.format(thread=':id')}, '')",
        {"id": thread_id},
    ).fetchone()
    return int(number), str(name)


def is_open(connection: Connection, persona: str, thread_id: int) -> bool:
    """Return whether the persona has the thread, and the thread is open."""
    (found,) = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM threads WHERE id = ? AND persona = ? AND closed_at IS NULL)", (thread_id, persona)
    ).fetchone()
    return bool(found)


def last_spoken_in(connection: Connection, persona: str) -> ThreadKey | None:
    """Return the thread of the newest message that the user sent, ``None`` if there is none."""
    newest = "SELECT thread_id FROM messages WHERE persona = ? AND role = 'user' AND introduced_by IS NULL"
    return _found(connection, f"id = ({newest} ORDER BY id DESC LIMIT 1) AND {OWN}", (persona,))


def close(connection: Connection, thread_ids: Iterable[int], now: datetime) -> None:
    """Close threads; a thread that is closed already keeps its time of closing."""
    connection.executemany(
        "UPDATE threads SET closed_at = ? WHERE id = ? AND closed_at IS NULL",
        [(timestamps.to_text(now), id_) for id_ in thread_ids],
    )


def leave_behind(connection: Connection, persona: str, now: datetime) -> None:
    """Close every thread of an earlier persona of a folder, so that the new persona does not see them."""
    found = connection.execute("SELECT id FROM threads WHERE persona = ?", (persona,)).fetchall()
    close(connection, [id_ for (id_,) in found], now)
    meta_rows.store(connection, meta_rows.THREADS_BEFORE + persona, str(max((id_ for (id_,) in found), default=0)))


def use(connection: Connection, persona: str, thread_id: int) -> ThreadKey:
    """Open a thread, store it as last used, and return its key; raise `UnknownThreadError` if the persona lacks it."""
    cursor = connection.execute(
        "UPDATE threads SET closed_at = NULL WHERE id = ? AND persona = ?", (thread_id, persona)
    )
    if not cursor.rowcount:
        number, _ = number_and_name(connection, thread_id)
        raise UnknownThreadError(f"#{number}")
    meta_rows.store(connection, meta_rows.LAST_THREAD + persona, str(thread_id))
    return _key(connection, thread_id)


def rename(connection: Connection, thread_id: int, title: str) -> None:
    """Give a thread a title; if the title is empty, the first message names the thread."""
    connection.execute("UPDATE threads SET title = ? WHERE id = ?", (title, thread_id))


def had(connection: Connection, persona: str, number: int, after: int = 0) -> ThreadKey:
    """Return the thread with a number, of this or an earlier persona of the folder; else raise `ThreadError`.

    With ``after``, a closed thread counts only if it has a message with a larger id.
    """
    asked = {"persona": persona, "after": after}
    found = connection.execute(
        "SELECT number, id FROM threads WHERE persona = :persona AND (closed_at IS NULL OR :after = 0 "
        "OR EXISTS (SELECT 1 FROM messages WHERE thread_id = threads.id AND id > :after))",
        asked,
    )
    known: dict[int, int] = dict(found)
    if number not in known:
        # Plain SQL may have put in a row whose thread the persona does not have; the id of such a thread is its number.
        known |= connection.execute(
            "SELECT thread_id, thread_id FROM messages WHERE persona = :persona AND id > :after "
            "AND thread_id NOT IN (SELECT id FROM threads WHERE persona = :persona)",
            asked,
        )
    if number not in known:
        listed = first_few([f"#{each}" for each in sorted(known)])
        named = f"Its threads are {listed}." if known else "It has no thread yet."
        raise ThreadError(f"There is no thread #{number} of {persona}. {named}")
    return ThreadKey(known[number], number)


def writers(connection: Connection) -> list[tuple[int, str]]:
    """Return the ids of the threads with a reply in progress, each with the run that writes the reply."""
    return connection.execute(
        "SELECT DISTINCT thread_id, COALESCE(run, '') FROM messages WHERE status = 'streaming'"
    ).fetchall()


def _found(connection: Connection, condition: str, values: Sequence[object]) -> ThreadKey | None:
    row = connection.execute(f"SELECT id, number FROM threads WHERE {condition}", values).fetchone()
    return ThreadKey(*row) if row else None


def _key(connection: Connection, thread_id: int) -> ThreadKey:
    return ThreadKey(*connection.execute("SELECT id, number FROM threads WHERE id = ?", (thread_id,)).fetchone())
