"""Connects to the server of a log, makes its tables, hears its notifications, and explains its errors to the user."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict

from chorus_cli.core.errors import (
    DatabaseBusyError,
    DatabaseDamagedError,
    DatabaseFullError,
    DatabaseReadOnlyError,
    DatabaseTooNewError,
    LogUnreachableError,
    StorageError,
)
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.storage import migrations
from chorus_cli.storage.port import Row
from chorus_cli.storage.postgres.address import named
from chorus_cli.storage.postgres.statements import LOCKING, RUNS, key_of
from chorus_cli.storage.postgres.tables import CHANNEL, ORIGIN, OTHERS, RUN, of_steps, statements

T = TypeVar("T")

Error = psycopg.Error
"""The base class of all errors of the server."""

_CONNECTING_SECONDS = 10
_LEAST_SECONDS = 2
"""libpq's shortest limit for connecting; for libpq, 0 means no limit."""
_LINE = {
    "connect_timeout": _CONNECTING_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "chorus",
}
"""Defaults for an address; with them, a connection that was cut silently is noticed after about ten seconds."""

_SETTINGS = {
    # A writing transaction must see the rows that were stored while it waited for its lock.
    "default_transaction_isolation": "read committed",
    # If the server did not notice a cut too, the locks of a machine that lost its power would stay for hours.
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 2,
    "tcp_keepalives_count": 3,
}
"""The settings of a connection on the server."""

_LISTENING_AGAIN_SECONDS = 2.0
_GLANCE_SECONDS = 0.1
_LAST_SECONDS = 1.0
_REASON_CHARACTERS = 200
_OR_LOCAL = "or go on with the log of this machine: chorus --log local."
_NOT_ALLOWED = "42501"
_REFUSALS = ("authentication failed", "no password", "does not exist", "no pg_hba.conf entry", "not permitted to")
"""Parts of the reasons for which a server refuses a connection; psycopg has no code for such an error."""

_NO_SLOT = ("too many clients", "too many connections", "connection slots")


class _Line(psycopg.Connection[Row]):
    """A connection that closes if ``address`` answers neither here nor to a new connection, as behind a dead tunnel.

    A server that is busy with a long statement still accepts or refuses new connections.
    """

    address: Mapping[str, Any]
    is_ending: Callable[[], bool]

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for an answer; every few seconds of silence, find out whether the server still answers."""
        connecting = float(self.address["connect_timeout"])
        silence = connecting if connecting >= _LEAST_SECONDS else _CONNECTING_SECONDS
        return super().wait(self._while_alive(gen, timeout or silence), interval)

    def _while_alive(self, gen: PQGen[T], silence_seconds: float) -> PQGen[T]:
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > silence_seconds:
                    self._require_answer()
                    heard = time.monotonic()
                wanted = gen.send(ready)
        except StopIteration as end:
            found: T = end.value
            return found

    def _require_answer(self) -> None:
        try:
            _reached(self.address, self.is_ending).close()
        except psycopg.OperationalError as error:
            if not _is_refusal(error):
                self.close()
                raise


def _is_refusal(error: psycopg.Error) -> bool:
    """Return whether the server has answered, but refused the connection or asked for a password."""
    # In every language, libpq writes two spaces after the severity of a server's message.
    return ":  " in str(error) or (error.pgconn is not None and error.pgconn.needs_password)


def _reached(address: Mapping[str, Any], is_ending: Callable[[], bool]) -> _Line:
    """Connect in a new thread; when the program ends, give up a server that has not answered within a second."""
    attempt, began = Future[_Line](), time.monotonic()

    def connect() -> None:
        try:
            attempt.set_result(_Line.connect(**address, autocommit=True))
        except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
            attempt.set_exception(error)

    threading.Thread(target=connect, daemon=True).start()
    while not wait([attempt], _GLANCE_SECONDS).done:
        if is_ending() and time.monotonic() - began > _LAST_SECONDS:
            attempt.add_done_callback(_closed)
            message = "it did not answer before the end of the program"
            raise psycopg.OperationalError(message)
    return attempt.result()


def _closed(attempt: Future[_Line]) -> None:
    if attempt.exception() is None:
        attempt.result().close()


class _PlainNumbers(Loader):
    """Reads decimal numbers, the type of PostgreSQL's sums of whole numbers, as ``int`` or ``float``."""

    def load(self, data: Buffer) -> float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


