"""The store of the log: one thread owns its connection, so that no lock and no slow network freezes the keyboard."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from chorus_cli.storage.port import Connection, Engine, OpenConnection

P = ParamSpec("P")
T = TypeVar("T")

_GLANCE_SECONDS = 0.1


class Store:
    """Runs work on the log of an engine, one piece after the other, on a thread of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._resting = threading.Lock()
        self._connection: OpenConnection | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether the log can be read, but not written."""
        return self._engine.is_read_only

    @property
    def server(self) -> str:
        """The host and database of the log's server, without the password; empty if the log is on this machine."""
        return self._engine.server

    def engine_apart(self) -> Engine:
        """Return an engine for another connection to the log."""
        return self._engine.apart()

    async def open(self) -> None:
        """Open the database, and make its tables or bring them up to date; on a server, the first work does that."""
        await self._on_thread(self._open)

    async def read(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work`` on one snapshot of the database and return its result; ``work`` must not write."""
        reading = partial(committed, work=lambda c: work(c, *args, **kwargs), to_write=False)
        return await self._with_connection(reading)

    async def write(self, work: Callable[Concatenate[OpenConnection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work`` in one transaction and return its result; after an error nothing is committed.

        If the caller is cancelled while it waits, the work may still be done, but then as a whole.
        """
        return await self.write_in_steps(committed, lambda c: work(c, *args, **kwargs))

    async def write_in_steps(
        self, work: Callable[Concatenate[OpenConnection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``work`` outside a transaction; ``work`` makes a transaction for each of its steps with `committed`.

        No other work of this store runs between the steps, and cancelling the caller does not end them.
        """
        return await self._with_connection(lambda connection: work(connection, *args, **kwargs))

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Begin no transaction within this context, so that a stopped process holds no lock for which others wait.

        Wait first for the end of an open transaction, but not for a transaction that still waits for its lock.
        """
        gives_up_at = time.monotonic() + self._engine.busy_timeout_seconds + 1
        while not (is_resting := self._resting.acquire(timeout=_GLANCE_SECONDS)):
            if not (self._connection and self._connection.has_begun) or time.monotonic() > gives_up_at:
                break
        try:
            yield
        finally:
            if is_resting:
                self._resting.release()

    async def seal(self) -> None:
        """Refuse additions to the log from now on with a `DatabaseReadOnlyError`."""
        await self.write_in_steps(self._engine.seal)

    async def compact(self) -> None:
        """Return the room of deleted rows to the file system."""
        await self.write_in_steps(self._engine.compact)

    def hurry(self) -> None:
        """From now on, let work wait only briefly for a server that does not answer, as the program is ending."""
        self._engine.hurry()

    async def close(self) -> None:
        """Finish the pending work and close the connection."""
        self.hurry()
        await self._on_thread(self._close)
        self._thread.shutdown()

    async def _with_connection(self, work: Callable[[OpenConnection], T]) -> T:
        def steps() -> T:
            with self._resting:
                if self._connection is None:
                    message = "the store is not open"
                    raise RuntimeError(message)
                return work(self._connection)

        return await self._on_thread(steps)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except self._engine.errors as error:
            raise self._engine.told(error) from error

    def _open(self) -> None:
        self._connection = self._engine.open()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@asynccontextmanager
async def opened_store(log: Engine) -> AsyncIterator[Store]:
    """Open the store of an engine for a block."""
    store = Store(log)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def committed(connection: OpenConnection, work: Callable[[OpenConnection], T], *, to_write: bool = True) -> T:
    """Run ``work`` in one transaction, commit it and return its result; roll it back after any error."""
    connection.begin(to_write=to_write)
    connection.has_begun = True
    try:
        result = work(connection)
        connection.commit()
    except BaseException:
        if connection.in_transaction:
            connection.rollback()
        connection.finished_rows.forget()
        raise
    finally:
        connection.has_begun = False
    return result
