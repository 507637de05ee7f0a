"""The store's engine for a log on a PostgreSQL server. psycopg is imported on the store's thread, when it connects."""

from __future__ import annotations

import sqlite3
import time
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.core.errors import StorageError
from chorus_cli.storage.errors import storage_error
from chorus_cli.storage.port import ConstraintError
from chorus_cli.storage.postgres.address import named
from chorus_cli.storage.sqlite import BUSY_TIMEOUT_SECONDS, IN_MEMORY, Sqlite

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    import psycopg

    from chorus_cli.storage.port import Connection, OpenConnection, Row
    from chorus_cli.storage.postgres.connection import PostgresConnection

PACKAGE = "chorus-cli[postgres]"
"""The package of Chorus with the extra that a log on a server needs."""

_SILENCE_SECONDS = 1.0


class Postgres:
    """The log at ``url``, with the SQLite file ``beside`` for the tables that belong to this machine.

    libpq takes settings from the URL, the environment and its own files; only libpq reads the password there.
    While connected, the engine shows other machines that ``run`` lives. ``installing`` is the command to get psycopg.
    """

    errors: tuple[type[Exception], ...] = (sqlite3.Error, UnicodeError, MemoryError)
    is_read_only = False

    def __init__(
        self,
        url: str,
        beside: Path,
        run: str = "",
        *,
        installing: str = f"pip install '{PACKAGE}'",
        busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS,
    ) -> None:
        self.url = url
        self.server = named(url)
        self.run = run
        self.installing = installing
        self._opened: PostgresConnection | None = None
        self._silence: tuple[float, Exception] | None = None
        self._is_ending = False
        self.beside = Sqlite(beside)
        self.busy_timeout_seconds = busy_timeout_seconds

    def open(self) -> OpenConnection:
        """Open the file beside; the first statement for the server connects, and brings its tables up to date."""
        from chorus_cli.storage.postgres.connection import PostgresConnection

        beside = self.beside.open()
        (origin,) = beside.execute("SELECT origin FROM installation").fetchone()
        others = tuple(other for (other,) in beside.execute("SELECT origin FROM other_installations"))
        self._opened = PostgresConnection(partial(self._connected, origin, others), beside)
        return self._opened

    def _connected(self, origin: str, others: tuple[str, ...]) -> psycopg.Connection[Row]:
        try:
            from chorus_cli.storage.postgres import server
        except ImportError as error:
            raise StorageError(
                f"A log on a server needs the package psycopg ({error}). Install it with: {self.installing}, "
                "or go on with the log of this machine: chorus --log local."
            ) from error
        self.errors = (*Postgres.errors, server.Error, ConstraintError)
        began = time.monotonic()
        if self._silence is not None and began < self._silence[0]:
            raise self._silence[1]
        try:
            client = server.Client(origin, self.run, self.busy_timeout_seconds, others, lambda: self._is_ending)
            return server.connected(self.url, client)
        except server.Error as error:
            # Work that has waited behind this attempt must not wait again for a server that does not answer.
            now = time.monotonic()
            self._silence = (now + _SILENCE_SECONDS, error) if now - began > _SILENCE_SECONDS else None
            raise

    def hurry(self) -> None:
        """From now on, let an attempt to reach the server take a second at most."""
        self._is_ending = True

    def is_alive(self, run: str) -> bool:
        """Return whether a run on any machine is connected; only call this within a transaction of the store."""
        return self._opened is not None and self._opened.is_alive(run)

    def notifications(self) -> AsyncGenerator[int, None]:
        """Yield the thread's id for each message or operation that another run stores; 0 means any thread."""
        from chorus_cli.storage.postgres import server

        return server.notifications(self.url, lambda: self._opened.process if self._opened else 0)

    def apart(self) -> Postgres:
        """Return an engine that keeps the tables of the file beside in memory."""
        return Postgres(self.url, IN_MEMORY, installing=self.installing)

    def told(self, error: BaseException) -> StorageError:
        """Return an error of the server, or of the file beside, as a sentence for the user."""
        if isinstance(error, Postgres.errors):
            return storage_error(error, self.beside.path)
        from chorus_cli.storage.postgres import server

        return server.told(error, self.url)

    def seal(self, connection: Connection) -> None:
        """Do nothing: a log on a server is never opened as a copy."""

    def compact(self, connection: Connection) -> None:
        """Have the server delete the overwritten rows that it still keeps, and compact the file beside."""
        if self._opened is connection:
            self._opened.compact()
