"""Whether a database is sound: its pages, its references, and the rows that can be read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from chorus_cli.core.text.phrases import counted
from chorus_cli.log.rows.search_index import ITEMS, MESSAGES, is_damage
from chorus_cli.storage.errors import UNREADABLE

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

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
        counts.update(
            name for name, text in zip(columns, row, strict=False) if text is not None and not _is_utf_8(text)
        )
    return counts


def _is_utf_8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


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
