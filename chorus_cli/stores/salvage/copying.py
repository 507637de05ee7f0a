"""A copy of the database that keeps no other connection waiting, and its facts."""

from __future__ import annotations

import math
import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from chorus_cli.core.errors import BackupError, DatabaseDamagedError
from chorus_cli.storage import foreign_code, store
from chorus_cli.storage.errors import folder_in_the_way, storage_error
from chorus_cli.storage.migrations import APPLICATION_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OpenDatabase: TypeAlias = sqlite3.Connection

_STEP_PAGES = 1000
"""Pages of 4 kB that are copied at a time: some milliseconds, in which nobody else can commit."""

_PAUSE_SECONDS = 0.005
_MOST_RESTARTS = 5
_BUSY_TIMEOUT_SECONDS = 10.0


class BackupStoppedError(BackupError):
    """A copy was stopped, because Chorus ends."""


class Facts(NamedTuple):
    """The extent of a log: its messages and threads, and the time of the newest message, as its row has it."""

    messages: int
    threads: int
    newest: str | None


class _RestartedError(Exception):
    """SQLite began anew too often."""


def copy_database(source: Path, target: Path, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Copy the committed state of ``source`` into the new file ``target``, while others may write to it.

    It is copied in steps, between which others write. SQLite begins anew when they do; after some times the rest is
    copied in one step.
    """
    fewest: float = math.inf
    restarts = 0

    def after_step(_status: int, remaining: int, _total: int) -> None:
        nonlocal fewest, restarts
        if is_stopped():
            raise BackupStoppedError("The backup was stopped; the log is as it was.")
        restarts += remaining > fewest
        if restarts > _MOST_RESTARTS:
            raise _RestartedError
        fewest = remaining
        time.sleep(_PAUSE_SECONDS)

    with opened(source) as connection, _told(target), closing(sqlite3.connect(target)) as copy:
        copy.execute("PRAGMA synchronous = OFF")
        try:
            connection.backup(copy, pages=_STEP_PAGES, progress=after_step)
        except _RestartedError:
            connection.backup(copy)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing database, and give up if a statement has no end; its errors become sentences."""
    if path.is_dir():
        raise folder_in_the_way(path)
    if not path.is_file():
        raise DatabaseDamagedError(f"There is no database {path}.")
    # Only a connection that may write rolls back the transaction of a killed process, which must not be read.
    place = path if store.is_writable(path) else ""
    with (
        _told(path),
        closing(sqlite3.connect(place, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None)) as connection,
    ):
        if not place:
            store.copy_into(connection, path, _BUSY_TIMEOUT_SECONDS)
        store.confine(connection)
        yield connection


@contextmanager
def opened_untrusted(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing database only to read its tables."""
    with opened(path) as connection:
        foreign_code.read_tables_only(connection)
        yield connection


def facts(connection: sqlite3.Connection) -> Facts:
    """Return the extent of the log."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
        raise DatabaseDamagedError(f"{path} is no database of Chorus.")
    messages, newest = connection.execute("SELECT COUNT(*), MAX(timestamp) FROM messages").fetchone()
    (threads,) = connection.execute("SELECT COUNT(*) FROM threads").fetchone()
    return Facts(messages, threads, newest)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:
        raise storage_error(error, path) from error
