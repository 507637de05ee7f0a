"""Texts that are not said yet: what a prompt holds, and messages that wait.

A row belongs to a run as long as its process lives, and to nobody without a run.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.time import timestamps

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime


class State(StrEnum):
    """A text is being ``typed``, was ``sent`` and may be stored by now, or is a message or a line that waits."""

    TYPED = "typed"
    SENT = "sent"
    WAITING = "waiting"


class Unsaid(NamedTuple):
    """A text to a persona."""

    persona: str
    content: str
    state: State = State.TYPED


class Left(NamedTuple):
    """A text of a run that has ended, or of none, with the id of its row and its time."""

    id: int
    run: str | None
    text: Unsaid
    at: datetime


def hold(connection: sqlite3.Connection, run: str, texts: Sequence[Unsaid], now: datetime) -> None:
    """Store what the prompt of a run holds in place of what it held before."""
    found = connection.execute(
        "SELECT persona, content, state FROM outbox WHERE run = ? AND thread_id IS NULL ORDER BY id", (run,)
    ).fetchall()
    if found != [*map(tuple, texts)]:
        connection.execute("DELETE FROM outbox WHERE run = ? AND thread_id IS NULL", (run,))
        for text in texts:
            _insert(connection, (run, None, *text), now)


def keep(connection: sqlite3.Connection, run: str, thread_id: int, text: Unsaid, now: datetime) -> int:
    """Store a message for a thread, and return the id of its row."""
    return _insert(connection, (run, thread_id, *text), now)


def take_over(connection: sqlite3.Connection, text: Unsaid, at: datetime) -> None:
    """Store a text of no run, unless an interrupted attempt has stored it."""
    found = connection.execute(
        "SELECT 1 FROM outbox WHERE (persona, content, created_at) = (?, ?, ?)", (*text[:2], timestamps.to_text(at))
    ).fetchone()
    if found is None:
        _insert(connection, (None, None, *text), at)


def drop(connection: sqlite3.Connection, ids: Iterable[int]) -> int:
    """Delete rows, and return how many there were."""
    return sum(connection.execute("DELETE FROM outbox WHERE id = ?", (id_,)).rowcount for id_ in ids)


def let_go(connection: sqlite3.Connection, id_: int) -> None:
    """Let a row belong to no run."""
    connection.execute("UPDATE outbox SET run = NULL WHERE id = ?", (id_,))


def claim(
    connection: sqlite3.Connection, left: Sequence[Left], run: str, texts: Sequence[Unsaid], now: datetime
) -> bool:
    """Have the prompt of a run hold ``texts`` in place of rows that others left; return whether they still were there.

    Another start may have been first; then nothing is changed.
    """
    if drop(connection, [each.id for each in left]) < len(left):
        return False
    hold(connection, run, texts, now)
    return True


def left_by_ended(connection: sqlite3.Connection, is_alive: Callable[[str], bool]) -> tuple[Left, ...]:
    """Return the texts of no run that ``is_alive``, oldest first."""
    rows = connection.execute(
        "SELECT id, run, persona, content, state, created_at FROM outbox ORDER BY created_at, id"
    ).fetchall()
    living = {run for run in {run for _, run, *_ in rows} if run is not None and is_alive(run)}
    return tuple(
        Left(id_, run, Unsaid(persona, content, State(state)), timestamps.from_text(at))
        for id_, run, persona, content, state, at in rows
        if run not in living
    )


def those(connection: sqlite3.Connection, wanted: Callable[[str, str, str], bool]) -> dict[int, Unsaid]:
    """Return the texts of all runs, by the ids of their rows, that are ``wanted``, by content, persona and time."""
    rows = connection.execute("SELECT id, persona, content, created_at FROM outbox ORDER BY id").fetchall()
    return {id_: Unsaid(persona, content) for id_, persona, content, at in rows if wanted(content, persona, at)}


def _insert(connection: sqlite3.Connection, row: tuple[str | int | None, ...], now: datetime) -> int:
    cursor = connection.execute(
        "INSERT INTO outbox(run, thread_id, persona, content, state, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        (*row, timestamps.to_text(now)),
    )
    return cursor.lastrowid or 0
