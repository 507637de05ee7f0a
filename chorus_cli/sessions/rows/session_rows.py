"""Rows of sessions: the facts for a list, and how far into the log each session reaches."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from chorus_cli.core.errors import DatabaseDamagedError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.purges import Purge
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions.rules.names import candidates, is_session_id
from chorus_cli.storage import meta_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.sessions.rules.format import Session
    from chorus_cli.storage.store import Connection

MANUAL = "manual"
IDLE = "idle"

_IDLE_SESSION = re.compile("([0-9]+) ([0-9]+) (.+)")
"""The newest session of the idle timer in ``meta``: newest operation, newest message in its summary, its name."""

_COLUMNS = (
    "session_id, persona, timestamp, description, summary, message_count, token_estimate, window_start, window_end, "
    "through_message_id, trigger"
)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """The facts about a session that need no look into its file.

    ``through_message_id`` is the newest message of the log that it contains, ``None`` if unknown: for a file that was
    added by hand. ``trigger`` is ``manual`` or ``idle``.
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


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far a session reaches: its newest message, the newest one in its summary, and the newest operation."""

    through_message_id: int
    summarized_through: int
    operation_id: int


@dataclass(frozen=True, slots=True)
class Saving:
    """A session about to be saved.

    ``expected_through`` is the newest saved message when saving began; ``None`` if a later save does not matter,
    because the user asked for this one.
    """

    session: Session
    trigger: str
    coverage: Coverage
    expected_through: int | None = None


def row_of(session: Session, trigger: str = MANUAL, through_message_id: int | None = None) -> SessionRow:
    """Return the row of a session."""
    return SessionRow(
        session_id=session.session_id,
        persona=session.persona,
        timestamp=session.timestamp,
        description=session.description,
        summary=session.summary,
        message_count=len(session.messages),
        token_estimate=session.token_estimate,
        window_start=session.window_start,
        window_end=session.window_end,
        through_message_id=through_message_id,
        trigger=trigger,
    )


def of(connection: sqlite3.Connection, persona: str) -> list[SessionRow]:
    """Return the sessions of a persona, newest first."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE persona = ? ORDER BY timestamp DESC, rowid DESC", (persona,)
    ).fetchall()
    return [_row(row) for row in found if is_session_id(row[0])]


def others(connection: sqlite3.Connection, persona: str) -> list[tuple[str, str]]:
    """Return the names of the other personas' sessions, each with its persona."""
    found = connection.execute(
        "SELECT session_id, persona FROM sessions WHERE persona <> ? ORDER BY session_id, persona", (persona,)
    ).fetchall()
    return [(session_id, owner) for session_id, owner in found]


def through(connection: sqlite3.Connection, persona: str) -> int:
    """Return the id of the newest message in any session of a persona, 0 if there is none."""
    (newest,) = connection.execute(
        "SELECT COALESCE(MAX(through_message_id), 0) FROM sessions WHERE persona = ?", (persona,)
    ).fetchone()
    return int(newest)


def idle_session(connection: sqlite3.Connection, persona: str) -> tuple[SessionRow, int] | None:
    """Return the newest session of the idle timer, and the newest message in its summary.

    ``None`` if a boundary was set, undone or redone since.
    """
    known = _IDLE_SESSION.fullmatch(meta_rows.value(connection, _idle_key(persona)) or "")
    if known is None:
        return None
    operation_id, summarized_through, session_id = int(known[1]), int(known[2]), known[3]
    if _boundary_since(connection, persona, operation_id):
        return None
    found = next((row for row in of(connection, persona) if row.session_id == session_id), None)
    return (found, summarized_through) if found else None


def create(connection: Connection, personas: Path, saving: Saving) -> SessionRow | None:
    """Write a session's file under its name, with a number if that is taken, and then its row; both or neither.

    ``None`` if another process has saved the same messages meanwhile, or something was purged.

    Raises:
        SessionError: the file cannot be written.
    """
    if _overtaken(connection, saving):
        return None
    taken = {row.session_id for row in of(connection, saving.session.persona)}
    names = (name for name in candidates(saving.session.session_id) if name not in taken)
    session = session_files.create(personas, saving.session, names)
    path = session_files.path_of(personas, session.persona, session.session_id)
    connection.unless_committed(partial(session_files.discard, path))
    return _stored(connection, replace(saving, session=session))


