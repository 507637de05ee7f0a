"""A commit that SQLite reports as failed with an I/O error: one sentence says so, and the log shows what was made."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import DatabaseUnconfirmedError, StorageError
from chorus_cli.storage import store as stores
from chorus_cli.storage.migrations import applied, find_or_create, migrate
from chorus_cli.storage.store import Connection, Store
from tests.storage.notes import note, notes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class Failing(Connection):
    """A connection whose next commit fails, before or after it is made."""

    fails = False
    is_made = False
    code = sqlite3.SQLITE_IOERR_FSYNC

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
        if sql != "COMMIT" or not self.fails:
            return super().execute(sql, *parameters)  # type: ignore[arg-type]
        self.fails = False
        super().execute("COMMIT" if self.is_made else "ROLLBACK")
        error = sqlite3.OperationalError("the disk failed")
        error.sqlite_errorcode = self.code
        raise error


@pytest.fixture
async def failing(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    monkeypatch.setattr(stores, "Connection", Failing)
    opened = Store(path)
    await opened.open()
    yield opened
    await opened.close()


async def write_mine(failing: Store, code: int = sqlite3.SQLITE_IOERR_FSYNC, *, is_made: bool) -> None:
    connection = failing._connection
    assert isinstance(connection, Failing)
    connection.is_made, connection.code, connection.fails = is_made, code, True
    await failing.write(note, "mine")


@pytest.mark.parametrize("is_made", [False, True])
async def test_after_an_io_error_the_commit_is_not_confirmed(failing: Store, path: Path, *, is_made: bool) -> None:
    sentence = rf"The disk does not confirm a change of {path} .*the log \(/log, or chorus log\) shows"
    with pytest.raises(DatabaseUnconfirmedError, match=sentence):
        await write_mine(failing, is_made=is_made)
    assert await failing.read(notes) == (["mine"] if is_made else [])
    await failing.write(note, "next")
    assert "next" in await failing.read(notes)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY])
async def test_after_another_error_it_is_not_made(failing: Store, code: int) -> None:
    with pytest.raises(StorageError) as met:
        await write_mine(failing, code, is_made=False)
    assert not isinstance(met.value, DatabaseUnconfirmedError)
    assert await failing.read(notes) == []


@pytest.mark.parametrize("is_made", [False, True])
def test_a_step_of_the_tables_is_applied_once(path: Path, *, is_made: bool) -> None:
    step = ("0001_one", ("CREATE TABLE one(id INTEGER)",))
    with closing(sqlite3.connect(path, isolation_level=None, factory=Failing)) as connection:
        connection.fails, connection.is_made = True, is_made
        with pytest.raises(DatabaseUnconfirmedError, match="does not confirm"):
            migrate(connection, [step])
        assert applied(connection) == (["0001_one"] if is_made else [])
        migrate(connection, [step])
        assert applied(connection) == ["0001_one"]


def test_a_new_database_that_the_disk_does_not_confirm_is_not_made(path: Path) -> None:
    def connect(draft: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(draft, isolation_level=None, factory=Failing)
        connection.fails = connection.is_made = True
        return connection

    with pytest.raises(StorageError, match=f"The database {path} cannot be made: the disk does not confirm it.$"):
        find_or_create(path, connect)
    assert [*path.parent.iterdir()] == []
