"""The wait for another program's lock: calls that wait behind each other wait together, not one after the other."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_LEAST_SECONDS = 0.1


def is_busy(error: BaseException) -> bool:
    """Return whether SQLite gave up because another connection holds a lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


class Patience:
    """The ``seconds`` that a call waits for locks, counted from its submission, also while earlier calls wait."""

    def __init__(self, seconds: float) -> None:
        self._seconds = self._allowed = seconds
        # The last wait that ended in a refusal; reads in between may succeed and say nothing of a lock against writing.
        self._busy_from = self._busy_until = 0.0

    def keep(self, connection: sqlite3.Connection | None, submitted_at: float, work: Callable[[], T]) -> T:
        """Run ``work`` on ``connection``; it waits less for a lock if calls before it have waited since its submission.

        Times are monotonic. A call that waited behind long work still has all of its seconds.
        """
        began_at, since = time.monotonic(), max(self._busy_from, submitted_at)
        waited = max(0.0, self._busy_until - since)
        self._allow(connection, max(_LEAST_SECONDS, self._seconds - waited))
        try:
            return work()
        except sqlite3.Error as error:
            if is_busy(error):
                self._busy_from = self._busy_from if waited else began_at
                self._busy_until = time.monotonic()
            raise

    def _allow(self, connection: sqlite3.Connection | None, seconds: float) -> None:
        if connection is not None and seconds != self._allowed:
            connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}").fetchall()
            self._allowed = seconds