def _never() -> bool:
    return False


class Client(NamedTuple):
    """The client of a connection: the installation that stores rows, the run, and how long the client waits for a lock.

    ``others`` are the other installations of the same machine. Once the program ``is_ending``, the client waits at
    most a second for a server that does not answer.
    """

    origin: str
    run: str
    lock_timeout_seconds: float
    others: tuple[str, ...] = ()
    is_ending: Callable[[], bool] = _never


def connected(url: str, client: Client, steps: Sequence[migrations.Step] = migrations.STEPS) -> psycopg.Connection[Row]:
    """Connect to a log, and bring its tables up to date; from now on, other machines see that the run lives."""
    address = _with_defaults(url)
    server = _reached(address, client.is_ending)
    server.address, server.is_ending = address, client.is_ending
    try:
        _require_postgres(server, url)
        server.adapters.register_loader("numeric", _PlainNumbers)
        timeout = f"{client.lock_timeout_seconds * 1000:.0f}"
        of_client = {ORIGIN: client.origin, OTHERS: ",".join(client.others), RUN: client.run, "lock_timeout": timeout}
        # The lock is shared: after a cut, the server may still hold it for the previous connection.
        (*_, process) = server.execute(
            "SELECT count(set_config(key, value, FALSE)), pg_advisory_lock_shared(%s, %s)::text, pg_backend_pid() "
            "FROM json_each_text(%s)",
            (RUNS, key_of(client.run), json.dumps(_SETTINGS | of_client)),
        ).fetchall()[0]
        _require_session(server, process, url)
        _make_tables(server, url, steps)
    except BaseException:
        server.close()
        raise
    return server


def _with_defaults(url: str) -> dict[str, Any]:
    return {**_LINE, **conninfo_to_dict(url), "client_encoding": "UTF8"}


def _require_postgres(server: _Line, url: str) -> None:
    if server.info.parameter_status("crdb_version"):
        raise StorageError(
            f"{named(url)} is CockroachDB, which does not give ids in order and has no notifications. "
            f"Chorus needs PostgreSQL: put the address of such a server in the setting log, {_OR_LOCAL}"
        )


def _require_session(server: _Line, process: int, url: str) -> None:
    """Refuse a pooler that gives the server's ``process`` to another client while ``server`` is connected."""
    if server.info.backend_pid == process:
        return
    with psycopg.connect(**_with_defaults(url), autocommit=True) as other:
        if other.execute("SELECT pg_backend_pid()").fetchone() == (process,):
            raise StorageError(
                f"{named(url)} is a connection pooler in transaction mode, so machines would not hear of each other's "
                "changes. Put the address of the server itself, or of a pooler in session mode, in the setting log, "
                f"{_OR_LOCAL}"
            )


async def notifications(url: str, own_process: Callable[[], int]) -> AsyncGenerator[int, None]:
    """Yield the thread's id for each message or operation that a process other than ``own_process`` stores.

    Yield 0 for an operation on all threads. Also yield 0 whenever listening begins, because earlier notifications
    were missed.
    """
    while True:
        with suppress(psycopg.Error, OSError):
            connecting = psycopg.AsyncConnection.connect(**_with_defaults(url), autocommit=True)
            async with await connecting as listening:
                await listening.execute(f"LISTEN {CHANNEL}".encode())
                yield 0
                async for told in listening.notifies():
                    if told.payload.isdecimal() and told.pid != own_process():
                        yield int(told.payload)
        await asyncio.sleep(_LISTENING_AGAIN_SECONDS)


