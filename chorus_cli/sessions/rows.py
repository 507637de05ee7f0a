"""The rows of sessions, from which lists are made, and the writes that save and restore a session."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rows.thread_views import newest_in_context
from chorus_cli.context.rules.view import Summary
from chorus_cli.core.errors import DatabaseDamagedError, SessionError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows, operation_rows, thread_rows
from chorus_cli.log.rows.thread_rows import ThreadKey
from chorus_cli.log.rules.acts import Fold, Restore
from chorus_cli.log.rules.journal import thread_journal
from chorus_cli.log.rules.log_acts import Purge
from chorus_cli.log.rules.messages import Message, runs
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.memory.rows import item_rows
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions.rules import matching
from chorus_cli.sessions.rules.format import Session, is_session_id
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection

MANUAL = "manual"
IDLE = "idle"

_IDLE_SESSION = re.compile("([0-9]+) ([0-9]+) (.+)")
"""The newest idle session in ``meta``: the newest operation, the newest message that its summary covers, its name."""


class SessionRow(NamedTuple):
    """The facts about a session that are known without its file; ``trigger`` is ``manual`` or ``idle``.

    ``through_message_id`` is the newest message of the log that the session covers, ``None`` for a file without a row.
    """

    session_id: str
    persona: str
    timestamp: datetime
    description: str
    summary: str
    message_count: int
    token_estimate: int
    window_start: datetime | None
    window_end: datetime | None
    through_message_id: int | None
    trigger: str


_COLUMNS = ", ".join(SessionRow._fields)
_STORED = (*SessionRow._fields, "file_path", "contents")
_REPLACING = ", ".join(f"{name} = excluded.{name}" for name in _STORED)


class Saving(NamedTuple):
    """A session to be saved, and the ids of the newest message and operation that it covers.

    ``summarized_through`` is the newest message that its summary covers. ``expected_through`` is the newest message in
    any saved session when an idle save began; if another save has changed it, the session is not saved. For a save by
    the user it is ``None``. A session that is not ``is_new`` replaces the saved session of the same name.
    """

    session: Session
    trigger: str
    through_message_id: int
    summarized_through: int
    operation_id: int
    expected_through: int | None = None
    is_new: bool = True


def row_of(session: Session, trigger: str = MANUAL, through_message_id: int | None = None) -> SessionRow:
    """Return the row of a session."""
    of_session = {*SessionRow._fields} - {"through_message_id", "trigger"}
    facts: dict[str, Any] = {name: getattr(session, name) for name in of_session}
    return SessionRow(**facts, through_message_id=through_message_id, trigger=trigger)


def of(connection: Connection, persona: str) -> list[SessionRow]:
    """Return the sessions of a persona, newest first."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE persona = ? ORDER BY timestamp DESC, rowid DESC", (persona,)
    ).fetchall()
    return [_row(row) for row in found if is_session_id(row[0])]


def through(connection: Connection, persona: str) -> int:
    """Return the id of the newest message in any session of a persona, 0 if there is none."""
    (newest,) = connection.execute(
        "SELECT COALESCE(MAX(through_message_id), 0) FROM sessions WHERE persona = ?", (persona,)
    ).fetchone()
    return int(newest)


def idle_session(connection: Connection, persona: str) -> tuple[SessionRow, int] | None:
    """Return the newest idle session and its newest summarised message; ``None`` if a boundary has changed since."""
    known = _IDLE_SESSION.fullmatch(meta_rows.value(connection, _idle_key(persona)) or "")
    if known is None:
        return None
    operation_id, summarized_through, session_id = int(known[1]), int(known[2]), known[3]
    (has_changed,) = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM operations WHERE persona = :persona AND id > :id AND (kind IN "
        f"('clear', 'edit', 'restore') OR {operation_rows.SUBJECT} "
        "IN (SELECT id FROM operations WHERE persona = :persona AND kind IN ('clear', 'edit', 'restore'))))",
        {"persona": persona, "id": operation_id},
    ).fetchone()
    if has_changed:
        return None
    found = next((row for row in of(connection, persona) if row.session_id == session_id), None)
    return (found, summarized_through) if found else None