def rewrite(connection: Connection, personas: Path, saving: Saving) -> SessionRow | None:
    """Replace a session: its file and then its row; both or neither.

    ``None`` if another process has saved the same messages meanwhile, or something was purged.

    Raises:
        SessionError: the file cannot be written; it is as it was.
    """
    if _overtaken(connection, saving):
        return None
    connection.unless_committed(session_files.rewrite(personas, saving.session))
    return _stored(connection, saving)


def forget(connection: sqlite3.Connection, persona: str) -> None:
    """Delete the rows of an earlier persona of the same folder; its files are gone with it."""
    connection.execute("DELETE FROM sessions WHERE persona = ?", (persona,))
    connection.execute("DELETE FROM meta WHERE key = ?", (_idle_key(persona),))


def adopt(connection: sqlite3.Connection, sessions: Sequence[Session]) -> None:
    """Store rows for sessions that have only a file."""
    for session in sessions:
        _insert(connection, "INSERT OR IGNORE", row_of(session))


def _stored(connection: sqlite3.Connection, saving: Saving) -> SessionRow:
    coverage = saving.coverage
    row = row_of(saving.session, saving.trigger, coverage.through_message_id)
    _insert(connection, "INSERT OR REPLACE", row)
    if saving.trigger == IDLE:
        known = f"{coverage.operation_id} {coverage.summarized_through} {row.session_id}"
        meta_rows.store(connection, _idle_key(row.persona), known)
    return row


def _overtaken(connection: sqlite3.Connection, saving: Saving) -> bool:
    expected = saving.expected_through
    # A session may have purged texts also from files, titles and summaries, so any later purge makes it stale.
    (is_purged,) = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM operations WHERE kind = ? AND id > ?)",
        (Purge.kind, saving.coverage.operation_id),
    ).fetchone()
    return bool(is_purged) or (expected is not None and through(connection, saving.session.persona) != expected)


def _insert(connection: sqlite3.Connection, verb: str, row: SessionRow) -> None:
    connection.execute(
        f"{verb} INTO sessions({_COLUMNS}, file_path) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.session_id,
            row.persona,
            timestamps.to_text(row.timestamp),
            row.description,
            row.summary,
            row.message_count,
            row.token_estimate,
            timestamps.to_text(row.window_start) if row.window_start else None,
            timestamps.to_text(row.window_end) if row.window_end else None,
            row.through_message_id,
            row.trigger,
            f"{row.persona}/{session_files.SESSIONS_FOLDER}/{row.session_id}.json",
        ),
    )


def _idle_key(persona: str) -> str:
    return f"idle_session:{persona}"


def _boundary_since(connection: sqlite3.Connection, persona: str, operation_id: int) -> bool:
    (found,) = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM operations WHERE persona = :persona AND id > :id AND (kind IN "
        "('clear', 'edit', 'restore') OR COALESCE(json_extract(detail, '$.undoes.operation'), "
        "json_extract(detail, '$.redoes.operation')) "
        "IN (SELECT id FROM operations WHERE persona = :persona AND kind IN ('clear', 'edit', 'restore'))))",
        {"persona": persona, "id": operation_id},
    ).fetchone()
    return bool(found)


def _row(row: Sequence[Any]) -> SessionRow:
    id_, persona, timestamp, description, summary, messages, tokens, start, end, through_id, trigger = row
    try:
        return SessionRow(
            session_id=id_,
            persona=persona,
            timestamp=timestamps.from_text(timestamp),
            description=description,
            summary=summary,
            message_count=messages,
            token_estimate=tokens,
            window_start=timestamps.from_text(start) if start else None,
            window_end=timestamps.from_text(end) if end else None,
            through_message_id=through_id,
            trigger=trigger,
        )
    except ValueError as error:
        raise DatabaseDamagedError(f"The row of the session {id_} of {persona} cannot be read: {error}.") from error
