"""The store: one thread, whole transactions, patience with other processes, and sentences for what goes wrong."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import (
    DatabaseBusyError,
    DatabaseDamagedError,
    DatabaseFullError,
    DatabaseTooNewError,
    StorageError,
)
from chorus_cli.core.operations import Kind
from chorus_cli.core.view import view
from chorus_cli.storage import message_log, meta_rows, operation_log
from chorus_cli.storage.context_rows import context_rows
from chorus_cli.storage.database import Store
from chorus_cli.storage.database_errors import storage_error
from chorus_cli.storage.message_log import Question
from chorus_cli.storage.migrations import APPLICATION_ID, STEPS
from chorus_cli.storage.operation_log import NewOperation
from tests.fakes import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(sys.argv[2])
print(connection.execute("SELECT COUNT(*) FROM meta").fetchone()[0], flush=True)
sys.stdin.read() if sys.argv[3] == "until told" else time.sleep(float(sys.argv[3]))
connection.execute("COMMIT")
"""

_OPEN_AT_ONCE = """
import asyncio, pathlib, sys
from chorus_cli.storage.database import Store

async def main():
    store = Store(pathlib.Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    await store.open()
    await store.write(lambda c: c.execute("INSERT INTO meta VALUES (?, 'here')", (sys.argv[2],)).fetchall())
    await store.close()

asyncio.run(main())
"""

_WRITE_UNTIL_KILLED = """
import asyncio, pathlib, sys
from datetime import datetime, UTC
from chorus_cli.storage import message_log
from chorus_cli.storage.database import Store

async def main():
    store = Store(pathlib.Path(sys.argv[1]))
    await store.open()
    while True:
        question = message_log.Question("chorus", 1, "words " * 300, datetime.now(UTC), "", 300)
        opened = await store.write(message_log.open_turn, question, "model", "run")
        print(opened.reply.id, flush=True)

asyncio.run(main())
"""


@contextmanager
def other_process(path: Path, begin: str, how_long: str = "until told") -> Iterator[subprocess.Popen[str]]:
    """Let another program hold the database's lock."""
    command = [sys.executable, "-c", _HOLD, str(path), begin, how_long]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def note(connection: sqlite3.Connection, key: str) -> None:
    meta_rows.store(connection, key, "noted")


def notes(connection: sqlite3.Connection) -> list[str]:
    return [key for (key,) in connection.execute("SELECT key FROM meta ORDER BY key").fetchall()]


def note_and_fail(connection: sqlite3.Connection) -> None:
    note(connection, "half")
    raise ValueError("in the middle")


def increment(connection: sqlite3.Connection) -> int:
    known = int(meta_rows.value(connection, "counter") or 0)
    meta_rows.store(connection, "counter", str(known + 1))
    return known + 1


def question(text: str, at: datetime = START) -> Question:
    return Question("chorus", 1, text, at, "", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The place of the ``store`` fixture's file."""
    return tmp_path / "chorus.db"


# What lasts


async def test_what_was_written_is_there_after_a_restart(path: Path) -> None:
    for key in ("first", "second"):
        store = Store(path)
        await store.open()
        await store.write(note, key)
        await store.close()
    again = Store(path)
    await again.open()
    assert await again.read(notes) == ["first", "second"]
    await again.close()


async def test_context_survives_restart_via_sqlite(path: Path) -> None:
    before = Store(path)
    await before.open()
    await before.write(message_log.open_turn, question("remember me"), "model", "run")
    await before.close()
    assert await seen_after_restart(path) == ["remember me", ""]


async def test_clear_time_survives_restart(path: Path) -> None:
    before = Store(path)
    await before.open()
    await before.write(message_log.open_turn, question("old"), "model", "run")
    await before.write(operation_log.introduce, NewOperation("chorus", Kind.CLEAR, START))
    await before.write(message_log.open_turn, question("new"), "model", "run")
    await before.close()
    assert await seen_after_restart(path) == ["new", ""]


async def seen_after_restart(path: Path) -> list[str]:
    store = Store(path)
    await store.open()
    since = START - timedelta(hours=8)
    rows = await store.read(context_rows, "chorus", 1, since)
    await store.close()
    return [row.content for row in view(1, rows.messages, rows.operations, since).messages]


async def test_the_settings_that_durability_rests_on_are_in_force(store: Store) -> None:
    expected = {
        "journal_mode": "truncate",
        "synchronous": 3,
        "fullfsync": 1,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "secure_delete": 1,
        "application_id": APPLICATION_ID,
        "user_version": len(STEPS),
    }

    def in_force(connection: sqlite3.Connection) -> dict[str, object]:
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in expected}

    assert await store.read(in_force) == expected


async def test_only_the_owner_may_read_the_database_and_its_journal(path: Path) -> None:
    umask = os.umask(0)
    try:
        store = Store(path)
        await store.open()
        await store.write(note, "secret")
    finally:
        os.umask(umask)
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {
        "chorus.db": 0o600,
        "chorus.db-journal": 0o600,
    }
    await store.close()


