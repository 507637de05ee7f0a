"""Whether a database is sound: its pages, its references, and the rows that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.storage.sqlite.errors import UNREADABLE
from chorus_cli.storage.sqlite.log.index_renewal import ITEMS, MESSAGES, is_damage

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

_MOST_FAULTS = 20


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


def concerns_log(connection: sqlite3.Connection) -> bool:
    """Return whether damage concerns more than the full-text indexes, which can be made again from the log."""
    try:
        kept = f"type = 'table' AND NOT {MESSAGES.condition} AND NOT {ITEMS.condition}"
        tables = connection.execute(f"SELECT name FROM sqlite_master WHERE {kept}").fetchall()
    except UNREADABLE:
        return True
    return not tables or any(_checked(connection, f"integrity_check('{name}')") for (name,) in tables)


def _checked(connection: sqlite3.Connection, check: str) -> Sequence[str]:
    try:
        found = connection.execute(f"PRAGMA {check}").fetchall()
    except UNREADABLE as error:
        if not is_damage(error):
            raise
        return [str(error)]
    lines = [line for (text,) in found for line in str(text).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]
