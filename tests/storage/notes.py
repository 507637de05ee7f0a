"""Short work for a store: notes and a counter in its table of single values."""

from __future__ import annotations

import sqlite3

from chorus_cli.storage import meta_rows


def note(connection: sqlite3.Connection, key: str) -> None:
    meta_rows.store(connection, key, "noted")


def notes(connection: sqlite3.Connection) -> list[str]:
    return [key for (key,) in connection.execute("SELECT key FROM meta ORDER BY key").fetchall()]


def note_and_fail(connection: sqlite3.Connection) -> None:
    note(connection, "half")
    raise ValueError("in the middle")


def increment(connection: sqlite3.Connection) -> int:
    known = int(meta_rows.value(connection, "counter") or 0)
    meta_rows.store(connection, "counter", str(known + 1))
    return known + 1
