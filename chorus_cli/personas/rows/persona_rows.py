"""Personas in the log, with or without a folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from chorus_cli.log.rows import operation_rows, thread_rows
from chorus_cli.log.rows.message_rows import counted_moment
from chorus_cli.log.rows.operation_rows import DETAIL
from chorus_cli.personas import files as persona_files
from chorus_cli.personas.rows import window_changes
from chorus_cli.storage.store import committed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.log.rules.operations import NewOperation, Operation
    from chorus_cli.storage.store import Connection


@dataclass(frozen=True, slots=True)
class Traces:
    """Number of messages of a persona, and the time of the newest one, ``None`` if that cannot be read."""

    messages: int
    last_spoken: datetime | None


def traces(connection: sqlite3.Connection) -> Mapping[str, Traces]:
    """Return number and newest time of messages by persona, without those of an earlier persona of the same folder."""
    found = connection.execute(
        "WITH begun AS (SELECT persona, MAX(after_message_id) AS after FROM operations "
        f"WHERE kind = 'clear' AND json_extract({DETAIL}, '$.begins') GROUP BY persona) "
        "SELECT persona, COUNT(*), MAX(timestamp) FROM messages LEFT JOIN begun USING (persona) "
        "WHERE id > COALESCE(after, 0) AND purged_by IS NULL GROUP BY persona"
    ).fetchall()
    return {persona: Traces(count, counted_moment(newest)) for persona, count, newest in found}


def last_spoken_at(connection: sqlite3.Connection, persona: str) -> datetime | None:
    """Return the time of a persona's newest message in any thread that was not imported.

    It is ``None`` without such a message, or if the time cannot be read.
    """
    row = connection.execute(
        "SELECT timestamp FROM messages WHERE persona = :persona AND (introduced_by IS NULL OR introduced_by NOT IN "
        "(SELECT id FROM operations WHERE persona = :persona AND kind = 'import')) ORDER BY timestamp DESC LIMIT 1",
        {"persona": persona},
    ).fetchone()
    return counted_moment(row[0]) if row else None


LeaveBehind: TypeAlias = "Callable[[Connection, str, Operation], None]"
"""Parts a new persona from the memory and the sessions of an earlier one of its slug, as the operation says."""


def _nothing_more(_connection: Connection) -> None:
    """Store no more rows."""


class NewPersona(NamedTuple):
    """The files of a persona about to be made: its settings and, by their paths in its folder, others."""

    slug: str
    settings: str
    files: Mapping[str, bytes] = MappingProxyType({})


def create(
    connection: Connection,
    personas: Path,
    new: NewPersona,
    boundary: NewOperation,
    leave_behind: LeaveBehind,
    fill: Callable[[Connection], None] = _nothing_more,
) -> None:
    """Make a persona's folder, and store ``boundary`` if there was an earlier persona of that slug, to hide its memory.

    The rows, with those that ``fill`` stores, are committed before the finished folder has its name: without the
    boundary, the messages of the earlier persona would be in context. Rows that a kill leaves without a folder are
    behind the boundary of the next persona of that slug.

    Raises:
        PersonaError: the folder is there already, or cannot be made.
    """

    def work(connection: Connection) -> None:
        _part(connection, boundary, leave_behind)
        fill(connection)
        window_changes.begin(connection, new.slug, new.settings)

    with persona_files.sole_maker(personas):
        persona_files.create(personas, new.slug, new.settings, new.files, partial(committed, connection, work))


def _part(connection: Connection, boundary: NewOperation, leave_behind: LeaveBehind) -> None:
    """Part a persona from an earlier one of its slug."""
    slug = boundary.persona
    known = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM messages WHERE persona = :slug) OR "
        "EXISTS(SELECT 1 FROM operations WHERE persona = :slug) OR "
        "EXISTS(SELECT 1 FROM context_items WHERE persona = :slug)",
        {"slug": slug},
    ).fetchone()
    if known[0]:
        leave_behind(connection, slug, operation_rows.introduce(connection, boundary))
    thread_rows.leave_behind(connection, slug, boundary.created_at)
