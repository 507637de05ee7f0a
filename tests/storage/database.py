"""Databases as the program makes them: copies of one that it made once, because its steps cost more than most tests.

``note`` and ``increment`` are short work for a store, in its table of single values."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import cache
from pathlib import Path
from typing import Any

from chorus_cli.storage import meta_rows
from chorus_cli.storage.migrations import migrate
from chorus_cli.storage.store import BUSY_TIMEOUT_SECONDS, Store


class QuickStore(Store):
    """A store that begins with a copy and does not wait for the disk, for tests not about power cuts or upgrades."""

    def _open(self) -> None:
        if not self._path.exists():
            self._path.touch(0o600)
            self._path.write_bytes(new_database())
        super()._open()
        assert self._connection
        self._connection.execute("PRAGMA synchronous = OFF")


@asynccontextmanager
async def opened(
    path: Path, backups: Path | None = None, *, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS
) -> AsyncIterator[Store]:
    store = Store(path, backups, busy_timeout_seconds=busy_timeout_seconds)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def traced(store: Store) -> list[str]:
    """Return a list to which every later statement of a store is added, with its values."""
    statements: list[str] = []
    await store.write(lambda connection: connection.set_trace_callback(statements.append))
    return statements


def new_database() -> bytes:
    """Return the file of a database that was just made, with the name of its own that rows keep elsewhere."""
    made, origin = _made()
    return made.replace(origin.encode(), os.urandom(len(origin) // 2).hex().encode())


@cache
def _made() -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chorus.db"
        made = Store(path)
        made._open()
        assert made._connection
        (origin,) = made._connection.execute("SELECT origin FROM installation").fetchone()
        made._close()
        return path.read_bytes(), origin


def database(path: str = ":memory:") -> sqlite3.Connection:
    """Return an empty database, in memory or in a new file."""
    opened = sqlite3.connect(path, isolation_level=None)
    fill(opened)
    return opened


def fill(connection: sqlite3.Connection) -> None:
    """Give a connection to an empty file the tables of a new database."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.deserialize(new_database())
        made.backup(connection)
    migrate(connection)


def sql(path: Path, *statements: str) -> list[Any]:
    """Change or read a file past the program; return what was found last, a row of one column as its value."""
    with closing(sqlite3.connect(path)) as connection, connection:
        found: list[Any] = []
        for statement in statements:
            found = connection.execute(statement).fetchall()
    return [row[0] if len(row) == 1 else row for row in found]


def note(connection: sqlite3.Connection, key: str) -> None:
    meta_rows.store(connection, key, "noted")


def notes(connection: sqlite3.Connection) -> list[str]:
    return [key for (key,) in connection.execute("SELECT key FROM meta ORDER BY key").fetchall()]


def increment(connection: sqlite3.Connection) -> int:
    known = int(meta_rows.value(connection, "counter") or 0)
    meta_rows.store(connection, "counter", str(known + 1))
    return known + 1
