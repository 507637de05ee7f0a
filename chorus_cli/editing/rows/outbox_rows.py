"""Stores texts that are not said yet: input at a prompt, waiting messages, and texts from rescue files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import thread_rows
from chorus_cli.storage.port import Connection

NO_RUN = "-"
"""A run whose name begins like this counts as ended; its texts belong to no process."""

_TITLE = "Rescued texts"


class Unsaid(NamedTuple):
    """A text by the user to a persona, or by the persona (see ``role``). If it ``is_sent``, the log may have it too."""

    persona: str
    content: str
    is_sent: bool = False
    role: str = "user"


class Left(NamedTuple):
    """A text of a run, with the id of its row; ``thread_id`` is the thread of a waiting message, ``None`` for input."""

    text: Unsaid
    at: datetime
    run: str
    thread_id: int | None = None
    id: int = 0


class BroughtIn(NamedTuple):
    """A persona, the number of the thread that its rescued texts were put into, and the number of texts."""

    persona: str
    thread_number: int
    texts: int


def hold(connection: Connection, run: str, texts: Iterable[Unsaid], now: datetime) -> None:
    """Replace the stored texts from the prompt of a run with ``texts``."""
    connection.execute("DELETE FROM outbox WHERE run = ? AND thread_id IS NULL", (run,))
    for text in texts:
        add(connection, Left(text, now, run))


def add(connection: Connection, new: Left) -> int:
    """Store a text, and return the id of its row."""
    (id_,) = connection.execute(
        "INSERT INTO outbox(persona, content, is_sent, role, created_at, run, thread_id) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "RETURNING id",
        (*new.text, timestamps.to_text(new.at), new.run, new.thread_id),
    ).fetchone()
    return int(id_)


def take_over(connection: Connection, texts: Iterable[Left]) -> None:
    """Store texts from rescue files, except texts that an interrupted attempt has stored already."""
    for each in texts:
        key = "(run, persona, content, is_sent, role) = (?, ?, ?, ?, ?)"
        if connection.execute(f"SELECT 1 FROM outbox WHERE {key}", (each.run, *each.text)).fetchone() is None:
            add(connection, each)


def drop(connection: Connection, ids: Collection[int]) -> None:
    """Delete rows."""
    connection.executemany("DELETE FROM outbox WHERE id = ?", [(id_,) for id_ in ids])


def let_go(connection: Connection, id_: int) -> None:
    """Detach a row from its process, as if the process had ended."""
    connection.execute("UPDATE outbox SET run = ? WHERE id = ?", (NO_RUN, id_))


def claim(connection: Connection, left: Sequence[Left], run: str, now: datetime) -> tuple[Unsaid, ...]:
    """Move texts of ended runs to the prompt of ``run``; return the texts that no other process claimed first."""
    statement = "UPDATE outbox SET run = ?, thread_id = NULL, is_sent = 0, created_at = ? WHERE id = ? AND run = ?"
    values = (run, timestamps.to_text(now))
    return tuple(
        each.text._replace(is_sent=False)
        for each in left
        if connection.execute(statement, (*values, each.id, each.run)).rowcount
    )


def left_by_ended(connection: Connection, is_alive: Callable[[str], bool]) -> tuple[Left, ...]:
    """Return the texts of runs that have ended, oldest first."""
    rows = connection.execute(
        "SELECT persona, content, is_sent, role, created_at, run, thread_id, id FROM outbox ORDER BY created_at, id"
    ).fetchall()
    ended = {run for run in {row[5] for row in rows} if run.startswith(NO_RUN) or not is_alive(run)}
    return tuple(
        Left(Unsaid(persona, content, bool(is_sent), role), timestamps.from_text(at), run, *rest)
        for persona, content, is_sent, role, at, run, *rest in rows
        if run in ended
    )


def bring_in(connection: Connection, left: Sequence[Left], now: datetime) -> tuple[BroughtIn, ...]:
    """Move texts from their rows into the log, for each persona into a closed thread, so that no context has them."""
    from chorus_cli.log.rows import message_rows  # noqa: PLC0415 - the prompt does not need it
    from chorus_cli.log.rules.messages import MessageContent, Role  # noqa: PLC0415 - likewise

    drop(connection, [each.id for each in left])
    brought = []
    for persona in sorted({each.text.persona for each in left}):
        own = [each for each in left if each.text.persona == persona]
        thread = thread_rows.new(connection, persona, _TITLE, now)
        for text, at, *_ in own:
            content = MessageContent(thread.id, Role(text.role), text.content, at)
            id_ = message_rows.insert_row(connection, persona, content)
            connection.execute("UPDATE messages SET turn_id = id WHERE id = ?", (id_,))
        thread_rows.close(connection, [thread.id], now)
        brought.append(BroughtIn(persona, thread.number, len(own)))
    return tuple(brought)
