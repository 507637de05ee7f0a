"""Errors of SQLite as sentences for the user."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from chorus_cli.core.errors import (
    DatabaseBusyError,
    DatabaseDamagedError,
    DatabaseFullError,
    DatabaseReadOnlyError,
    DatabaseUnconfirmedError,
    StorageError,
)
from chorus_cli.core.text.phrases import shortened

_REASON_CHARACTERS = 120
GIVEN_UP = "reading it takes far more work than a log of its size needs"
"""The reason shown for ``SQLITE_INTERRUPT``: a statement took more steps than `sqlite.confine` allows."""

_REFUSED_BY_SEAL = "not authorized"
"""SQLite's error message when a sealed connection refuses a change (see `Sqlite.seal`)."""

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_REFUSED = {sqlite3.SQLITE_READONLY: "written", sqlite3.SQLITE_CANTOPEN: "opened"}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNDECODED = "Could not decode to UTF-8"
"""How Python's error about a text that is not UTF-8 begins; the error has no SQLite code."""
_NO_TABLE = "no such table"

UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError)
"""Errors that reading a damaged database may raise.

A name in the file may not be UTF-8 (`UnicodeDecodeError`); a wrong size may ask for too much memory (`MemoryError`).
"""


def storage_error(error: BaseException, path: Path) -> StorageError:
    """Translate an error of SQLite about the database at ``path``."""
    if found := _damage(error):
        return damaged(path, found)
    if str(error) == _REFUSED_BY_SEAL:
        return DatabaseReadOnlyError(f"{path} cannot be written, so nothing was stored.")
    extended_code = getattr(error, "sqlite_errorcode", 0)
    code = extended_code & 0xFF
    if code in _BUSY:
        return DatabaseBusyError(f"Another program uses {path} and did not finish in time. Try again.")
    if code == sqlite3.SQLITE_FULL:
        return DatabaseFullError(f"There is no room left on the disk of {path}. Free some space and try again.")
    if extended_code == sqlite3.SQLITE_READONLY_DBMOVED:
        return StorageError(
            f"{path} cannot be written: it was moved, deleted or replaced while Chorus had it open. "
            "Quit Chorus and start it again."
        )
    if extended_code == sqlite3.SQLITE_READONLY_ROLLBACK:
        return StorageError(
            f"{path} cannot be read: writing it was interrupted. Start Chorus once with permission to write to it."
        )
    if code in _REFUSED:
        done = _REFUSED[code]
        return StorageError(f"{path} cannot be {done} ({error}). Check the permissions of the file and its folder.")
    return StorageError(
        f"SQLite reported an error for the database {path}: {error}. Try again; if it happens again, check the disk."
    )


def _damage(error: BaseException) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, UnicodeDecodeError) or str(error).startswith(_UNDECODED):
        return "a name or a text in it is not UTF-8"
    if isinstance(error, MemoryError):
        return "a size in it asks for more memory than there is"
    if code == sqlite3.SQLITE_INTERRUPT:
        return GIVEN_UP
    is_damage = code in _DAMAGED or str(error).startswith(_NO_TABLE)
    return str(error) or type(error).__name__ if is_damage else ""


def folder_in_the_way(path: Path) -> StorageError:
    """Return the error for a folder at the path of the database."""
    return StorageError(
        f"{path} cannot be opened: it is a folder. Move it away; then chorus restore FILE restores a backup."
    )


def require_confirmed(connection: sqlite3.Connection, error: sqlite3.Error) -> None:
    """Raise `DatabaseUnconfirmedError` if the commit that failed with ``error`` may have taken effect.

    After an I/O error this is possible: SQLite commits by emptying its journal, and the sync that follows may fail.
    """
    if not connection.in_transaction and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR:
        raise DatabaseUnconfirmedError(
            f"The disk did not confirm a change to {file_of(connection)} ({error}), so the change may be lost. "
            "Check the disk. Afterwards, chorus log shows whether the change was made."
        ) from error


def file_of(connection: sqlite3.Connection) -> str:
    """Return the path of a database, or "The database" if it has no file."""
    (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    return str(path or "The database")


def damaged(path: Path | str, found: object) -> DatabaseDamagedError:
    """Return the error for a damaged database; ``found`` describes the damage."""
    # SQLite may quote a whole table's definition, which has many lines.
    reason = shortened(str(found), _REASON_CHARACTERS)
    return DatabaseDamagedError(
        f"{path} is damaged or is not a database ({reason}). First make a copy of the file. Then run chorus "
        "doctor: it offers to put a backup in its place, and keeps what can still be read."
    )
