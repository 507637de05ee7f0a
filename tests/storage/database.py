"""Databases as the program makes them: copies of one that it made once, because its steps cost more than most tests.

``note`` and ``increment`` are short work for a store, in its table of single values."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.storage import meta_rows
from chorus_cli.storage.migrations import migrate
from chorus_cli.storage.port import Connection, ConstraintError, Engine, FinishedRows, OpenConnection
from chorus_cli.storage.postgres.connection import PostgresConnection
from chorus_cli.storage.postgres.engine import Postgres
from chorus_cli.storage.sqlite import BUSY_TIMEOUT_SECONDS, Sqlite, SqliteConnection
from chorus_cli.storage.store import Store, opened_store
from tests.storage.schemas import SERVER, schemas

BEGIN_TO_READ, BEGIN_TO_WRITE = (
    ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "BEGIN")
    if SERVER in os.environ
    else ("BEGIN", "BEGIN IMMEDIATE")
)
"""How the transactions of a store begin."""

REFUSALS = (sqlite3.IntegrityError, ConstraintError)
"""The errors of both engines for a row that they refuse."""

needs_server = pytest.mark.skipif(SERVER not in os.environ, reason=f"no server in {SERVER}")


def of_sqlite(subject: str) -> pytest.MarkDecorator:
    """Mark tests whose subject a log on a server does not have."""
    return pytest.mark.skipif(SERVER in os.environ, reason=f"only a log in a file has {subject}")


def quick(path: Path, *, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS) -> Engine:
    """Return the engine for tests of services: a file, or with ``pytest --postgres`` a schema in its place."""
    if SERVER not in os.environ:
        return Quick(path, busy_timeout_seconds=busy_timeout_seconds)
    engine = Postgres(schemas().address(path), path, busy_timeout_seconds=busy_timeout_seconds)
    engine.beside = Quick(path)
    return engine


def on_server(path: Path) -> dict[str, bytes]:
    """Return by table all that a server has in the schema of a file, such as texts and the bytes of attachments."""
    if SERVER not in os.environ:
        return {}
    found: dict[str, bytes] = {}
    schema = schemas().name(path)
    with pytest.importorskip("psycopg").connect(os.environ[SERVER], autocommit=True) as connection:
        listed = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
        for (table,) in connection.execute(listed, [schema]).fetchall():
            rows = connection.execute(f'TABLE {schema}."{table}"'.encode()).fetchall()
            values = (each if isinstance(each, bytes) else str(each).encode() for row in rows for each in row)
            found[table] = b"\n".join(values)
    return found


class Quick(Sqlite):
    """A database that begins with a copy and does not wait for the disk, for tests not about power cuts or upgrades."""

    def open(self) -> SqliteConnection:
        if not self.path.exists():
            self.path.touch(0o600)
            self.path.write_bytes(new_database())
        connection = super().open()
        connection.execute("PRAGMA synchronous = OFF")
        return connection


def opened(
    path: Path, backups: Path | None = None, *, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS
) -> AbstractAsyncContextManager[Store]:
    return opened_store(Sqlite(path, backups, busy_timeout_seconds=busy_timeout_seconds))


async def traced(store: Store) -> list[str]:
    """Return a list to which every later statement of a store is added, with its values."""
    statements: list[str] = []

    def trace(connection: Connection) -> None:
        if isinstance(connection, PostgresConnection):
            assert connection._server
            connection._server.cursor_factory = _listing(statements)
            connection = connection._beside
        assert isinstance(connection, sqlite3.Connection)
        connection.set_trace_callback(statements.append)

    await store.read(lambda connection: connection.execute("SELECT 1").fetchall())
    await store.write_in_steps(trace)
    return statements


def _listing(statements: list[str]) -> type[Any]:
    """Return a kind of cursor that lists the statements which it sends to the server."""
    import psycopg

    class Listing(psycopg.Cursor[Any]):
        def execute(self, query: Any, *parameters: Any, **options: Any) -> Any:
            statements.extend(query.decode().split("; "))
            return super().execute(query, *parameters, **options)

    return Listing


def new_database() -> bytes:
    """Return the file of a database that was just made, with the name of its own that rows keep elsewhere."""
    made, origin = _made()
    return made.replace(origin.encode(), os.urandom(len(origin) // 2).hex().encode())


@cache
def _made() -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chorus.db"
        with closing(Sqlite(path).open()) as made:
            (origin,) = made.execute("SELECT origin FROM installation").fetchone()
        return path.read_bytes(), origin


def database(path: str = ":memory:") -> sqlite3.Connection:
    """Return an empty database, in memory or in a new file."""
    opened = sqlite3.connect(path, isolation_level=None)
    fill(opened)
    return opened


def in_memory() -> SqliteConnection:
    """Return a connection of the program to an empty database that is gone with it, and so costs no disk."""
    opened = sqlite3.connect(":memory:", isolation_level=None, factory=SqliteConnection)
    opened.finished_rows = FinishedRows()
    opened.execute("PRAGMA foreign_keys = ON")
    fill(opened)
    return opened


@contextmanager
def new_log() -> Iterator[OpenConnection]:
    """Yield a connection to an empty log that is gone afterwards; on a server it is in a transaction."""
    if SERVER not in os.environ:
        with closing(in_memory()) as opened:
            yield opened
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chorus.db"
        with closing(quick(path).open()) as opened:
            opened.begin(to_write=True)
            yield opened
            opened.rollback()
        schemas().give_back(path)


def without_checks(connection: Connection) -> None:
    """Let this connection store what the log refuses; on a server until the transaction is rolled back."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA ignore_check_constraints = ON")
        return
    connection.execute(
        "DO $$ DECLARE each RECORD; BEGIN FOR each IN SELECT conrelid, conname FROM pg_constraint "
        "WHERE contype IN ('c', 'f') AND connamespace = CAST(current_schema() AS regnamespace) LOOP "
        "EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', CAST(each.conrelid AS regclass), each.conname); "
        "END LOOP; END $$"
    )


