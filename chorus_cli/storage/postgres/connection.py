"""A connection to a log on a server and to the SQLite file beside, which together look like one SQLite database.

Statements wait until a result is asked for, and then go to the server in one message. So several statements cost one
round trip if their results are read after the last of them. Values are put into the statements as literals, because
PostgreSQL infers the types of literals from their context.

If there is no connection, a transaction's first statement for the server connects. So the outbox and the input history,
which are in the file beside, can be read and written while the server is out of reach.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from chorus_cli.core.errors import DatabaseUnconfirmedError, StorageError
from chorus_cli.storage import meta_rows
from chorus_cli.storage.errors import file_of
from chorus_cli.storage.port import ConstraintError, FinishedRows, Parameters, Row, Rows
from chorus_cli.storage.postgres.statements import LOCKING, RUNS, Statement, key_of, translated

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    from chorus_cli.storage.sqlite import SqliteConnection

_TO_READ = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
_TO_WRITE = ("BEGIN", LOCKING)
_SHARED_VALUES = (meta_rows.THREADS_BEFORE, meta_rows.SEARCH_INDEX)
"""Beginnings of the keys in ``meta`` whose values belong to the log; all other values belong to this machine."""

_CUT = ("08", "57P")
"""Beginnings of the SQLSTATE codes of a cut connection; most cut connections have no code."""

_IDLE = 0
"""libpq's transaction status of a connection without a transaction."""

