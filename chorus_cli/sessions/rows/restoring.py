"""Restoring a session: one operation for all threads, and the messages that the log does not have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from chorus_cli.context.rows import summary_rows
from chorus_cli.context.rows.thread_views import newest_in_context
from chorus_cli.context.rules.summaries import Summary
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows, operation_rows, thread_rows
from chorus_cli.log.rules.acts import Fold, Restore
from chorus_cli.log.rules.id_ranges import runs
from chorus_cli.log.rules.journal import thread_journal
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.sessions.rules import matching as session_matching

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from chorus_cli.log.rows.thread_rows import ThreadKey
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.log.rules.operations import Operation
    from chorus_cli.sessions.rules.format import Session

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
    """Make the session's messages, and after them turns in progress, members of a new boundary of every thread."""
    rows = _rows_like(connection, persona, session)
    forks = operation_rows.forks_with(connection, (row.id for row in rows))
    known = session_matching.known_threads(session, rows, forks)
    thread_of = dict(known)
    spoken_in = {message.thread_id for message in session.messages}
    for thread in session.threads:
        if thread.id in spoken_in and thread.id not in thread_of:
            thread_of[thread.id] = thread_rows.new(connection, persona, thread.title, now).id
    members = session_matching.members(session, rows, thread_of, forks)
    running = _running(connection, persona, {member for member in members if isinstance(member, int)})
    said_in = [*(thread_of[message.thread_id] for message in session.messages), *(row.thread_id for row in running)]
    threads = tuple((each, len([*run])) for each, run in groupby(said_in))
    whole = (*members, *(row.id for row in running))
    new = NewOperation(persona, Restore(threads=threads), now, members=whole)
    operation = operation_rows.introduce(connection, new)
    _restore_summaries(connection, persona, session, operation, thread_of)
    added = sum(not isinstance(member, int) for member in members)
    thread_id = thread_of.get(session.active_thread_id) or _silent(connection, persona, session, known)
    chosen = thread_id or thread_of[session.messages[0].thread_id]
    _reopen(connection, {chosen, *thread_of.values()})
    return Restored(operation, thread_rows.use(connection, persona, chosen), added)


def _restore_summaries(
    connection: sqlite3.Connection,
    persona: str,
    session: Session,
    restored: Operation,
    thread_of: Mapping[int, int],
) -> None:
    """Restore the summaries of a session's threads, each for its messages, which are the first members."""
    for thread in session.threads:
        ids = [
            member
            for member, message in zip(restored.members, session.messages, strict=False)
            if message.thread_id == thread.id
        ][: thread.summarised]
        if not thread.summary or not ids:
            continue
        thread_id = thread_of[thread.id]
        folded = runs(ids)
        new = NewOperation(persona, Fold(folded), restored.created_at, thread_id, automatic=True)
        fold = operation_rows.introduce(connection, new)
        author = f"session {session.session_id}"
        summary = Summary(fold.id, restored.id, folded, thread.summary, None, author, restored.created_at)
        summary_rows.store(connection, persona, thread_id, summary)


def _reopen(connection: sqlite3.Connection, threads: Iterable[int]) -> None:
    """Open the threads of a session that were closed since."""
    connection.executemany("UPDATE threads SET closed_at = NULL WHERE id = ?", [(each,) for each in threads])


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


def _running(connection: sqlite3.Connection, persona: str, restored: Collection[int]) -> list[Message]:
    """Return the rows of turns in progress that are in context or whose question is ``restored``, thread by thread.

    They go on after the session; those that are members already are left out.
    """
    found: list[Message] = []
    writing = connection.execute(
        "SELECT id FROM messages WHERE status = 'streaming' AND persona = ? ORDER BY thread_id", (persona,)
    ).fetchall()
    for reply in message_rows.rows(connection, (id_ for (id_,) in writing)):
        operations = operation_rows.since_boundary(connection, persona, reply.thread_id)
        seen = newest_in_context(connection, thread_journal(reply.thread_id, operations))
        turn = [row for row in seen if row.turn_id == reply.turn_id]
        if reply not in turn:
            turn = [reply] if reply.turn_id in restored else []
        found += [row._replace(thread_id=reply.thread_id) for row in turn if row.id not in restored]
    return found


def _silent(connection: sqlite3.Connection, persona: str, session: Session, known: Mapping[int, int]) -> int:
    """Return the session's active thread if it has no messages in the session but exists in this log, else 0."""
    if not any(number == in_log for number, in_log in known.items()):
        return 0
    row = connection.execute(
        "SELECT id FROM threads WHERE id = ? AND persona = ?", (session.active_thread_id, persona)
    ).fetchone()
    return int(row[0]) if row else 0