async def test_what_is_deleted_does_not_linger_in_the_file(store: Store, path: Path) -> None:
    await store.write(meta_rows.store, "key", "a word to be forgotten")
    assert stands_in(path, b"a word to be forgotten")
    await store.write(lambda connection: connection.execute("DELETE FROM meta").fetchall())
    assert not stands_in(path, b"a word to be forgotten")


def stands_in(path: Path, words: bytes) -> bool:
    return words in path.read_bytes()


# Transactions


async def test_a_write_that_fails_in_the_middle_leaves_nothing(store: Store) -> None:
    await store.write(note, "before")
    with pytest.raises(ValueError, match="in the middle"):
        await store.write(note_and_fail)
    await store.write(note, "after")
    assert await store.read(notes) == ["after", "before"]


async def test_what_sqlite_refuses_leaves_nothing_and_is_a_sentence(store: Store, path: Path) -> None:
    def write_twice(connection: sqlite3.Connection) -> None:
        note(connection, "once")
        connection.execute("INSERT INTO meta VALUES ('once', 'twice')")

    with pytest.raises(StorageError, match=rf"^The database {path} could not do that: UNIQUE constraint failed"):
        await store.write(write_twice)
    assert await store.read(notes) == []


async def test_work_returns_what_it_returns_and_takes_arguments(store: Store) -> None:
    assert await store.write(increment) == 1
    assert await store.read(meta_rows.value, key="counter") == "1"


async def test_calls_are_carried_out_in_the_order_they_were_made(store: Store) -> None:
    assert await asyncio.gather(*(store.write(increment) for _ in range(20))) == list(range(1, 21))


async def test_two_programs_that_read_and_then_write_never_lose_an_update(store: Store, path: Path) -> None:
    other = Store(path)
    await other.open()
    await asyncio.gather(*(each.write(increment) for _ in range(10) for each in (store, other)))
    assert await other.read(meta_rows.value, "counter") == "20"
    await other.close()


async def test_a_read_sees_one_state_of_the_database_from_its_beginning_to_its_end(store: Store, path: Path) -> None:
    def read_while_another_writes(connection: sqlite3.Connection) -> tuple[list[str], list[str]]:
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


async def test_a_cancelled_caller_leaves_a_whole_transaction(store: Store) -> None:
    def slowly(connection: sqlite3.Connection) -> None:
        note(connection, "first half")
        time.sleep(0.1)
        note(connection, "second half")

    writing = asyncio.ensure_future(store.write(slowly))
    await asyncio.sleep(0.03)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await store.read(notes) in ([], ["first half", "second half"])


async def test_a_full_disk_is_a_sentence_and_keeps_what_was_there(store: Store, path: Path) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}").fetchall()
        note(connection, "half")
        meta_rows.store(connection, "too much", "x" * 100_000)

    await store.write(note, "before")
    with pytest.raises(DatabaseFullError, match=rf"^There is no room left on the disk of {path}\. Free some"):
        await store.write(fill)
    assert await store.read(notes) == ["before"]


# Other processes


async def test_another_process_that_writes_delays_a_write_and_freezes_nothing(store: Store, path: Path) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    with other_process(path, "BEGIN IMMEDIATE", "0.5"):
        ticking = asyncio.create_task(tick())
        await store.write(note, "after the other")
        ticking.cancel()
    assert ticks >= 10
    assert await store.read(notes) == ["after the other"]


async def test_reading_does_not_wait_for_another_process_that_writes(store: Store, path: Path) -> None:
    with other_process(path, "BEGIN IMMEDIATE"):
        async with asyncio.timeout(5):
            assert await store.read(notes) == []


@pytest.mark.parametrize(
    "begin",
    [
        pytest.param("BEGIN IMMEDIATE", id="it writes"),
        pytest.param("BEGIN", id="it reads, which holds up a commit"),
    ],
)
async def test_another_process_that_does_not_finish_is_a_sentence_and_no_damage(path: Path, begin: str) -> None:
    store = Store(path, busy_timeout_seconds=0.2)
    await store.open()
    with other_process(path, begin):
        with pytest.raises(DatabaseBusyError, match=rf"Another program is writing to {path}.*Try again"):
            await store.write(note, "too early")
        assert await store.read(notes) == []
    await store.write(note, "in time")
    assert await store.read(notes) == ["in time"]
    await store.close()


def test_processes_that_start_at_once_share_one_database(path: Path) -> None:
    command = [sys.executable, "-c", _OPEN_AT_ONCE, str(path)]
    names = ["one", "two", "three", "four"]
    processes = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for name in names
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=30)[1] for process in processes] == [b""] * 4
    with sqlite3.connect(path) as connection:
        assert notes(connection) == sorted(names)
    connection.close()
    assert {file.name for file in path.parent.iterdir()} <= {"chorus.db", "chorus.db-journal"}


