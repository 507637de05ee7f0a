"""The SQLite database: one connection, owned by one thread.

Services await the store, so another process's lock never freezes the keyboard. ``TRUNCATE`` and ``EXTRA`` cost a few
milliseconds a commit; in return, a power cut loses no acknowledged row. Write-ahead logging is not used, because it
fails on network folders and races when several processes start at once.

A database that can be read but not written is opened as a private copy, which SQLite deletes when it is closed. The
copy refuses new rows of the log, but its full-text index and the values in ``meta`` may change.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from chorus_cli.core import limits
from chorus_cli.storage import migrations
from chorus_cli.storage.errors import READ_ONLY, require_confirmed, storage_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from sqlite3 import _Parameters

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=sqlite3.Connection)

BUSY_TIMEOUT_SECONDS = 10.0
_GLANCE_SECONDS = 0.1
IN_MEMORY = Path(":memory:")
"""The path of a database without a file; its content is gone once it is closed or its process ends."""

_TO_READ, _TO_WRITE = "BEGIN", "BEGIN IMMEDIATE"
"""A write takes the lock at its start, because SQLite may refuse the lock to a transaction that has read before."""
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
_MOST_FINISHED, _MOST_FINISHED_CHARACTERS = 5_000, 1 << 24

_STEPS_AT_A_TIME = 1_000_000
_MOST_STEPS = 100_000_000
"""One or two seconds of work, which is more than any statement on a small log needs."""
_MOST_STEPS_A_BYTE = 10
"""Additional steps for each byte of the file; all checks of a log of short messages take one step a byte."""

_KEPT = ("messages", "operations", "summaries", "threads", "sessions", "context_items", "outbox")


class FinishedRows(Generic[T]):
    """A cache of finished messages, by their ids.

    All rows are forgotten once any program has changed a finished message: the database counts such changes. To bound
    the memory, they are also forgotten once there are more than 5,000 rows or ``most_characters`` characters.
    """

    def __init__(self, most_characters: int = _MOST_FINISHED_CHARACTERS) -> None:
        self._rows: dict[int, T] = {}
        self._characters = 0
        self._most_characters = most_characters
        self._changes: object = None

    def forget(self) -> None:
        """Forget all rows; after a rollback they may be wrong."""
        self._rows, self._characters = {}, 0

    def read(
        self,
        connection: sqlite3.Connection,
        ids: Sequence[int],
        read: Callable[[Sequence[int]], Iterable[tuple[int, T, int | None]]],
    ) -> list[T]:
        """Return the rows of ``ids`` in their order; ``read`` is called with the ids that are not in the cache.

        ``read`` returns for each row its id, the row, and its number of characters, or ``None`` in place of the number
        if the row may still change. Ids for which it returns nothing are left out.
        """
        changes = connection.execute("SELECT count FROM changed_rows").fetchone()
        if changes != self._changes or len(self._rows) > _MOST_FINISHED or self._characters > self._most_characters:
            self.forget()
            self._changes = changes
        known, fresh = self._rows, dict[int, T]()
        missing = [id_ for id_ in ids if id_ not in known]
        for id_, row, characters in read(missing) if missing else ():
            fresh[id_] = row
            if characters is not None:
                known[id_] = row
                self._characters += characters
        return [found for id_ in ids if (found := fresh.get(id_) or known.get(id_))]


class Work:
    """The number of steps that SQLite has done for a statement, and its bound, which grows with the file ``path``."""

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


class Connection(sqlite3.Connection):
    """A connection with a cache of the finished messages that it has read.

    ``has_begun`` is true from the beginning of a transaction until its commit or rollback ends. After `confine`,
    ``work`` limits the steps of each statement (on a plain sqlite3 connection: of all statements together).
    """

    finished_rows: FinishedRows[Any]
    has_begun = False
    work: Work | None = None

    def execute(self, sql: str, parameters: _Parameters = (), /) -> sqlite3.Cursor:
        """Run a statement, whose steps are counted from 0."""
        if self.work:
            self.work.steps = 0
        return super().execute(sql, parameters)


class Store:
    """The database; all calls run on the store's thread, one after the other.

    Before a migration the database is copied to the folder ``backups``, unless that is ``None``. With the path
    `IN_MEMORY` it has no file, no journal and no temporary files. With ``is_read_only`` a private copy is opened.
    """

    def __init__(
        self,
        path: Path,
        backups: Path | None = None,
        *,
        busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS,
        is_read_only: bool = False,
    ) -> None:
        self.is_read_only = is_read_only
        self._path = path
        self._backups = backups
        self._busy_timeout_seconds = busy_timeout_seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._resting = threading.Lock()
        self._connection: Connection | None = None

    async def open(self) -> None:
        """Open the file, making it if it does not exist, and bring its tables up to date."""
        await self._on_thread(self._open)

    async def read(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work`` on one snapshot of the database and return its result; ``work`` must not write."""
        return await self.write_in_steps(committed, lambda c: work(c, *args, **kwargs), _TO_READ)

    async def write(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work`` in one transaction and return its result; if it raises an error, nothing is committed.

        If the caller is cancelled while it waits, the work may still be done, but then as a whole.
        """
        return await self.write_in_steps(committed, lambda c: work(c, *args, **kwargs))

    async def write_in_steps(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``work`` outside a transaction; it makes a transaction for each of its steps with `committed`.

        No other work of this store runs between the steps, and cancelling the caller does not end them.
        """

        def steps() -> T:
            with self._resting:
                if self._connection is None:
                    message = "the store is not open"
                    raise RuntimeError(message)
                return work(self._connection, *args, **kwargs)

        return await self._on_thread(steps)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Keep the thread from beginning a transaction, so that a stopped process holds no lock for which others wait.

        This waits for the end of an open transaction, but not for a transaction that still waits for its lock.
        """
        gives_up_at = time.monotonic() + self._busy_timeout_seconds + 1
        while not (is_resting := self._resting.acquire(timeout=_GLANCE_SECONDS)):
            if not (self._connection and self._connection.has_begun) or time.monotonic() > gives_up_at:
                break
        try:
            yield
        finally:
            if is_resting:
                self._resting.release()

    async def seal(self) -> None:
        """If the store is read-only, refuse additions to the log from now on with a `DatabaseReadOnlyError`."""
        if self.is_read_only:
            await self.write_in_steps(seal)

    async def compact(self) -> None:
        """Return unused pages to the file system."""
        await self.write_in_steps(lambda connection: connection.execute("VACUUM"))

    async def close(self) -> None:
        """Finish the pending work and close the file."""
        await self._on_thread(self._close)
        self._thread.shutdown()

    async def _on_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:
            raise storage_error(error, self._path) from error

    def _open(self) -> None:
        if self._path != IN_MEMORY:
            migrations.find_or_create(self._path, partial(_connect, busy_timeout_seconds=self._busy_timeout_seconds))
        connection = self._copy() if self.is_read_only else _connect(self._path, self._busy_timeout_seconds)
        try:
            migrations.migrate(connection, backups=None if self.is_read_only else self._backups)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _copy(self) -> Connection:
        connection = _connect("", self._busy_timeout_seconds)
        try:
            copy_into(connection, self._path, self._busy_timeout_seconds)
        except BaseException:
            connection.close()
            raise
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def committed(connection: Connection, work: Callable[[Connection], T], begin: str = _TO_WRITE) -> T:
    """Run ``work`` in one transaction, commit it and return its result; roll it back after any error."""
    connection.execute(begin)
    connection.has_begun = True
    try:
        result = work(connection)
        try:
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            require_confirmed(connection, error)
            raise
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.finished_rows.forget()
        raise
    finally:
        connection.has_begun = False
    return result


def _connect(path: Path | str, busy_timeout_seconds: float) -> Connection:
    connection = sqlite3.connect(path, timeout=busy_timeout_seconds, isolation_level=None, factory=Connection)
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
    if isinstance(connection, Connection):
        connection.work = work


def is_writable(path: Path) -> bool:
    """Return whether this process may write a database and make files beside it, as SQLite must."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def copy_into(connection: sqlite3.Connection, path: Path, busy_timeout_seconds: float) -> None:
    """Copy the database at ``path``, opened read-only, into the empty database of ``connection``."""
    address = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=busy_timeout_seconds, isolation_level=None)) as source:
        # Outside a transaction, the copying would wait for another process for ever.
        source.execute("BEGIN")
        source.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        source.backup(connection)


def seal(connection: sqlite3.Connection) -> None:
    """Refuse additions to the log on this connection from now on: its database is a copy that will be deleted."""
    for table in _KEPT:
        for act in ("INSERT", "DELETE"):
            connection.execute(
                f"CREATE TEMP TRIGGER refused_{table}_{act} BEFORE {act} ON main.{table} "
                f"BEGIN SELECT RAISE(ABORT, '{READ_ONLY}'); END"
            )
    connection.execute(
        "CREATE TEMP TRIGGER refused_threads BEFORE UPDATE OF title, closed_at ON main.threads "
        f"BEGIN SELECT RAISE(ABORT, '{READ_ONLY}'); END"
    )


def for_this_run(connection: C, work: Callable[Concatenate[C, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``work`` within the caller's transaction; on a sealed copy, lift the seal while ``work`` runs.

    If ``work`` fails, the caller's rollback brings the seal back.
    """
    triggers = connection.execute("SELECT name FROM temp.sqlite_master WHERE name LIKE 'refused%'").fetchall()
    for (name,) in triggers:
        connection.execute(f"DROP TRIGGER temp.{name}")
    done = work(connection, *args, **kwargs)
    if triggers:
        seal(connection)
    return done
