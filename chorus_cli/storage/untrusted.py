"""Bounds for a database that Chorus did not write just now, such as a restored backup or another program's log.

Whoever made it may have put code into it: views and triggers without an end, and generated columns of any size.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from chorus_cli.core import limits

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS_AT_A_TIME = 1_000_000
_MOST_STEPS = 100_000_000
"""A second or two of work, more than a small log ever needs."""

_MOST_STEPS_A_BYTE = 100
"""What a large log may need beyond that; reading all of it once takes about one step a byte."""

GIVEN_UP = "reading it takes far more work than a log of its size needs"
"""The reason of ``SQLITE_INTERRUPT``."""

_GENERATED = """
    SELECT tables.name, columns.name FROM sqlite_master AS tables JOIN pragma_table_xinfo(tables.name) AS columns
    WHERE tables.type = 'table' AND tables.sql NOT LIKE 'CREATE VIRTUAL%' AND hidden IN (2, 3)
"""


def confine(connection: sqlite3.Connection) -> None:
    """Bound the values and the steps of all later statements; beyond the steps they fail with ``SQLITE_INTERRUPT``."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.STORED_ATTACHMENT.most)
    (pages,), (page_bytes,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    connection.set_progress_handler(_gives_up(_MOST_STEPS + _MOST_STEPS_A_BYTE * pages * page_bytes), _STEPS_AT_A_TIME)


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


def _gives_up(most_steps: int) -> Callable[[], bool]:
    """Return the function that SQLite calls from time to time: it is true once that is too often."""
    steps = 0

    def is_enough() -> bool:
        nonlocal steps
        steps += _STEPS_AT_A_TIME
        return steps > most_steps

    return is_enough
