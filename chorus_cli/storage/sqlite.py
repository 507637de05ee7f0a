"""The SQLite database: a file, or a database in memory.

The modes ``TRUNCATE`` and ``EXTRA`` cost a few milliseconds a commit; in return, a power cut loses no committed row.
Write-ahead logging is not used, because it fails on network folders and races when several processes start at once.

A database that can be read but not written is opened as a private copy, which SQLite deletes when it is closed. The
copy refuses new rows of the log, but its full-text index and the values in ``meta`` may change.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from chorus_cli.core import limits
from chorus_cli.storage import migrations
from chorus_cli.storage.errors import require_confirmed, storage_error
from chorus_cli.storage.port import FinishedRows

if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import _Parameters

    from chorus_cli.core.errors import StorageError
    from chorus_cli.storage.port import Connection

P = ParamSpec("P")
T = TypeVar("T")

BUSY_TIMEOUT_SECONDS = 10.0
IN_MEMORY = Path(":memory:")
"""The path of a database without a file; its content is lost when the database is closed or the process ends."""

_PRAGMAS = (
    "PRAGMA journal_mode = TRUNCATE",
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA secure_delete = ON",
)
_NO_TEMPORARY_FILES = "PRAGMA temp_store = MEMORY"

_STEPS_AT_A_TIME = 1_000_000
_MOST_STEPS = 100_000_000
"""One or two seconds of work, which is more than any statement on a small log needs."""
_MOST_STEPS_A_BYTE = 10
"""Additional steps for each byte of the file; all checks of a log of short messages take one step a byte."""

_KEPT = ("messages", "operations", "summaries", "threads", "sessions", "context_items", "outbox")


class Work:
    """Counts the steps of SQLite's virtual machine for a statement; their limit grows with the file ``path``."""

    def __init__(self, path: str, size_bytes: int) -> None:
        self._path = path
        self._size_bytes = size_bytes
        self.steps = 0

    def is_enough(self) -> bool:
        """Count the steps since SQLite's last call, and return whether SQLite must stop the statement."""
        self.steps += _STEPS_AT_A_TIME
        if self.steps > _MOST_STEPS + _MOST_STEPS_A_BYTE * self._size_bytes:
            with suppress(OSError):
                self._size_bytes = max(self._size_bytes, Path(self._path).stat().st_size)
        return self.steps > _MOST_STEPS + _MOST_STEPS_A_BYTE * self._size_bytes


class SqliteConnection(sqlite3.Connection):
    """A connection with a cache of the finished messages that it has read.

    ``has_begun`` is true from the beginning of a transaction until its commit or rollback ends. After `confine`,
    ``work`` limits the steps of each statement (on a plain sqlite3 connection: of all statements together).
    """

    finished_rows: FinishedRows[Any]
    has_begun = False
    work: Work | None = None
    is_sealed = False

    def begin(self, *, to_write: bool) -> None:
        """Begin a transaction. A write takes the lock at once: after a read, SQLite may refuse the lock."""
        self.execute("BEGIN IMMEDIATE" if to_write else "BEGIN")

    def commit(self) -> None:
        """End the transaction; raise `DatabaseUnconfirmedError` if the disk does not confirm it."""
        try:
            self.execute("COMMIT")
        except sqlite3.OperationalError as error:
            require_confirmed(self, error)
            raise

    def continue_ids(self, table: str) -> None:
        """Do nothing: SQLite itself continues after the newest row."""

    def execute(self, sql: str, parameters: _Parameters = (), /) -> sqlite3.Cursor:
        """Run a statement, whose steps are counted from 0."""
        if self.work:
            self.work.steps = 0
        return super().execute(sql, parameters)


