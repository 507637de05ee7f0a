"""The tables, as named steps that are applied once each and never edited afterwards.

A step and the record of it are one transaction. A recorded name that is not known here means that the file was made by
a newer Chorus.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from chorus_cli.core.errors import DatabaseDamagedError, DatabaseTooNewError
from chorus_cli.core.time import timestamps
from chorus_cli.storage.sqlite.schema import LOG_AND_JOURNAL

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

APPLICATION_ID = 0x43484F52  # "CHOR"

Step = tuple[str, tuple[str, ...]]
STEPS: tuple[Step, ...] = (("0001_log_and_journal", LOG_AND_JOURNAL),)


def migrate(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> None:
    """Apply the missing steps.

    Raises:
        DatabaseTooNewError: a newer Chorus has changed this file.
        DatabaseDamagedError: the file belongs to another program.
    """
    while True:
        missing = _missing(connection, steps)
        if not missing:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            _apply_first(connection, steps)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def applied(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the steps that were applied to this file, in order."""
    if not _has_tables(connection):
        return []
    return [name for (name,) in connection.execute("SELECT name FROM schema_migrations ORDER BY rowid").fetchall()]


def _missing(connection: sqlite3.Connection, steps: Sequence[Step]) -> list[Step]:
    done = applied(connection)
    unknown = sorted(set(done) - {name for name, _ in steps})
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if unknown or version > len(steps):
        known = ", ".join(unknown) or f"version {version}"
        raise DatabaseTooNewError(
            f"{_file(connection)} was made by a newer Chorus (it knows {known}). Update Chorus to open it."
        )
    return [step for step in steps if step[0] not in done]


def _apply_first(connection: sqlite3.Connection, steps: Sequence[Step]) -> None:
    """Apply the first missing step; another process may have done so while this one waited for the lock."""
    missing = _missing(connection, steps)
    if not missing:
        return
    name, statements = missing[0]
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations(name TEXT PRIMARY KEY, applied_at TEXT NOT NULL) STRICT"
    )
    for statement in statements:
        connection.execute(statement)
    connection.execute("INSERT INTO schema_migrations VALUES (?, ?)", (name, timestamps.to_text(datetime.now(UTC))))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(applied(connection))}")


def _has_tables(connection: sqlite3.Connection) -> bool:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
    if tables and application_id != APPLICATION_ID:
        raise DatabaseDamagedError(
            f"{_file(connection)} belongs to another program. Move it away, or choose another folder with --home."
        )
    return "schema_migrations" in tables


def _file(connection: sqlite3.Connection) -> str:
    (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    return str(path or "The database")
