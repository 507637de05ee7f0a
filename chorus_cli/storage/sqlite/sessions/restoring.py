"""Restoring a session: one operation for all threads, and the messages that the log does not have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.context.view import Summary
from chorus_cli.core.log.acts import Fold, Restore
from chorus_cli.core.log.operations import NewOperation
from chorus_cli.core.log.runs import runs
from chorus_cli.core.sessions import matching as session_matching
from chorus_cli.core.time import timestamps
from chorus_cli.storage.sqlite.context import summary_rows
from chorus_cli.storage.sqlite.log import message_rows, operation_rows, thread_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.log.operations import Operation
    from chorus_cli.core.sessions.format import Session
    from chorus_cli.storage.sqlite.log.thread_rows import ThreadKey

_FRACTION_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of restoring: the operation, the thread to go on in, and the number of messages added to the log."""

    operation: Operation
    thread: ThreadKey
    added: int

    @property
    def thread_id(self) -> int:
        """The id of the thread to go on in."""
        return self.thread.id


def restore(connection: sqlite3.Connection, persona: str, session: Session, now: datetime) -> Restored:
    """Make the session's messages the members of a new boundary of every thread of the persona."""
    rows = _rows_like(connection, persona, session)
    known = session_matching.known_threads(session, rows)
    thread_of = dict(known)
    spoken_in = {message.thread_id for message in session.messages}
    for thread in session.threads:
        if thread.id in spoken_in and thread.id not in thread_of:
            thread_of[thread.id] = thread_rows.new(connection, persona, thread.title, now).id
    members = session_matching.members(session, rows, thread_of)
    after = _before_running(connection, persona)
    new = NewOperation(persona, Restore(), now, after_message_id=after, members=members)
    operation = operation_rows.introduce(connection, new)
    _restore_summaries(connection, persona, session, operation)
    added = sum(not isinstance(member, int) for member in members)
    thread_id = thread_of.get(session.active_thread_id) or _silent(connection, persona, session, known)
    chosen = thread_id or thread_of[session.messages[0].thread_id]
    # Messages in a closed thread would be in a context that no command reaches.
    connection.executemany(
        "UPDATE threads SET closed_at = NULL WHERE id = ? AND persona = ?",
        [(id_, persona) for id_ in {*thread_of.values(), chosen}],
    )
    return Restored(operation, thread_rows.use(connection, persona, chosen), added)


def _restore_summaries(connection: sqlite3.Connection, persona: str, session: Session, restored: Operation) -> None:
    """Restore the summaries of a session's threads, each for its messages."""
    for thread in session.threads:
        ids = [
            member
            for member, message in zip(restored.members, session.messages, strict=True)
            if message.thread_id == thread.id
        ][: thread.summarised]
        if not thread.summary or not ids:
            continue
        (thread_id, _) = message_rows.turns_of(connection, ids[:1])[ids[0]]
        folded = runs(ids)
        new = NewOperation(persona, Fold(folded), restored.created_at, thread_id, automatic=True)
        fold = operation_rows.introduce(connection, new)
        author = f"session {session.session_id}"
        summary = Summary(fold.id, restored.id, folded, thread.summary, None, author, restored.created_at)
        summary_rows.store(connection, persona, thread_id, summary)


def _rows_like(connection: sqlite3.Connection, persona: str, session: Session) -> list[Message]:
    """Return the rows of the persona with the same times as the session's messages."""
    moments = {message.timestamp for message in session.messages}
    found = connection.execute(
        "SELECT id FROM messages INDEXED BY messages_of_persona "
        "WHERE persona = ? AND timestamp IN (SELECT value FROM json_each(?))",
        (persona, json.dumps([spelling for moment in moments for spelling in _spellings(moment)])),
    ).fetchall()
    return message_rows.rows(connection, (id_ for (id_,) in found))


def _spellings(moment: datetime) -> Iterator[str]:
    """Yield every spelling of a moment in a row: one written with plain SQL may have fewer digits."""
    text = timestamps.to_text(moment).removesuffix("Z")
    yield f"{text}Z"
    for _ in range(_FRACTION_DIGITS):
        if not text.endswith("0"):
            return
        text = text[:-1]
        yield f"{text.rstrip('.')}Z"


def _before_running(connection: sqlite3.Connection, persona: str) -> int:
    """Return the id of the newest message, or of the one before the first running turn, whose replies follow."""
    (running,) = connection.execute(
        "SELECT MIN(COALESCE(turn_id, id)) FROM messages WHERE status = 'streaming' AND persona = ?", (persona,)
    ).fetchone()
    newest = message_rows.newest_id(connection)
    return newest if running is None else min(newest, int(running) - 1)


def _silent(connection: sqlite3.Connection, persona: str, session: Session, known: Mapping[int, int]) -> int:
    """Return the session's active thread if it has no messages in the session but exists in this log, else 0."""
    if not any(number == in_log for number, in_log in known.items()):
        return 0
    row = connection.execute(
        "SELECT id FROM threads WHERE id = ? AND persona = ?", (session.active_thread_id, persona)
    ).fetchone()
    return int(row[0]) if row else 0
