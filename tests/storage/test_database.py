"""The store: what lasts of it, in one thread and in whole transactions."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from chorus_cli.core.errors import DatabaseFullError, DatabaseUnconfirmedError, StorageError
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage import meta_rows, sqlite
from chorus_cli.storage.migrations import APPLICATION_ID, STEPS, applied, find_or_create, migrate
from chorus_cli.storage.port import Connection
from chorus_cli.storage.sqlite import Sqlite, SqliteConnection, Work, confine
from chorus_cli.storage.store import Store
from tests.fakes import START
from tests.log.rows.views import view_in
from tests.storage.database import NOTE, increment, locked, needs_server, note, notes, of_sqlite, opened, quick


def question(text: str, at: datetime = START) -> MessageContent:
    return MessageContent(1, Role.USER, text, at, token_count=1)


# What lasts


async def test_context_survives_restart_via_sqlite(path: Path) -> None:
    async with opened(path) as before:
        await before.write(message_rows.open_turn, "chorus", question("remember me"), "model", "run")
    assert await seen_after_restart(path) == ["remember me", ""]


async def test_clear_time_survives_restart(path: Path) -> None:
    async with opened(path) as before:
        await before.write(message_rows.open_turn, "chorus", question("old"), "model", "run")
        await before.write(operation_rows.introduce, NewOperation("chorus", Clear(), START))
        await before.write(message_rows.open_turn, "chorus", question("new"), "model", "run")
    assert await seen_after_restart(path) == ["new", ""]


async def seen_after_restart(path: Path) -> list[str]:
    async with opened(path) as store:
        since = START - timedelta(hours=8)
        seen = await store.read(view_in, "chorus", 1, since)
    return [row.content for row in seen.messages]


async def test_the_settings_that_durability_rests_on_are_in_force(path: Path) -> None:
    expected = {
        "journal_mode": "truncate",
        "synchronous": 3,
        "fullfsync": 1,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "secure_delete": 1,
        "mmap_size": 0,
        "application_id": APPLICATION_ID,
        "user_version": len(STEPS),
    }

    def in_force(connection: Connection) -> dict[str, object]:
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in expected}

    async with opened(path) as store:
        assert await store.read(in_force) == expected


async def test_only_the_owner_may_read_the_database_and_its_journal(path: Path) -> None:
    umask = os.umask(0)
    try:
        store = Store(Sqlite(path))
        await store.open()
        await store.write(note, "secret")
    finally:
        os.umask(umask)
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {
        "chorus.db": 0o600,
        "chorus.db-journal": 0o600,
    }
    await store.close()


@of_sqlite("pages")
@pytest.mark.parametrize("times", [100, 2000], ids=["part of a page", "pages"])
async def test_what_is_deleted_does_not_linger_in_the_file(store: Store, path: Path, times: int) -> None:
    # A shorter text would have its place taken by what the next commit stores.
    await store.write(meta_rows.store, "key", "a word to be forgotten " * times)
    assert stands_in(path, b"a word to be forgotten")
    await store.write(lambda connection: connection.execute("DELETE FROM meta").fetchall())
    assert not stands_in(path, b"a word to be forgotten")


def stands_in(path: Path, words: bytes) -> bool:
    return words in path.read_bytes()


# Transactions


REFERRING_TABLE = "CREATE TABLE referring (message_id BIGINT REFERENCES messages (id) DEFERRABLE INITIALLY DEFERRED)"


def add(connection: Connection, *words: str) -> None:
    for word in words:
        note(connection, word)


def raise_an_error(_: Connection) -> None:
    raise ValueError("in the work")


def break_a_constraint(connection: Connection) -> None:
    connection.execute("INSERT INTO numbers SELECT * FROM numbers")


def break_a_constraint_that_is_checked_at_commit(connection: Connection) -> None:
    connection.execute("INSERT INTO referring VALUES (404)")


FAILURES: dict[Callable[[Connection], None], tuple[type[Exception], str]] = {
    raise_an_error: (ValueError, "in the work"),
    break_a_constraint: (
        StorageError,
        r"^(SQLite .* for the database .*: UNIQUE constraint failed|The server of the log at .* duplicate key value)",
    ),
    break_a_constraint_that_is_checked_at_commit: (
        StorageError,
        "FOREIGN KEY constraint failed|violates foreign key constraint",
    ),
}


@pytest.mark.parametrize(("fail", "error"), FAILURES.items())
async def test_what_fails_leaves_no_row(
    store: Store, fail: Callable[[Connection], None], error: tuple[type[Exception], str]
) -> None:
    def work(connection: Connection) -> None:
        add(connection, "one", "two")
        fail(connection)

    await store.write(lambda connection: connection.execute(REFERRING_TABLE).fetchall())
    await store.write(operation_rows.introduce, NewOperation("chorus", Clear(), START))
    with pytest.raises(error[0], match=error[1]):
        await store.write(work)
    assert await store.read(notes) == []
    await store.write(add, "three")
    assert await store.read(notes) == ["three"]


async def test_calls_are_carried_out_in_the_order_they_were_made(store: Store) -> None:
    assert await asyncio.gather(*(store.write(increment) for _ in range(20))) == list(range(1, 21))


async def test_two_programs_that_read_and_then_write_never_lose_an_update(store: Store, path: Path) -> None:
    other = Store(quick(path))
    await other.open()
    await asyncio.gather(*(each.write(increment) for _ in range(10) for each in (store, other)))
    assert await other.read(meta_rows.value, NOTE + "counter") == "20"
    await other.close()


async def test_a_write_waits_for_another_program_before_it_reads(store: Store, path: Path) -> None:
    """A transaction that first reads and then asks for the lock would be refused at once, without any wait."""
    entered = threading.Event()

    def increment_and_tell(connection: Connection) -> int:
        found = increment(connection)
        entered.set()
        return found

    with locked(path) as other:
        writing = asyncio.ensure_future(store.write(increment_and_tell))
        assert not await asyncio.to_thread(entered.wait, 0.2)
        increment(other)
        other.commit()
    assert await writing == 2


@of_sqlite("a lock for a whole file")
async def test_a_read_sees_one_state_of_the_database_from_its_beginning_to_its_end(store: Store, path: Path) -> None:
    def read_while_another_writes(connection: Connection) -> tuple[list[str], list[str]]:
        first = notes(connection)
        other = sqlite3.connect(path, timeout=0, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        note(other, "meanwhile")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("COMMIT")
        other.close()
        return first, notes(connection)

    await store.write(note, "before")
    assert await store.read(read_while_another_writes) == (["before"], ["before"])


@needs_server
async def test_a_read_on_a_server_sees_one_state_whatever_others_commit(store: Store, path: Path) -> None:
    def read_while_another_writes(connection: Connection) -> tuple[list[str], list[str]]:
        first = notes(connection)
        with locked(path) as other:
            note(other, "meanwhile")
            other.commit()
        return first, notes(connection)

    await store.write(note, "before")
    assert await store.read(read_while_another_writes) == (["before"], ["before"])
    assert await store.read(notes) == ["before", "meanwhile"]


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


@of_sqlite("pages")
async def test_a_full_disk_is_a_sentence_and_keeps_what_was_there(store: Store, path: Path) -> None:
    def fill(connection: Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}").fetchall()
        note(connection, "half")
        meta_rows.store(connection, "too much", "x" * 100_000)

    await store.write(note, "before")
    with pytest.raises(DatabaseFullError, match=rf"^There is no room left on the disk of {path}\. Free some"):
        await store.write(fill)
    assert await store.read(notes) == ["before"]


# Commits that the disk does not confirm


class Failing(SqliteConnection):
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
    monkeypatch.setattr(sqlite, "SqliteConnection", Failing)
    async with opened(path) as store:
        yield store


async def write_mine(failing: Store, code: int = sqlite3.SQLITE_IOERR_FSYNC, *, is_made: bool) -> None:
    connection = failing._connection
    assert isinstance(connection, Failing)
    connection.is_made, connection.code, connection.fails = is_made, code, True
    await failing.write(note, "mine")


@pytest.mark.parametrize("is_made", [False, True])
async def test_after_an_io_error_the_commit_is_not_confirmed(failing: Store, path: Path, *, is_made: bool) -> None:
    sentence = rf"The disk did not confirm a change to {path} .*chorus log shows"
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
        with pytest.raises(DatabaseUnconfirmedError, match="did not confirm"):
            migrate(connection, [step])
        assert applied(connection) == (["0001_one"] if is_made else [])
        migrate(connection, [step])
        assert applied(connection) == ["0001_one"]


def test_a_new_database_that_the_disk_does_not_confirm_is_not_made(path: Path) -> None:
    def connect(draft: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(draft, isolation_level=None, factory=Failing)
        connection.fails = connection.is_made = True
        return connection

    with pytest.raises(
        StorageError, match=f"The database {path} cannot be made: the disk does not confirm it; check it.$"
    ):
        find_or_create(path, connect)
    assert [*path.parent.iterdir()] == []


# Bounds of a database that Chorus did not write

ENDLESS = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) SELECT COUNT(*) FROM more"


def test_a_statement_without_an_end_is_given_up() -> None:
    with closing(sqlite3.connect(":memory:", factory=SqliteConnection)) as connection:
        confine(connection)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(ENDLESS).fetchall()


def test_a_value_has_a_largest_size() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        confine(connection)
        with pytest.raises(sqlite3.DataError, match="too big"):
            connection.execute("SELECT zeroblob(900000000)").fetchall()


def test_each_statement_of_a_log_that_stays_open_has_all_the_steps() -> None:
    with closing(sqlite3.connect(":memory:", factory=SqliteConnection)) as connection:
        confine(connection)
        assert connection.work
        connection.work.steps = 99_500_000
        assert connection.execute(ENDLESS.replace(") SELECT", " LIMIT 300000) SELECT")).fetchone() == (300_000,)


def test_a_log_that_has_grown_since_it_was_opened_may_be_worked_on_longer(tmp_path: Path) -> None:
    log = tmp_path / "chorus.db"
    log.write_bytes(b"")
    work = Work(f"{log}", 0)
    assert [work.is_enough() for _ in range(101)] == [False] * 100 + [True]
    with log.open("r+b") as file:
        file.truncate(1_000_000)
    assert [work.is_enough() for _ in range(9)] == [False] * 9
    assert work.is_enough()
