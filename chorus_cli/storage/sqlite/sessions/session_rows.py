"""What the database knows of sessions: what a list shows of each, and how far into the log it reaches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chorus_cli.core.errors import DatabaseDamagedError
from chorus_cli.core.sessions.names import candidates, is_session_id
from chorus_cli.core.time import timestamps
from chorus_cli.storage.files import session_files
from chorus_cli.storage.sqlite import meta_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.core.sessions.format import Session

MANUAL = "manual"
IDLE = "idle"

_COLUMNS = (
    "session_id, persona, timestamp, description, summary, message_count, token_estimate, window_start, window_end, "
    "through_message_id, trigger"
)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What is known of a session without its file.

    ``through_message_id`` is the newest message of the log that is in it, ``None`` where that is not known: a file that
    was put there by hand. ``trigger`` is ``manual`` or ``idle``.
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
class Standing:
    """Where a session stands: the newest message that it reaches to, that its summary does, the newest operation."""

    through_message_id: int
    summarized_through: int
    operation_id: int


@dataclass(frozen=True, slots=True)
class Saving:
    """A session about to be saved. ``expected_through`` is how far others reached when it was begun.

    It is ``None`` where that does not matter, because the user asked for it.
    """

    session: Session
    trigger: str
    standing: Standing
    expected_through: int | None = None


def row_of(session: Session, trigger: str = MANUAL, through_message_id: int | None = None) -> SessionRow:
    """Return what a list shows of a session."""
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
    """Return the names of everybody else's sessions, each with whose it is."""
    found = connection.execute(
        "SELECT session_id, persona FROM sessions WHERE persona <> ? ORDER BY session_id, persona", (persona,)
    ).fetchall()
    return [(session_id, owner) for session_id, owner in found]


def through(connection: sqlite3.Connection, persona: str) -> int:
    """Return the newest message of the log that any session of a persona reaches to, 0 when there is none."""
    (newest,) = connection.execute(
        "SELECT COALESCE(MAX(through_message_id), 0) FROM sessions WHERE persona = ?", (persona,)
    ).fetchone()
    return int(newest)


def idle_session(connection: sqlite3.Connection, persona: str) -> tuple[SessionRow, int] | None:
    """Return the newest session that was saved by itself, and the message that its summary reaches to.

    There is none if a boundary was set, undone or redone since.
    """
    known = (meta_rows.value(connection, _idle_key(persona)) or "").split(" ", 2)
    if len(known) != 3 or not (known[0].isdecimal() and known[1].isdecimal()):  # noqa: PLR2004 - as `_stored` writes it
        return None
    operation_id, summarized_through, session_id = int(known[0]), int(known[1]), known[2]
    if _boundary_since(connection, persona, operation_id):
        return None
    found = next((row for row in of(connection, persona) if row.session_id == session_id), None)
    return (found, summarized_through) if found else None


def create(connection: sqlite3.Connection, personas: Path, saving: Saving) -> SessionRow | None:
    """Write a session's file under its name, or that with a number if it is taken, and then the row.

    ``None`` if somebody else has saved meanwhile what it was to save.

    Raises:
        SessionError: the file cannot be written.
    """
    if _overtaken(connection, saving):
        return None
    taken = {row.session_id for row in of(connection, saving.session.persona)}
    names = (name for name in candidates(saving.session.session_id) if name not in taken)
    return _stored(connection, replace(saving, session=session_files.create(personas, saving.session, names)))


def rewrite(connection: sqlite3.Connection, personas: Path, saving: Saving) -> SessionRow | None:
    """Write a session in place of the one of its name: the file and then the row.

    ``None`` if somebody else has saved meanwhile what it was to save.

    Raises:
        SessionError: the file cannot be written; the old one stands.
    """
    if _overtaken(connection, saving):
        return None
    session_files.rewrite(personas, saving.session)
    return _stored(connection, saving)


def forget(connection: sqlite3.Connection, persona: str) -> None:
    """Forget the sessions of an earlier persona of the same folder; their files went away with it."""
    connection.execute("DELETE FROM sessions WHERE persona = ?", (persona,))
    connection.execute("DELETE FROM meta WHERE key = ?", (_idle_key(persona),))


def adopt(connection: sqlite3.Connection, sessions: Sequence[Session]) -> None:
    """Store rows for sessions of which only the files were there."""
    for session in sessions:
        _insert(connection, "INSERT OR IGNORE", row_of(session))


def _stored(connection: sqlite3.Connection, saving: Saving) -> SessionRow:
    standing = saving.standing
    row = row_of(saving.session, saving.trigger, standing.through_message_id)
    _insert(connection, "INSERT OR REPLACE", row)
    if saving.trigger == IDLE:
        known = f"{standing.operation_id} {standing.summarized_through} {row.session_id}"
        meta_rows.store(connection, _idle_key(row.persona), known)
    return row


def _overtaken(connection: sqlite3.Connection, saving: Saving) -> bool:
    expected = saving.expected_through
    return expected is not None and through(connection, saving.session.persona) != expected


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
        raise DatabaseDamagedError(
            f"What is known of the session {id_} of {persona} cannot be read: {error}."
        ) from error