_IS_HELD = (
    "SELECT EXISTS(SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = ? AND objid = ? AND objsubid = 2 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)

_NUL, _SIGN_FOR_NUL = "\0", "\u2400"

_ATTEMPTS_TO_COMPACT = 3
_KEPT = re.compile("[0-9]+")
"""The number of rows that the server keeps: in any language, the only number in the first line of a notice's detail."""

_OVERWRITTEN = (
    *("messages", "operations", "summaries", "context_items", "context_checkpoints", "threads", "sessions"),
    *("message_words", "context_item_words", "attachment_files"),
)
"""The tables that contain words of the user."""


class PostgresConnection:
    """The connection of a store; ``connect`` connects to the server, and ``beside`` is the open file beside."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Row]], beside: SqliteConnection) -> None:
        self.finished_rows: FinishedRows[Any] = FinishedRows()
        self.has_begun = False
        self.round_trips = 0
        self._connect = connect
        self._server: psycopg.Connection[Row] | None = None
        self._beside = beside
        self._unsent: list[_Rows] = []
        self._is_writing = False
        self._is_new = False

    @property
    def process(self) -> int:
        """The id of the server's process for this connection, as notifications name it; 0 if not connected."""
        return self._server.info.backend_pid if self._server is not None and not self._server.closed else 0

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open on the server or in the file beside."""
        is_idle = self._server is None or self._server.info.transaction_status == _IDLE
        return not is_idle or self._beside.in_transaction

    def begin(self, *, to_write: bool) -> None:
        """Begin a transaction when the next statement is run."""
        self._is_writing = to_write
        self._is_new, self._unsent = True, []

    def commit(self) -> None:
        """Commit on the server, and then in the file beside, on which the log does not depend."""
        is_on_server = not self._is_new
        if is_on_server:
            self._committed_on_server()
        try:
            if self._beside.in_transaction:
                self._beside.commit()
        except sqlite3.Error as error:
            if not (is_on_server and self._is_writing):
                raise
            raise DatabaseUnconfirmedError(
                f"The change is in the log on the server, but not in {file_of(self._beside)} on this machine "
                f"({error}). Check the disk."
            ) from error

    def rollback(self) -> None:
        """Undo the transaction; after a cut, the server undoes it by itself."""
        self._unsent = []
        if self._beside.in_transaction:
            self._beside.rollback()
        if self._server is not None and not self._server.closed:
            from psycopg import OperationalError

            # The user is told the error that ended the transaction, not an error of the rollback.
            with suppress(OperationalError):
                self._server.rollback()

    def continue_ids(self, table: str) -> None:
        """Let the ids of new rows go on after the newest row."""
        self.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), MAX(id)) FROM {table}")

    def compact(self) -> None:
        """Rewrite the file beside, and the tables with words of the user, so that no overwritten words stay in them.

        If an open transaction of another program still sees overwritten rows, raise a ``StorageError``: the rows stay.
        """
        for _ in range(_ATTEMPTS_TO_COMPACT):
            if not self._kept_by_compacting():
                break
            time.sleep(1)
        else:
            raise StorageError(
                "The server of the log still has overwritten texts in its files: another program is reading them."
            )
        self._beside.execute("VACUUM")

    def close(self) -> None:
        """End the connection to the server, and close the file."""
        if self._server is not None:
            self._server.close()
        self._beside.close()

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        """Run a statement on the server, or in the file beside if its table or value belongs to this machine.

        A statement for the server is sent when its result or a later result is asked for, or with the commit.
        """
        statement = translated(sql)
        if statement.is_beside or (statement.of_meta and not _is_shared(parameters)):
            return self._in_file().execute(sql, parameters)
        return self._later(statement, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Rows:
        """Run a statement with each set of parameters."""
        rows: Rows = _Rows(self, "")
        for each in parameters:
            rows = self.execute(sql, each)
        return rows

    def is_alive(self, run: str) -> bool:
        """Return whether a run on any machine is connected to the server."""
        return bool(self.execute(_IS_HELD, (RUNS, key_of(run))).fetchone()[0])

    def send(self) -> None:
        """Send all waiting statements in one message, and take in their results."""
        unsent, self._unsent = self._unsent, []
        if not unsent or self._server is None:
            return
        from psycopg import DataError, IntegrityError

        self.round_trips += 1
        cursor = self._server.cursor()
        try:
            cursor.execute("; ".join(each.sql for each in unsent).encode())
        except (IntegrityError, DataError) as error:
            raise ConstraintError(str(error)) from error
        for each in unsent:
            each.take_in(cursor)
            cursor.nextset()

    def _kept_by_compacting(self) -> int:
        """Rewrite the tables with words, and return how many overwritten rows the server keeps."""
        server, kept = self._line(), list[int]()

        def count(told: psycopg.errors.Diagnostic) -> None:
            found = _KEPT.search((told.message_detail or "").partition("\n")[0])
            kept.append(int(found[0]) if found else 0)

        server.add_notice_handler(count)
        try:
            # VACUUM must not run in a transaction, and `execute` would begin one.
            server.execute(f"VACUUM (FULL, VERBOSE, ANALYZE) {', '.join(_OVERWRITTEN)}".encode())
        finally:
            server.remove_notice_handler(count)
        return sum(kept)

    def _later(self, statement: Statement, parameters: Parameters) -> _Rows:
        server = self._begun_on_server() if self._is_new or self._server is None else self._server
        from psycopg import ClientCursor

        sql = ClientCursor(server).mogrify(statement.sql.encode(), _storable(parameters))
        self._unsent.append(rows := _Rows(self, sql))
        return rows

    def _begun_on_server(self) -> psycopg.Connection[Row]:
        server = self._line()
        self._is_new = False
        self._unsent = [_Rows(self, each) for each in (_TO_WRITE if self._is_writing else _TO_READ)]
        return server

    def _line(self) -> psycopg.Connection[Row]:
        if self._server is None or _is_cut(self._server):
            self._server = self._connect()
            self.finished_rows.forget()
        return self._server

    def _in_file(self) -> SqliteConnection:
        if not self._beside.in_transaction:
            self._beside.begin(to_write=self._is_writing)
        return self._beside

    def _committed_on_server(self) -> None:
        from psycopg import OperationalError

        self._unsent.append(_Rows(self, "COMMIT"))
        try:
            self.send()
        except OperationalError as error:
            # After any other error, the server has undone the transaction.
            is_cut = (error.sqlstate or _CUT[0]).startswith(_CUT)
            if not (self._is_writing and is_cut):
                raise
            raise DatabaseUnconfirmedError(
                "The connection to the log broke before the server confirmed a change, so the change may be lost. "
                "Once the server answers again, chorus log shows whether the change was made."
            ) from error


class _Rows:
    """The result of a statement; asking for the result sends the statement, if it still waits."""

    def __init__(self, connection: PostgresConnection, sql: str) -> None:
        self.sql = sql
        self._connection = connection
        self._rows: list[Row] = []
        self._count = -1

    @property
    def rowcount(self) -> int:
        self._connection.send()
        return self._count

    def take_in(self, cursor: psycopg.Cursor[Row]) -> None:
        self._count = cursor.rowcount
        self._rows = cursor.fetchall() if cursor.description else []
        self._rows.reverse()

    def __iter__(self) -> Iterator[Row]:
        yield from self.fetchall()

    def fetchone(self) -> Row:
        self._connection.send()
        return self._rows.pop() if self._rows else None

    def fetchall(self) -> list[Row]:
        self._connection.send()
        rows, self._rows = self._rows[::-1], []
        return rows

    def close(self) -> None:
        self._rows = []


def _is_cut(server: psycopg.Connection[Row]) -> bool:
    """Return whether a connection was cut, without a round trip: an ending server sends a message, and then closes."""
    from psycopg import OperationalError

    with suppress(OperationalError):
        for _ in range(2):
            server.pgconn.consume_input()
    return server.closed


def _is_shared(parameters: Parameters) -> bool:
    key = parameters["key"] if isinstance(parameters, Mapping) else parameters[0]
    return str(key).startswith(_SHARED_VALUES)


def _storable(parameters: Parameters) -> Parameters:
    """Replace NUL, which PostgreSQL cannot store in a text."""
    if isinstance(parameters, Mapping):
        return {key: _without_nul(value) for key, value in parameters.items()}
    return [_without_nul(value) for value in parameters]


def _without_nul(value: object) -> object:
    return value.replace(_NUL, _SIGN_FOR_NUL) if isinstance(value, str) and _NUL in value else value