def save(connection: Connection, personas: Path, saving: Saving) -> SessionRow | None:
    """Write a session's file and then its row; return ``None`` after a purge or if ``expected_through`` has changed."""
    persona, expected = saving.session.persona, saving.expected_through
    # After a purge since the copy was made, the session's attachments, titles and summaries may have purged texts.
    purges = connection.execute(
        "SELECT 1 FROM operations WHERE kind = ? AND id > ?", (Purge.kind, saving.operation_id)
    ).fetchone()
    if purges or (expected is not None and through(connection, persona) != expected):
        return None
    session = saving.session
    if saving.is_new:
        taken = connection.execute("SELECT session_id FROM sessions WHERE persona = ?", (persona,)).fetchall()
        session = session_files.create(personas, session, {name for (name,) in taken})
    else:
        session_files.write(personas, session)
    row = row_of(session, saving.trigger, saving.through_message_id)
    values = [timestamps.to_text(value) if isinstance(value, datetime) else value for value in row]
    path = f"{row.persona}/{session_files.SESSIONS_FOLDER}/{row.session_id}{session_files.ENDING}"
    connection.execute(
        f"INSERT INTO sessions({', '.join(_STORED)}) VALUES ({', '.join('?' for _ in _STORED)}) "
        f"ON CONFLICT (persona, session_id) DO UPDATE SET {_REPLACING}",
        (*values, path, _contents(connection, session)),
    )
    if saving.trigger == IDLE:
        known = f"{saving.operation_id} {saving.summarized_through} {row.session_id}"
        meta_rows.store(connection, _idle_key(row.persona), known)
    return row


def _idle_key(persona: str) -> str:
    return f"idle_session:{persona}"


def _row(row: Sequence[Any]) -> SessionRow:
    id_, persona, timestamp, *facts, start, end, through_id, trigger = row
    try:
        ends = [timestamps.from_text(each) if each else None for each in (start, end)]
        return SessionRow._make([id_, persona, timestamps.from_text(timestamp), *facts, *ends, through_id, trigger])
    except ValueError as error:
        raise DatabaseDamagedError(f"The row of the session {id_} of {persona} cannot be read: {error}.") from error


def _contents(connection: Connection, session: Session) -> str:
    """Return, as JSON, the ids of a session's threads, messages and summaries; ``""`` if the log lacks a message."""
    rows, forks, thread_of = _found(connection, session.persona, session)
    if {message.thread_id for message in session.messages} - thread_of.keys():
        return ""
    members = matching.members(session, rows, thread_of, forks)
    ids = [member for member in members if isinstance(member, int)]
    if len(ids) < len(members):
        return ""
    summaries = json.dumps([each.summary for each in session.threads if each.summary])
    folds = connection.execute(
        "SELECT content, MAX(operation_id) FROM summaries WHERE persona = ? "
        "AND content IN (SELECT atom FROM json_each(?)) GROUP BY content",
        (session.persona, summaries),
    ).fetchall()
    return matching.contents_of(session, thread_of, ids, dict(folds)).as_text()


def incomplete(connection: Connection) -> list[tuple[str, str]]:
    """Return persona and name of the sessions whose rows have no contents, such as sessions saved by Chorus 0.2.0."""
    return connection.execute("SELECT persona, session_id FROM sessions WHERE contents = ''").fetchall()


def complete(connection: Connection, session: Session) -> None:
    """Store the contents of a session if its row has none."""
    if (session.persona, session.session_id) in incomplete(connection):
        connection.execute(
            "UPDATE sessions SET contents = ? WHERE persona = ? AND session_id = ?",
            (_contents(connection, session), session.persona, session.session_id),
        )


def restorable(connection: Connection, persona: str) -> frozenset[str]:
    """Return the names of the sessions that need no file, because their rows have contents."""
    found = connection.execute("SELECT session_id FROM sessions WHERE persona = ? AND contents <> ''", (persona,))
    return frozenset(str(name) for (name,) in found.fetchall())


def kept(connection: Connection, persona: str, session_id: str) -> Session | None:
    """Build a session from its row and the log; ``None`` if the row has no contents or the log none of its messages."""
    row = next((each for each in of(connection, persona) if each.session_id == session_id), None)
    sql = "SELECT contents FROM sessions WHERE persona = ? AND session_id = ?"
    (text,) = connection.execute(sql, (persona, session_id)).fetchone() or ("",)
    if row is None or not text:
        return None
    contents = matching.Contents.from_text(text)
    facts = {name: getattr(row, name) for name in SessionRow._fields if name in Session.__slots__}
    ends = {name: facts[name] or row.timestamp for name in ("window_start", "window_end")}
    session = Session(**facts | ends, active_thread_id=contents.active_thread, threads=(), messages=())
    titles = connection.execute("SELECT id, title FROM threads WHERE persona = ?", (persona,))
    folds = json.dumps([fold for _, fold, _ in contents.threads])
    summaries = connection.execute(
        "SELECT operation_id, content FROM summaries WHERE operation_id IN (SELECT value FROM json_each(?)) "
        "AND content <> ''",
        (folds,),
    )
    rows = {each.id: each for each in message_rows.rows(connection, contents.message_ids) if each.persona == persona}
    if not rows:
        return None
    return matching.filled(session, contents, rows, dict(titles.fetchall()), dict(summaries.fetchall()))


class Restored(NamedTuple):
    """The operation of a restore, the thread to go on in, and the number of messages that were added to the log."""

    operation: Operation
    thread: ThreadKey
    added: int


