"""A database that can be read and not written: a private copy of it is opened, which nothing can be added to.

In the copy, the index and all that a reader notes may change; SQLite deletes it when it is closed.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

C = TypeVar("C", bound=sqlite3.Connection)
P = ParamSpec("P")
T = TypeVar("T")

_READ_ONLY = "this log is read-only"
_KEPT = ("messages", "operations", "summaries", "threads", "sessions", "context_items", "outbox")


def is_writable(path: Path) -> bool:
    """Return whether this process may write a file and make others beside it, as SQLite does."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def copy_into(connection: sqlite3.Connection, path: Path, busy_timeout_seconds: float) -> bool:
    """Copy the database into an empty one; return whether it had a write that a killed process left half-done.

    Such a write is rolled back in the copy.
    """
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=busy_timeout_seconds, isolation_level=None)) as source:
            _copy(source, connection)
    except sqlite3.OperationalError:
        journal = path.with_name(f"{path.name}-journal")
        if not journal.is_file() or not journal.stat().st_size:
            raise
    else:
        return False
    with tempfile.TemporaryDirectory() as folder:
        for each in (path, journal):
            shutil.copyfile(each, Path(folder) / each.name)
        with closing(sqlite3.connect(Path(folder) / path.name, isolation_level=None)) as source:
            _copy(source, connection)
    return True


def seal(connection: sqlite3.Connection) -> None:
    """Refuse to add to the log from now on, on this connection: what it stored would be lost."""
    for table in _KEPT:
        for act in ("INSERT", "DELETE"):
            connection.execute(
                f"CREATE TEMP TRIGGER refused_{table}_{act} BEFORE {act} ON main.{table} "
                f"BEGIN SELECT RAISE(ABORT, '{_READ_ONLY}'); END"
            )
    connection.execute(
        "CREATE TEMP TRIGGER refused_threads BEFORE UPDATE OF title, closed_at ON main.threads "
        f"BEGIN SELECT RAISE(ABORT, '{_READ_ONLY}'); END"
    )


def for_this_run(connection: C, work: Callable[Concatenate[C, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``work`` in a transaction, also on a sealed copy: it changes, the log that others read does not.

    A failure leaves the seal to the rollback, which brings it back.
    """
    triggers = connection.execute("SELECT name FROM temp.sqlite_master WHERE name LIKE 'refused%'").fetchall()
    for (name,) in triggers:
        connection.execute(f"DROP TRIGGER temp.{name}")
    done = work(connection, *args, **kwargs)
    if triggers:
        seal(connection)
    return done


def is_refusal(error: Exception) -> bool:
    """Return whether `seal` is the reason of an error."""
    return str(error) == _READ_ONLY


def _copy(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    # Without a transaction, a copy would wait for another process for ever.
    source.execute("BEGIN")
    source.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    source.backup(target)
