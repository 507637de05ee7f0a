"""Whether a database is sound: its pages, its references, its texts, and the checksums of its messages."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.text.phrases import counted
from chorus_cli.log.rows.message_rows import checksum
from chorus_cli.log.rows.search_index import ITEMS, MESSAGES, is_damage
from chorus_cli.storage import foreign_code
from chorus_cli.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_MOST_FAULTS = 20
_KEPT = f"type = 'table' AND name NOT GLOB '*[^a-z_]*' AND NOT {MESSAGES.condition} AND NOT {ITEMS.condition}"
"""The condition on a row of ``sqlite_master`` to be a table that cannot be made again from others.

One with an odd name is not of Chorus.
"""


def quick_fault(connection: sqlite3.Connection) -> str:
    """Return the first fault that a quick check finds, empty if there is none."""
    faults = _checked(connection, "quick_check(1)")
    return faults[0] if faults else ""


def faults(connection: sqlite3.Connection) -> Sequence[str]:
    """Return the faults of the pages, the indexes and the references of the whole database."""
    found = [*_checked(connection, f"integrity_check({_MOST_FAULTS})")]
    if not found:
        broken = connection.execute("PRAGMA foreign_key_check").fetchmany(_MOST_FAULTS)
        found += [
            f"row {row_id} of {table} refers to a row of {parent} that is gone" for table, row_id, parent, _ in broken
        ]
    return found


def undecodable(connection: sqlite3.Connection) -> Sequence[str]:
    """Return a phrase for each column of the log that has texts that are not UTF-8; its pages must be sound."""
    tables = connection.execute(f"SELECT name FROM sqlite_master WHERE {_KEPT}").fetchall()
    before, connection.text_factory = connection.text_factory, bytes
    try:
        return [
            f"{counted(number, 'text')} of {table}.{column} {'is' if number == 1 else 'are'} not UTF-8"
            for (table,) in tables
            for column, number in _undecodable_in(connection, table).items()
        ]
    finally:
        connection.text_factory = before


def _undecodable_in(connection: sqlite3.Connection, table: str) -> Mapping[str, int]:
    columns = [
        name.decode() for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})") if kind == b"TEXT"
    ]
    counts = Counter[str]()
    for row in connection.execute(f"SELECT {', '.join(columns) or 'NULL'} FROM {table}"):
        for name, text in zip(columns, row, strict=False):
            try:
                (text or b"").decode()
            except UnicodeDecodeError:
                counts[name] += 1
    return counts


def concerns_log(connection: sqlite3.Connection) -> bool:
    """Return whether damage concerns more than the full-text indexes, which can be made again from the log."""
    try:
        tables = connection.execute(f"SELECT name FROM sqlite_master WHERE {_KEPT}").fetchall()
    except UNREADABLE:
        return True
    # The list of free pages is of no table, and without it nothing can be written.
    is_listed = not any("freelist" in fault.casefold() for fault in _checked(connection, "integrity_check(1)"))
    return not (tables and is_listed) or any(_checked(connection, f"integrity_check('{name}')") for (name,) in tables)


def _checked(connection: sqlite3.Connection, check: str) -> Sequence[str]:
    try:
        found = connection.execute(f"PRAGMA {check}").fetchall()
    except UNREADABLE as error:
        if not is_damage(error):
            raise
        return [str(error) or type(error).__name__]
    lines = [line for (text,) in found for line in str(text).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]


SAMPLE_ROWS = 50_000

_FIELDS = "role, thread_id, persona, timestamp, content"


class Checked(NamedTuple):
    """The number of messages that were read, of those without a checksum, and the ids of changed ones."""

    read: int
    without: int
    changed: tuple[int, ...]


def checked(connection: sqlite3.Connection, part: int = 0, parts: int = 1) -> Checked:
    """Compare messages with their checksums: one part of equally large parts, by default all of them.

    A message that was put in with plain SQL has none.
    """
    before, connection.text_factory = connection.text_factory, lenient_text
    try:
        rows = connection.execute(
            "SELECT id, role, thread_id, persona, timestamp, content, checksum FROM messages WHERE id % ? = ?",
            (parts, part % parts),
        )
        return _compared(rows)
    finally:
        connection.text_factory = before


def sample(connection: sqlite3.Connection, day: int) -> Checked:
    """Compare another part of the messages on each day; a log of usual size is compared whole."""
    (newest,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()
    return checked(connection, day, max(1, -(-newest // SAMPLE_ROWS)))


def bring(connection: sqlite3.Connection, ids: Iterable[int], backup: Path) -> tuple[int, ...]:
    """Bring the messages of these ids from a backup; return those that it does not have as written."""
    remaining = []
    with closing(sqlite3.connect(backup)) as source:
        foreign_code.read_tables_only(source)
        source.text_factory = lenient_text
        for id_ in ids:
            row = source.execute(f"SELECT {_FIELDS}, checksum FROM messages WHERE id = ?", (id_,)).fetchone()
            if row is None or checksum(*row[:5]) != row[5]:
                remaining.append(id_)
                continue
            connection.execute(
                "UPDATE messages SET role = ?, thread_id = ?, persona = ?, timestamp = ?, content = ?, checksum = ?, "
                "token_count = NULL WHERE id = ?",
                (*row, id_),
            )
    return tuple(remaining)


def accept(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Take the present texts of the messages of these ids for the true ones."""
    connection.text_factory = lambda stored: stored.decode("utf-8", "replace")
    for id_ in ids:
        row = connection.execute(f"SELECT {_FIELDS} FROM messages WHERE id = ?", (id_,)).fetchone()
        connection.execute(
            "UPDATE messages SET content = ?, checksum = ?, token_count = NULL WHERE id = ?",
            (row[4], checksum(*row), id_),
        )


def lenient_text(stored: bytes) -> str:
    """Decode a text that may be damaged, which never equals the one that was written."""
    return stored.decode("utf-8", "surrogateescape")


def _compared(rows: Iterable[tuple[int, str, int, str, str, str, str | None]]) -> Checked:
    read = without = 0
    changed: list[int] = []
    for id_, role, thread_id, persona, timestamp, content, stored in rows:
        read += 1
        if stored is None:
            without += 1
        elif checksum(role, thread_id, persona, timestamp, content) != stored:
            changed.append(id_)
    return Checked(read, without, tuple(changed))
