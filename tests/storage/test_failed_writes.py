"""A write that fails or is cancelled leaves all of its rows or none."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import DatabaseBusyError, StorageError
from chorus_cli.storage.store import Store
from tests.storage.notes import note, notes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from chorus_cli.storage.store import Connection

REFERRING_TABLE = "CREATE TABLE referring (message_id REFERENCES messages (id))"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    """A store that does not wait long for a lock."""
    opened = Store(path, busy_timeout_seconds=0.05)
    await opened.open()
    yield opened
    await opened.close()


def add(connection: Connection, *words: str) -> None:
    for word in words:
        note(connection, word)


def raise_an_error(_: Connection) -> None:
    raise ValueError("in the work")


def break_a_constraint(connection: Connection) -> None:
    connection.execute("INSERT INTO meta VALUES ('one', 'again')")


def break_a_constraint_that_is_checked_at_commit(connection: Connection) -> None:
    connection.execute("PRAGMA defer_foreign_keys = ON")
    connection.execute("INSERT INTO referring VALUES (404)")


FAILURES: dict[Callable[[Connection], None], tuple[type[Exception], str]] = {
    raise_an_error: (ValueError, "in the work"),
    break_a_constraint: (StorageError, "UNIQUE constraint failed"),
    break_a_constraint_that_is_checked_at_commit: (StorageError, "FOREIGN KEY constraint failed"),
}


@pytest.mark.parametrize(("fail", "error"), FAILURES.items())
async def test_what_fails_leaves_no_row(
    store: Store, fail: Callable[[Connection], None], error: tuple[type[Exception], str]
) -> None:
    def work(connection: Connection) -> None:
        add(connection, "one", "two")
        fail(connection)

    await store.write(lambda connection: connection.execute(REFERRING_TABLE).fetchall())
    with pytest.raises(error[0], match=error[1]):
        await store.write(work)
    assert await store.read(notes) == []
    await store.write(add, "three")
    assert await store.read(notes) == ["three"]


async def test_a_reader_in_another_process_is_met_only_at_commit(store: Store, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert notes(reader) == []
        with pytest.raises(DatabaseBusyError):
            await store.write(add, "one")
    assert await store.read(notes) == []


async def test_a_cancelled_caller_leaves_all_rows_or_none(store: Store) -> None:
    def slowly(connection: Connection) -> None:
        add(connection, "one")
        time.sleep(0.05)
        add(connection, "two")

    writing = asyncio.ensure_future(store.write(slowly))
    waiting = asyncio.ensure_future(store.write(add, "three"))
    await asyncio.sleep(0.02)
    for task in (writing, waiting):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await store.read(notes) in (["one", "two"], ["one", "three", "two"])
