"""Bounds for a database that Chorus did not write just now, such as a restored backup or another program's log.

Whoever made it may have put code into it: views and triggers without an end, and generated columns of any size.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core import limits

if TYPE_CHECKING:
    from sqlite3 import _Parameters

_STEPS_AT_A_TIME = 1_000_000
_MOST_STEPS = 100_000_000
"""A second or two of work, more than a small log ever needs."""

_MOST_STEPS_A_BYTE = 10
"""What a large log may need beyond that; all checks of a log of short messages take one step a byte."""

GIVEN_UP = "reading it takes far more work than a log of its size needs"
"""The reason of ``SQLITE_INTERRUPT``."""

_GENERATED = """
    SELECT tables.name, columns.name FROM sqlite_master AS tables JOIN pragma_table_xinfo(tables.name) AS columns
    WHERE tables.type = 'table' AND tables.sql NOT LIKE 'CREATE VIRTUAL%' AND hidden IN (2, 3)
"""


class Work:
    """The steps that SQLite has done since the last `begin`, and their bound: it grows with the file at ``path``."""

    def __init__(self, path: str, size_bytes: int) -> None:
        self._path = path
        self._size_bytes = size_bytes
        self._steps = 0

    def begin(self) -> None:
        """Count from now on."""
        self._steps = 0

    def is_enough(self) -> bool:
        """Count the steps since the last call, of which SQLite makes one from time to time."""
        self._steps += _STEPS_AT_A_TIME
        if self._steps > _MOST_STEPS + _MOST_STEPS_A_BYTE * self._size_bytes:
            with suppress(OSError):
                self._size_bytes = max(self._size_bytes, Path(self._path).stat().st_size)
        return self._steps > _MOST_STEPS + _MOST_STEPS_A_BYTE * self._size_bytes


class Connection(sqlite3.Connection):
    """A connection on which each statement, once it is confined, may do as much as all together on any other."""

    work: Work | None = None

    def execute(self, sql: str, parameters: _Parameters = (), /) -> sqlite3.Cursor:
        """Run a statement."""
        if self.work:
            self.work.begin()
        return super().execute(sql, parameters)


def confine(connection: sqlite3.Connection) -> None:
    """Bound the values and the steps of all later statements; beyond the steps they fail with ``SQLITE_INTERRUPT``."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.STORED_ATTACHMENT.most)
    (pages,), (page_bytes,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    work = Work(path, pages * page_bytes)
    connection.set_progress_handler(work.is_enough, _STEPS_AT_A_TIME)
    if isinstance(connection, Connection):
        connection.work = work


def read_tables_only(connection: sqlite3.Connection) -> None:
    """Confine a connection that only reads; to it, views are refused and generated columns are NULL."""
    confine(connection)
    views = {name.lower() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    generated = {(table.lower(), column.lower()) for table, column in connection.execute(_GENERATED)}

    def allowed(action: int, table: str | None, column: str | None, *_: str | None) -> int:
        if action != sqlite3.SQLITE_READ or table is None:
            return sqlite3.SQLITE_OK
        if table.lower() in views:
            return sqlite3.SQLITE_DENY
        is_generated = (table.lower(), (column or "").lower()) in generated
        return sqlite3.SQLITE_IGNORE if is_generated else sqlite3.SQLITE_OK

    if views or generated:
        connection.set_authorizer(allowed)