class Sqlite:
    """The database at ``path``; with the path `IN_MEMORY` it has no file, no journal and no temporary files.

    A migration first copies the database to the folder ``backups``, if one is given. If the database
    ``is_read_only``, a private copy is opened.
    """

    errors: tuple[type[Exception], ...] = (sqlite3.Error, UnicodeDecodeError, MemoryError)
    server = ""

    def __init__(
        self,
        path: Path,
        backups: Path | None = None,
        *,
        busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS,
        is_read_only: bool = False,
    ) -> None:
        self.path = path
        self.is_read_only = is_read_only
        self.busy_timeout_seconds = busy_timeout_seconds
        self._backups = backups

    def open(self) -> SqliteConnection:
        """Open the file, making it if it does not exist, and bring its tables up to date."""
        if self.path != IN_MEMORY:
            migrations.find_or_create(self.path, partial(_connect, busy_timeout_seconds=self.busy_timeout_seconds))
        connection = _connect("" if self.is_read_only else self.path, self.busy_timeout_seconds)
        try:
            if self.is_read_only:
                copy_into(connection, self.path, self.busy_timeout_seconds)
            migrations.migrate(connection, backups=None if self.is_read_only else self._backups)
        except BaseException:
            connection.close()
            raise
        return connection

    def apart(self) -> Sqlite:
        """Return this engine: each `open` makes a separate connection to the file."""
        return self

    def hurry(self) -> None:
        """Do nothing: a file has no server to wait for."""

    def told(self, error: BaseException) -> StorageError:
        """Return an error of the database as a sentence for the user."""
        return storage_error(error, self.path)

    def seal(self, connection: Connection) -> None:
        """Refuse additions to the log on this connection from now on; its database is a copy, or must only be read."""
        if isinstance(connection, SqliteConnection):
            connection.is_sealed = True
            connection.set_authorizer(_refused)

    def compact(self, connection: Connection) -> None:
        """Return unused pages to the file system."""
        connection.execute("VACUUM")


def _connect(path: Path | str, busy_timeout_seconds: float) -> SqliteConnection:
    connection = sqlite3.connect(path, timeout=busy_timeout_seconds, isolation_level=None, factory=SqliteConnection)
    connection.finished_rows = FinishedRows()
    try:
        for pragma in (*_PRAGMAS, _NO_TEMPORARY_FILES) if path == IN_MEMORY else _PRAGMAS:
            connection.execute(pragma).fetchall()
        confine(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def confine(connection: sqlite3.Connection) -> None:
    """Bound the values and the steps of all later statements; too many steps fail with ``SQLITE_INTERRUPT``.

    The database may contain foreign code, such as triggers that never end.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.STORED_ATTACHMENT.most)
    (pages,), (page_bytes,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    work = Work(path, pages * page_bytes)
    connection.set_progress_handler(work.is_enough, _STEPS_AT_A_TIME)
    if isinstance(connection, SqliteConnection):
        connection.work = work


def is_writable(path: Path) -> bool:
    """Return whether this process may write a database and, as SQLite must, make files in the same folder."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def copy_into(connection: sqlite3.Connection, path: Path, busy_timeout_seconds: float) -> None:
    """Copy the database at ``path``, opened read-only, into the empty database of ``connection``."""
    address = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=busy_timeout_seconds, isolation_level=None)) as source:
        # Outside a transaction, the copying would wait for another process for ever.
        source.execute("BEGIN")
        source.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        source.backup(connection)


def _refused(action: int, table: str | None, column: str | None, *_: str | None) -> int:
    """On a sealed connection, refuse to add to the log, delete from it, or rename, close or reopen a thread."""
    is_addition = action in {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_DELETE} and table in _KEPT
    is_change = action == sqlite3.SQLITE_UPDATE and (table, column) in {("threads", "title"), ("threads", "closed_at")}
    return sqlite3.SQLITE_DENY if is_addition or is_change else sqlite3.SQLITE_OK


def for_this_run(
    connection: Connection, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run ``work`` within the caller's transaction; on a sealed copy, lift the seal while ``work`` runs."""
    if not (isinstance(connection, SqliteConnection) and connection.is_sealed):
        return work(connection, *args, **kwargs)
    connection.set_authorizer(None)
    try:
        return work(connection, *args, **kwargs)
    finally:
        connection.set_authorizer(_refused)
