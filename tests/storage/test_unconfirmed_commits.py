"""A commit that SQLite reports as failed: done if its own token is in the file, else not, or not known."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import DatabaseUnconfirmedError, StorageError
from chorus_cli.storage import meta_rows
from chorus_cli.storage import store as stores
from chorus_cli.storage.migrations import applied, find_or_create, migrate
from chorus_cli.storage.store import Connection, Store
from chorus_cli.storage.witness import mark
from tests.storage.notes import note, notes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path


class Failing(Connection):
    """A connection whose next commit fails, before or after it is made, with other work in the same moment."""

    fails = False
    is_made = False
    meanwhile: Callable[[], None] | None = None

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
        if sql != "COMMIT" or not self.fails:
            return super().execute(sql, *parameters)  # type: ignore[arg-type]
        self.fails = False
        super().execute("COMMIT" if self.is_made else "ROLLBACK")
        if self.meanwhile:
            self.meanwhile()
        raise sqlite3.OperationalError("disk I/O error")


@pytest.fixture
async def failing(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    monkeypatch.setattr(stores, "Connection", Failing)
    opened = Store(path)
    await opened.open()
    yield opened
    await opened.close()


def elsewhere(path: Path) -> Callable[[], None]:
    """Return the work of another Chorus, which notes ``other``."""

    def work() -> None:
        with closing(sqlite3.connect(path)) as other:
            note(other, "other")
            mark(other)
            other.commit()

    return work


async def write_mine(failing: Store, meanwhile: Callable[[], None] | None, *, is_made: bool) -> None:
    connection = failing._opened
    assert isinstance(connection, Failing)
    connection.is_made, connection.meanwhile = is_made, meanwhile
    connection.fails = True
    await failing.write(note, "mine")


async def test_a_commit_that_stands_counts(failing: Store) -> None:
    await write_mine(failing, None, is_made=True)
    assert await failing.read(notes) == ["mine"]


async def test_one_that_was_rolled_back_is_an_error(failing: Store) -> None:
    with pytest.raises(StorageError, match="disk I/O error") as met:
        await write_mine(failing, None, is_made=False)
    assert not isinstance(met.value, DatabaseUnconfirmedError)
    assert await failing.read(notes) == []


@pytest.mark.parametrize("is_made", [False, True])
async def test_it_is_not_taken_for_the_commit_of_another_chorus(failing: Store, path: Path, *, is_made: bool) -> None:
    with pytest.raises(DatabaseUnconfirmedError, match="It is not known whether"):
        await write_mine(failing, elsewhere(path), is_made=is_made)
    assert await failing.read(notes) == (["mine", "other"] if is_made else ["other"])


async def test_a_transaction_without_changes_has_no_token(failing: Store) -> None:
    assert await failing.write(notes) == []
    assert await failing.read(meta_rows.value, meta_rows.LAST_COMMIT) is None


@pytest.mark.parametrize(
    ("is_made", "told"), [(True, "the disk does not confirm it"), (False, "^disk I/O error$")], ids=["made", "not made"]
)
def test_a_step_of_the_tables_that_stands_is_not_told_as_failed(path: Path, told: str, *, is_made: bool) -> None:
    step = ("0001_one", ("CREATE TABLE one(id INTEGER)",))
    with closing(sqlite3.connect(path, isolation_level=None, factory=Failing)) as connection:
        connection.fails, connection.is_made = True, is_made
        with pytest.raises((DatabaseUnconfirmedError, sqlite3.OperationalError), match=told):
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