def _make_tables(server: psycopg.Connection[Row], url: str, steps: Sequence[migrations.Step]) -> None:
    if not _missing(server, url, steps):
        return
    try:
        with server.transaction():
            server.execute(LOCKING)
            # Another machine may have made the tables while this machine waited for the lock.
            missing = _missing(server, url, steps)
            if missing:
                server.execute("; ".join(statements(steps) if missing == steps else of_steps(missing)).encode())
            now = timestamps.to_text(datetime.now(UTC))
            rows = [(name, now) for name, _ in missing]
            server.cursor().executemany("INSERT INTO schema_migrations(name, applied_at) VALUES (%s, %s)", rows)
    except psycopg.ProgrammingError as error:
        if error.sqlstate == _NOT_ALLOWED:
            raise
        raise StorageError(
            f"The tables of the log at {named(url)} cannot be made or brought up to date ({_reason(error)}). "
            "Nothing was changed: the Chorus that made the log can still use it."
        ) from error


def _missing(server: psycopg.Connection[Row], url: str, steps: Sequence[migrations.Step]) -> Sequence[migrations.Step]:
    """Return the steps that the tables lack: all ``steps`` if the database is empty."""
    listed = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    found = [table for (table,) in server.execute(listed).fetchall()]
    if not found:
        return steps
    # Other programs have a table of migrations with the same name.
    if not {"schema_migrations", "changed_rows"} <= {*found}:
        raise DatabaseDamagedError(
            f"The database at {named(url)} belongs to another program. Make one for Chorus, for example "
            "with createdb chorus, and name it in the setting log."
        )
    applied = {name for (name,) in server.execute("SELECT name FROM schema_migrations").fetchall()}
    if not applied <= {name for name, _ in steps}:
        raise DatabaseTooNewError(migrations.made_by_newer(f"The log at {named(url)}", "open"))
    return [step for step in steps if step[0] not in applied]


def told(error: BaseException, url: str) -> StorageError:
    """Return an error of the server as a sentence for the user."""
    log, state = named(url), getattr(error, "sqlstate", None) or ""
    reason = _reason(error)
    if state in {"55P03", "40001", "40P01"}:
        return DatabaseBusyError(f"Another Chorus writes to the log at {log} and did not finish in time. Try again.")
    if state.startswith("53") and state != "53300":
        return DatabaseFullError(f"The server of the log at {log} has no room left ({reason}). Make room there.")
    if state == "25006":
        return DatabaseReadOnlyError(f"The log at {log} cannot be written, so nothing was stored ({reason}).")
    is_lost = isinstance(error, psycopg.OperationalError)
    if state == "53300" or any(each in reason for each in _NO_SLOT):
        return LogUnreachableError(
            f"The server of the log at {log} has no connection left ({reason}). Try again once another program has "
            f"ended, raise the limit there, {_OR_LOCAL}"
        )
    is_refused = is_lost and not state and any(each in reason for each in _REFUSALS)
    if is_refused or state[:2] in {"28", "3D"} or state == _NOT_ALLOWED:
        return LogUnreachableError(
            f"The server refuses the log at {log} ({reason}). Correct the address or the password, {_OR_LOCAL}"
        )
    if is_lost and (not state or state[:2] in {"08", "57"}):
        return LogUnreachableError(
            f"The log at {log} is out of reach ({reason}). Try again once the server answers, {_OR_LOCAL}"
        )
    return StorageError(f"The server of the log at {log} reported an error: {reason}. Try again.")


def _reason(error: BaseException) -> str:
    first_line = str(error).strip().partition("\n")[0]
    # The words before " failed: " only repeat the address.
    return shortened(first_line.rpartition(" failed: ")[2].removeprefix("FATAL:").strip(), _REASON_CHARACTERS)
