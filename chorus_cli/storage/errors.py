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
"""The reason of ``SQLITE_INTERRUPT``."""

READ_ONLY = "this log is read-only"
"""The error when something is to be added to a private copy."""

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNDECODED = "Could not decode to UTF-8"
"""The beginning of Python's error about such a text, which has no code."""
_NO_TABLE = "no such table"

UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError)
"""Errors of reading a damaged database; in one, the names of tables may be no text, so that no message names them.

A damaged size may ask for more memory than there is.
"""


def storage_error(error: sqlite3.Error | UnicodeDecodeError | MemoryError, path: Path) -> StorageError:
    """Translate an error of SQLite about the database at ``path``."""
    if found := _damage(error):
        return damaged(path, found)
    if str(error) == READ_ONLY:
        return DatabaseReadOnlyError(f"{path} cannot be written, so nothing was stored.")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _BUSY:
        return DatabaseBusyError(f"Another program uses {path} and did not finish in time. Try again.")
    if code == sqlite3.SQLITE_FULL:
        return DatabaseFullError(f"There is no room left on the disk of {path}. Free some and try again.")
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED:
        return StorageError(
            f"{path} cannot be written: it was moved, deleted or replaced while Chorus had it open. "
            "Leave Chorus and start it again."
        )
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK:
        return StorageError(
            f"{path} cannot be read: a write was cut off by a kill. Open it once where it can be written."
        )
    if code == sqlite3.SQLITE_READONLY:
        return StorageError(f"{path} cannot be written ({error}). Check its permissions and its folder's.")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StorageError(f"{path} cannot be opened ({error}). Check its permissions and its folder's.")
    return StorageError(f"The database {path} could not do that: {error}.")


def _damage(error: sqlite3.Error | UnicodeDecodeError | MemoryError) -> str:
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
    """Return the error of a folder that stands where the database should be."""
    return StorageError(
        f"{path} cannot be opened: it is a folder. Move it away; then chorus restore FILE brings a backup of the log."
    )


def require_confirmed(connection: sqlite3.Connection, error: sqlite3.Error) -> None:
    """Raise an error if the failed commit may have been made.

    After an I/O error nobody knows that: the journal may be gone already, and only the last sync have failed.
    """
    if not connection.in_transaction and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR:
        raise DatabaseUnconfirmedError(
            f"The disk does not confirm a change of {file_of(connection)} ({error}): it may be lost. Look at the disk; "
            "then the log (/log, or chorus log) shows whether the change was made."
        ) from error


def file_of(connection: sqlite3.Connection) -> str:
    """Return the path of a database, in words if it has none."""
    (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    return str(path or "The database")


def damaged(path: Path | str, found: object) -> DatabaseDamagedError:
    """Return the error of a database that is no sound one; ``found`` is what SQLite says of it."""
    # It may quote a whole table's definition, of many lines.
    reason = shortened(str(found), _REASON_CHARACTERS)
    return DatabaseDamagedError(
        f"{path} is damaged or is no database ({reason}). Copy it aside before anything else, then put a backup "
        "in its place: chorus doctor does that, and keeps what can still be read."
    )
