"""A write that changes something outside the database too: a compensation takes it back unless the write commits."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from functools import partial
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


class Outside:
    """Words beside the database; one that is added is noted in the database too."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.taken_back: list[str] = []

    def add(self, connection: Connection, *words: str) -> None:
        for word in words:
            self.words.append(word)
            connection.unless_committed(partial(self.take_back, word))
            note(connection, word)

    def take_back(self, word: str) -> None:
        self.words.remove(word)
        self.taken_back.append(word)


@pytest.fixture
def outside() -> Outside:
    return Outside()


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


async def test_what_is_committed_stays(store: Store, outside: Outside) -> None:
    await store.write(outside.add, "one", "two")
    with pytest.raises(ValueError, match="in the work"):
        await store.write(raise_an_error)
    assert (outside.words, outside.taken_back) == (["one", "two"], [])
    assert await store.read(notes) == ["one", "two"]


@pytest.mark.parametrize(("fail", "error"), FAILURES.items())
async def test_what_fails_is_taken_back_the_last_first(
    store: Store, outside: Outside, fail: Callable[[Connection], None], error: tuple[type[Exception], str]
) -> None:
    def work(connection: Connection) -> None:
        outside.add(connection, "one", "two")
        fail(connection)

    await store.write(lambda connection: connection.execute(REFERRING_TABLE).fetchall())
    with pytest.raises(error[0], match=error[1]):
        await store.write(work)
    assert (outside.words, outside.taken_back) == ([], ["two", "one"])
    assert await store.read(notes) == []
    await store.write(outside.add, "three")
    assert (outside.words, await store.read(notes)) == (["three"], ["three"])


async def test_a_reader_in_another_process_is_met_only_at_commit(store: Store, outside: Outside, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert notes(reader) == []
        with pytest.raises(DatabaseBusyError):
            await store.write(outside.add, "one")
    assert outside.taken_back == ["one"]
    assert await store.read(notes) == []


async def test_nobody_else_can_write_before_it_is_taken_back(store: Store, path: Path) -> None:
    refused: list[str] = []

    def write_elsewhere() -> None:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                refused.append(str(error))

    def work(connection: Connection) -> None:
        connection.unless_committed(write_elsewhere)
        raise_an_error(connection)

    with pytest.raises(ValueError, match="in the work"):
        await store.write(work)
    assert refused == ["database is locked"]


async def test_a_compensation_that_fails_stops_neither_the_others_nor_the_rollback(
    store: Store, outside: Outside
) -> None:
    def work(connection: Connection) -> None:
        outside.add(connection, "one")
        connection.unless_committed(partial(outside.take_back, "never added"))
        raise_an_error(connection)

    with pytest.raises(ValueError, match="not in list") as met:
        await store.write(work)
    assert str(met.value.__context__) == "in the work"
    assert outside.taken_back == ["one"]
    await store.write(note, "two")
    assert await store.read(notes) == ["two"]


async def test_a_cancelled_caller_leaves_both_or_neither(store: Store, outside: Outside) -> None:
    def slowly(connection: Connection) -> None:
        outside.add(connection, "one")
        time.sleep(0.05)
        outside.add(connection, "two")

    writing = asyncio.ensure_future(store.write(slowly))
    waiting = asyncio.ensure_future(store.write(outside.add, "three"))
    await asyncio.sleep(0.02)
    for task in (writing, waiting):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await store.read(notes) == sorted(outside.words)
    assert outside.taken_back == []