@contextmanager
def locked(path: Path) -> Iterator[OpenConnection]:
    """Keep others from writing to the log of tests at ``path``, as another program that writes does; then roll back."""
    with closing(quick(path).open()) as other:
        other.begin(to_write=True)
        other.execute("SELECT 1").fetchall()
        yield other
        other.rollback()


def refuse(connection: Connection, change: str, words: str = "not today", condition: str = "TRUE") -> None:
    """Have a log refuse a change of rows that meet a condition, for example the change ``INSERT ON messages``."""
    name = f"refused_{len(change)}"
    if isinstance(connection, sqlite3.Connection) or "outbox" in change:
        connection.execute(
            f"CREATE TRIGGER {name} BEFORE {change} WHEN {condition} BEGIN SELECT RAISE(ABORT, '{words}'); END"
        )
        return
    connection.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"RAISE '{words}' USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    connection.execute(
        f"CREATE TRIGGER {name} BEFORE {change} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {name}()"
    )


def refuse_all(connection: Connection) -> None:
    """Have a store refuse new and changed messages from its next transaction on, and in a file all other changes."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA query_only = ON")
    else:
        refuse(connection, "INSERT OR UPDATE ON messages")


def fill(connection: sqlite3.Connection) -> None:
    """Give a connection to an empty file the tables of a new database."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.deserialize(new_database())
        made.backup(connection)
    migrate(connection)


def sql(path: Path, *statements: str) -> list[Any]:
    """Change or read a log past the program; return what was found last, a row of one column as its value."""
    found: list[Any] = []
    if SERVER in os.environ and schemas().has(path):
        found = schemas().sql(path, *statements)
    else:
        with closing(sqlite3.connect(path)) as connection, connection:
            for statement in statements:
                found = connection.execute(statement).fetchall()
    return [row[0] if len(row) == 1 else row for row in found]


NOTE = meta_rows.THREADS_BEFORE
"""How the keys of notes begin: as one of the log, not of this machine."""


def note(connection: Connection, key: str) -> None:
    meta_rows.store(connection, NOTE + key, "noted")


def notes(connection: Connection) -> list[str]:
    found = connection.execute("SELECT key FROM meta ORDER BY key").fetchall()
    return [key.removeprefix(NOTE) for (key,) in found]


def increment(connection: Connection) -> int:
    known = int(meta_rows.value(connection, NOTE + "counter") or 0)
    meta_rows.store(connection, NOTE + "counter", str(known + 1))
    return known + 1