def thread_numbers(connection: Connection, persona: str, session: Session) -> dict[int, int]:
    """Return the number of each of the session's threads in the log, or else its place in the session."""
    _, _, known = _found(connection, persona, session)
    numbers = thread_rows.numbers(connection, persona)
    if _is_of_this_log(known):
        # The thread that was active may have no messages.
        known = {thread.id: thread.id for thread in session.threads} | known
    return {each.id: numbers.get(known.get(each.id, 0), place) for place, each in enumerate(session.threads, 1)}


def restore(connection: Connection, persona: str, session: Session, now: datetime) -> Restored:
    """Set a boundary in every thread, with the session's messages and then the turns in progress as its members."""
    _refuse_purged(connection, persona, session)
    rows, forks, known = _found(connection, persona, session)
    thread_of = dict(known)
    spoken_in = {message.thread_id for message in session.messages}
    for thread in session.threads:
        if thread.id in spoken_in and thread.id not in thread_of:
            thread_of[thread.id] = thread_rows.new(connection, persona, thread.title, now).id
    members = matching.members(session, rows, thread_of, forks)
    running = _running(connection, persona, {member for member in members if isinstance(member, int)})
    said_in = [*(thread_of[message.thread_id] for message in session.messages), *(row.thread_id for row in running)]
    threads = tuple((each, len([*run])) for each, run in groupby(said_in))
    whole = (*members, *(row.id for row in running))
    new = NewOperation(persona, Restore(threads=threads), now, members=whole)
    operation = operation_rows.introduce(connection, new)
    _restore_summaries(connection, persona, session, operation, thread_of)
    added = sum(not isinstance(member, int) for member in members)
    active = session.active_thread_id
    # The active thread of the session may have no messages.
    is_here = _is_of_this_log(known) and active in thread_rows.numbers(connection, persona)
    chosen = thread_of.get(active) or (active if is_here else thread_of[session.messages[0].thread_id])
    complete(connection, session)
    reopened = [(each,) for each in {chosen, *thread_of.values()}]
    connection.executemany("UPDATE threads SET closed_at = NULL WHERE id = ?", reopened)
    return Restored(operation, thread_rows.use(connection, persona, chosen), added)


def _is_of_this_log(known: Mapping[int, int]) -> bool:
    return any(thread_id == in_log for thread_id, in_log in known.items())


def _refuse_purged(connection: Connection, persona: str, session: Session) -> None:
    said = {(each.turn_id, timestamps.to_text(each.timestamp), each.role) for each in session.messages}
    purged = connection.execute(
        "SELECT turn_id, timestamp, role FROM messages WHERE persona = ? AND purged_by IS NOT NULL", (persona,)
    )
    if not said.isdisjoint(purged):
        raise SessionError(
            f"The session {session.session_id} has a message that was purged, so it was not restored. To take it "
            "out of the session's file on this machine, type /purge search and words that only it has."
        )


def _restore_summaries(
    connection: Connection, persona: str, session: Session, restored: Operation, thread_of: Mapping[int, int]
) -> None:
    """In each thread with a saved summary, store a fold of the messages that the summary covers."""
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
        snapshot_rows.store(connection, persona, thread_id, summary)


def _found(
    connection: Connection, persona: str, session: Session
) -> tuple[list[Message], matching.Forks, dict[int, int]]:
    """Return the rows that may be the session's messages, the forks with them, and the log's threads of the session."""
    rows = _rows_like(connection, persona, session)
    forks = operation_rows.forks_with(connection, (row.id for row in rows))
    return rows, forks, matching.known_threads(session, rows, forks)


def _rows_like(connection: Connection, persona: str, session: Session) -> list[Message]:
    """Return the persona's rows of the seconds of the session's messages, without those of an earlier persona."""
    # Times stored by plain SQL may have fewer digits.
    seconds = {timestamps.to_text(message.timestamp)[: len("2026-02-12T14:30:00")] for message in session.messages}
    found = connection.execute(
        "SELECT messages.id FROM json_each(?) CROSS JOIN messages INDEXED BY messages_of_persona "
        "ON persona = ? AND timestamp > atom AND timestamp <= atom || 'Z'",
        (json.dumps([*seconds]), persona),
    ).fetchall()
    beginning = operation_rows.beginning(connection, persona)
    return message_rows.rows(connection, (id_ for (id_,) in found if id_ > beginning))


def _running(connection: Connection, persona: str, restored: Collection[int]) -> list[Message]:
    """Return rows in context of turns in progress, and other replies in progress to questions in ``restored``."""
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


def leave_behind(connection: Connection, persona: str, boundary: Operation) -> None:
    """Hide the memory of a deleted persona from a new one of the same folder, and delete the rows of its sessions."""
    item_rows.hide_all(connection, persona, boundary.id)
    connection.execute("DELETE FROM sessions WHERE persona = ?", (persona,))
    connection.execute("DELETE FROM meta WHERE key = ?", (_idle_key(persona),))