@pytest.mark.slow
def test_no_acknowledged_row_is_lost_when_processes_are_killed_while_they_commit(path: Path) -> None:
    command = [sys.executable, "-c", _WRITE_UNTIL_KILLED, str(path)]
    acknowledged: set[int] = set()
    for attempt in range(15):
        writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for writer in writers:
            assert writer.stdout is not None
            acknowledged.add(int(writer.stdout.readline()))
        for writer in writers:
            time.sleep(0.02 + 0.011 * attempt)
            writer.kill()
            output, _ = writer.communicate()
            acknowledged |= {int(line) for line in output.splitlines(keepends=True) if line.endswith("\n")}
    connection = sqlite3.connect(path)
    stored = {id_ for (id_,) in connection.execute("SELECT id FROM messages")}
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    assert len(acknowledged) > 50
    assert acknowledged <= stored


# Opening


async def test_what_a_killed_start_left_behind_is_in_nobodys_way(path: Path) -> None:
    """The next start may have the same process id, as it has in a container."""
    for process_id in (os.getpid(), 999_999):
        path.with_name(f".chorus.db.{process_id}.new").write_bytes(b"half a database")
    store = Store(path)
    await store.open()
    assert await store.read(notes) == []
    await store.close()


def another_programs(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE moz_places(url)")
    connection.close()


def newer(path: Path) -> None:
    asyncio.run(opened_and_closed(path))
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES ('0999_thoughts', '2030-01-01T00:00:00Z')")
    connection.close()


def cut_short(path: Path) -> None:
    asyncio.run(opened_and_closed(path))
    path.write_bytes(path.read_bytes()[:5000])


async def opened_and_closed(path: Path) -> None:
    store = Store(path)
    try:
        await store.open()
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (Path.touch, DatabaseDamagedError, r"is empty \(0 bytes\), which Chorus never leaves behind"),
        (lambda path: path.write_text("Dear diary, " * 100), DatabaseDamagedError, "is damaged or is no database"),
        (another_programs, DatabaseDamagedError, "belongs to another program"),
        (newer, DatabaseTooNewError, r"newer Chorus \(it knows 0999_thoughts\)\. Update Chorus"),
        (cut_short, DatabaseDamagedError, "is damaged or is no database"),
    ],
    ids=["empty", "no database", "another program's", "newer", "cut short"],
)
def test_a_file_that_is_not_ours_to_use_is_refused_with_a_sentence_and_left_alone(
    path: Path, make: Callable[[Path], object], error: type[StorageError], sentence: str
) -> None:
    make(path)
    before = path.read_bytes()
    with pytest.raises(error, match=sentence):
        asyncio.run(opened_and_closed(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", ["missing/chorus.db", "file/chorus.db", "folder"])
async def test_a_place_where_no_database_can_be_is_a_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "something").touch()
    with pytest.raises(StorageError, match=rf"{tmp_path / place}.*\."):
        await opened_and_closed(tmp_path / place)


async def test_a_store_that_is_not_open_says_so(path: Path) -> None:
    store = Store(path)
    with pytest.raises(RuntimeError, match="the store is not open"):
        await store.read(notes)
    await store.close()


@pytest.mark.parametrize(
    ("code", "expected", "advice"),
    [
        (sqlite3.SQLITE_BUSY, DatabaseBusyError, "Try again"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, DatabaseBusyError, "Try again"),
        (sqlite3.SQLITE_LOCKED, DatabaseBusyError, "Try again"),
        (sqlite3.SQLITE_FULL, DatabaseFullError, "Free some"),
        (sqlite3.SQLITE_CORRUPT, DatabaseDamagedError, "put a backup in its place"),
        (sqlite3.SQLITE_CORRUPT_INDEX, DatabaseDamagedError, "put a backup in its place"),
        (sqlite3.SQLITE_NOTADB, DatabaseDamagedError, "put a backup in its place"),
        (sqlite3.SQLITE_READONLY_DBMOVED, StorageError, "Check its permissions"),
        (sqlite3.SQLITE_CANTOPEN, StorageError, "Check its permissions"),
        (sqlite3.SQLITE_IOERR_FSYNC, StorageError, "could not do that: words of SQLite"),
        (None, StorageError, "could not do that: words of SQLite"),
    ],
)
def test_each_code_of_sqlite_has_its_sentence(code: int | None, expected: type[StorageError], advice: str) -> None:
    error = sqlite3.OperationalError("words of SQLite")
    if code is not None:
        error.sqlite_errorcode = code
    told = storage_error(error, Path("/data/chorus.db"))
    assert type(told) is expected
    assert "/data/chorus.db" in str(told)
    assert advice in str(told)


async def test_a_database_that_was_moved_away_takes_no_more_rows(store: Store, path: Path) -> None:
    move_away(path)
    with pytest.raises(StorageError, match="cannot be written"):
        await store.write(note, "into the void")


def move_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))
