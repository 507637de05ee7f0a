"""The SQLite database: one connection, owned by one thread.

Services await the store, so that another process's lock never freezes the keyboard. The settings trade a few
milliseconds a commit for durability: with ``TRUNCATE`` and ``EXTRA`` no acknowledged row is lost in a power cut, and
write-ahead logging is avoided because it fails on network folders and races when several processes start at once.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar

from chorus_cli.core.errors import DatabaseDamagedError, StorageError
from chorus_cli.storage.sqlite import migrations
from chorus_cli.storage.sqlite.errors import storage_error, unconfirmed
from chorus_cli.storage.sqlite.finished_rows import FinishedRows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

P = ParamSpec("P")
T = TypeVar("T")

BUSY_TIMEOUT_SECONDS = 10.0
_TO_WRITE = "BEGIN IMMEDIATE"
_PRAGMAS = (
    "PRAGMA journal_mode = TRUNCATE",
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA secure_delete = ON",
)


class _Witness(NamedTuple):
    """Another connection to the file at ``path``."""

    path: Path
    connection: sqlite3.Connection

    def version(self) -> int:
        """Return a number that changes with each commit to the file, and with each rollback after a crash."""
        (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def has_journal(self) -> bool:
        """Return whether the next reader will bring old pages back."""
        journal = self.path.with_name(f"{self.path.name}-journal")
        return journal.exists() and journal.stat().st_size > 0


class Connection(sqlite3.Connection):
    """A connection whose transaction may change something outside the database too, such as a file.

    ``finished_rows`` are the messages that it has read and that do not change any more. ``witness`` sees
    whether a commit stands; a database in memory has none.
    """

    compensations: ExitStack
    finished_rows: FinishedRows
    witness: _Witness | None = None

    def unless_committed(self, compensation: Callable[[], object]) -> None:
        """Call ``compensation`` if the transaction does not commit; the last one registered is called first.

        It is called before the rollback: until then no other process can write to the database.
        """
        self.compensations.callback(compensation)


class Store:
    """The open database; every call runs on its thread, one after the other.

    Before its tables are changed it is copied to the folder ``backups``, if there is one.
    """

    def __init__(
        self, path: Path, backups: Path | None = None, *, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS
    ) -> None:
        self._path = path
        self._backups = backups
        self._busy_timeout_seconds = busy_timeout_seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._connection: Connection | None = None

    async def open(self) -> None:
        """Open the file, making it if it does not exist, and bring its tables up to date.

        Raises:
            StorageError: the file cannot be opened, is damaged, or was made by a newer Chorus.
        """
        await self._on_thread(self._open)

    async def read(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work`` on one snapshot of the database and return what it returns; it must not write."""
        return await self._on_thread(lambda: _transaction(self._opened, "BEGIN", lambda c: work(c, *args, **kwargs)))

    async def write(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work`` in one transaction: all of it is committed, or nothing.

        Changes outside the database are taken back by the compensations that ``work`` registers. A caller that is
        cancelled while it waits may find the work done: it is never left half-way.
        """
        return await self._on_thread(lambda: committed(self._opened, lambda c: work(c, *args, **kwargs)))

    async def write_in_steps(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``work`` outside a transaction; each of its steps is one, made by `committed`.

        No other work of this process comes between the steps, and a caller that is cancelled does not end them.
        """
        return await self._on_thread(lambda: work(self._opened, *args, **kwargs))

    async def compact(self) -> None:
        """Return unused pages to the file system.

        Raises:
            StorageError: there is no room for a temporary copy, or another program uses the file.
        """
        await self._on_thread(lambda: self._opened.execute("VACUUM"))

    async def close(self) -> None:
        """Finish the pending work and close the file."""
        await self._on_thread(self._close)
        self._thread.shutdown()

    async def _on_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise storage_error(error, self._path) from error

    @property
    def _opened(self) -> Connection:
        if self._connection is None:
            message = "the store is not open"
            raise RuntimeError(message)
        return self._connection

    def _open(self) -> None:
        if not self._path.exists():
            _create(self._path, self._busy_timeout_seconds)
        elif self._path.stat().st_size == 0:
            raise DatabaseDamagedError(
                f"{self._path} is empty (0 bytes), which Chorus never leaves behind. Put a backup in its place "
                "with chorus doctor, or move the file away to begin anew."
            )
        connection = _connect(self._path, self._busy_timeout_seconds)
        try:
            migrations.migrate(connection, backups=self._backups)
        except BaseException:
            _close(connection)
            raise
        self._connection = connection

    def _close(self) -> None:
        if self._connection is not None:
            _close(self._connection)
            self._connection = None


def committed(connection: Connection, work: Callable[[Connection], T]) -> T:
    """Run ``work`` in one transaction, all or nothing, and return its result."""
    # A deferred start could fail at once when it turns from reading to writing.
    return _transaction(connection, _TO_WRITE, work)


def _connect(path: Path, busy_timeout_seconds: float) -> Connection:
    connection = sqlite3.connect(path, timeout=busy_timeout_seconds, isolation_level=None, factory=Connection)
    connection.finished_rows = FinishedRows()
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma).fetchall()
        other = sqlite3.connect(path, timeout=busy_timeout_seconds, isolation_level=None)
    except BaseException:
        connection.close()
        raise
    connection.witness = _Witness(path, other)
    return connection


def _close(connection: Connection) -> None:
    connection.close()
    if connection.witness:
        connection.witness.connection.close()


def _create(path: Path, busy_timeout_seconds: float) -> None:
    """Make the database under a temporary name and link it, so that no other start meets a half-made one."""
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}.new")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = _connect(draft, busy_timeout_seconds)
        try:
            migrations.migrate(connection)
        finally:
            _close(connection)
        _link(draft, path)
    except OSError as error:
        raise StorageError(f"The database {path} cannot be made: {error.strerror}.") from error
    finally:
        for leftover in (draft, draft.with_name(f"{draft.name}-journal")):
            with suppress(OSError):
                leftover.unlink()


def _link(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        return  # another process was first; its database is equally new
    except OSError:
        # A file system without hard links: the rename must not replace what another process has made meanwhile.
        if path.exists():
            return
        draft.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _transaction(connection: Connection, begin: str, work: Callable[[Connection], T]) -> T:
    connection.execute(begin)
    try:
        with ExitStack() as connection.compensations:
            # Only this transaction can change the file until it is over.
            seen = connection.witness.version() if connection.witness and begin == _TO_WRITE else 0
            result = work(connection)
            try:
                connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                _accept(connection, seen, error)
            connection.compensations.pop_all()
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.finished_rows.forget()
        raise
    return result


def _accept(connection: Connection, seen: int, error: sqlite3.OperationalError) -> None:
    """Take a failed commit for done if it stands all the same, because only the last of its calls has failed.

    Raises:
        sqlite3.OperationalError: it does not stand.
        StorageError: it stands, but cannot be made durable.
    """
    if not connection.witness or not _stands(connection, connection.witness, seen):
        raise error
    connection.compensations.pop_all()
    try:
        connection.execute(_TO_WRITE)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
    except sqlite3.Error as again:
        raise unconfirmed(connection.witness.path, again) from error


def _stands(connection: Connection, witness: _Witness, seen: int) -> bool:
    """Return whether a commit that failed has changed the file since it was ``seen``."""
    with suppress(OSError, sqlite3.Error):
        return not connection.in_transaction and not witness.has_journal() and witness.version() != seen
    return False
