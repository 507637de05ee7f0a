"""Personas in the log, with or without a folder."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.time import timestamps
from chorus_cli.storage.files import persona_files
from chorus_cli.storage.sqlite.log import operation_rows, thread_rows
from chorus_cli.storage.sqlite.memory import item_rows
from chorus_cli.storage.sqlite.sessions import session_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.core.log.operations import NewOperation
    from chorus_cli.storage.sqlite.store import Connection


@dataclass(frozen=True, slots=True)
class Traces:
    """Number of messages of a persona, and the time of the newest one."""

    messages: int
    last_spoken: datetime


def traces(connection: sqlite3.Connection) -> Mapping[str, Traces]:
    """Return number and newest time of messages by persona, without those of an earlier persona of the same folder."""
    found = connection.execute(
        "WITH begun AS (SELECT persona, MAX(after_message_id) AS after FROM operations "
        "WHERE kind = 'clear' AND json_extract(detail, '$.begins') GROUP BY persona) "
        "SELECT persona, COUNT(*), MAX(timestamp) FROM messages LEFT JOIN begun USING (persona) "
        "WHERE id > COALESCE(after, 0) AND purged_by IS NULL GROUP BY persona"
    ).fetchall()
    return {persona: Traces(count, timestamps.from_text(newest)) for persona, count, newest in found}


def last_spoken_at(connection: sqlite3.Connection, persona: str) -> datetime | None:
    """Return the time of a persona's newest message in any thread that was not imported, ``None`` if it has none."""
    row = connection.execute(
        "SELECT timestamp FROM messages WHERE persona = :persona AND (introduced_by IS NULL OR introduced_by NOT IN "
        "(SELECT id FROM operations WHERE persona = :persona AND kind = 'import')) ORDER BY timestamp DESC LIMIT 1",
        {"persona": persona},
    ).fetchone()
    return timestamps.from_text(row[0]) if row else None


class NewPersona(NamedTuple):
    """The files of a persona about to be made: its settings and, by their paths in its folder, others."""

    slug: str
    settings: str
    files: Mapping[str, bytes] = MappingProxyType({})


def create(connection: Connection, personas: Path, new: NewPersona, boundary: NewOperation) -> None:
    """Make a persona's folder, and store ``boundary`` if there was an earlier persona of that slug, to hide its memory.

    All or nothing: without the boundary, the messages of the earlier persona would be in context.

    Raises:
        PersonaError: the folder is there already, or cannot be made.
    """
    known = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM messages WHERE persona = :slug) OR "
        "EXISTS(SELECT 1 FROM operations WHERE persona = :slug) OR "
        "EXISTS(SELECT 1 FROM context_items WHERE persona = :slug)",
        {"slug": new.slug},
    ).fetchone()
    if known[0]:
        item_rows.hide_all(connection, new.slug, operation_rows.introduce(connection, boundary).id)
    thread_rows.leave_behind(connection, new.slug, boundary.created_at)
    session_rows.forget(connection, new.slug)
    persona_files.create(personas, new.slug, new.settings, new.files)
    connection.unless_committed(lambda: persona_files.discard(personas, new.slug))
