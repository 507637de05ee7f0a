"""Calls of the store that meet another program's lock wait together, and each as long as it was told to."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import DatabaseBusyError
from chorus_cli.storage.store import Connection, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PATIENCE_SECONDS = 0.5


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "chorus.db", busy_timeout_seconds=PATIENCE_SECONDS)
    await store.open()
    yield store
    await store.close()


def counted(connection: Connection) -> int:
    (number,) = connection.execute("SELECT COUNT(*) FROM messages").fetchone()
    return int(number)


async def seconds_until_refused(store: Store, calls: int) -> float:
    began = time.monotonic()
    outcomes = await asyncio.gather(*(store.write(counted) for _ in range(calls)), return_exceptions=True)
    assert [type(each) for each in outcomes] == [DatabaseBusyError] * calls
    return time.monotonic() - began


async def test_calls_that_wait_behind_each_other_are_refused_after_one_wait(store: Store, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "chorus.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert await seconds_until_refused(store, 6) < 3 * PATIENCE_SECONDS
        # A call of later is patient again.
        assert await seconds_until_refused(store, 1) >= PATIENCE_SECONDS * 0.9
        other.execute("ROLLBACK")
    assert await store.write(counted) == 0


async def test_a_read_in_between_makes_no_write_wait_anew(store: Store, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "chorus.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        calls = (store.write(counted), store.read(counted), store.write(counted), store.read(counted))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in outcomes] == [DatabaseBusyError, int, DatabaseBusyError, int]
        assert time.monotonic() - began < 1.9 * PATIENCE_SECONDS
        other.execute("ROLLBACK")


async def test_a_call_behind_long_work_has_all_of_its_patience(store: Store, tmp_path: Path) -> None:
    long = asyncio.create_task(store.read(lambda _connection: time.sleep(2 * PATIENCE_SECONDS)))
    await asyncio.sleep(0)
    with closing(sqlite3.connect(tmp_path / "chorus.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert await seconds_until_refused(store, 1) >= 3 * PATIENCE_SECONDS * 0.9
    await long
