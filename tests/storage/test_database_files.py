"""Files that a store is opened on, beside other processes, and sentences for those that it cannot use."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from chorus_cli.core.errors import (
    DatabaseBusyError,
    DatabaseDamagedError,
    DatabaseFullError,
    DatabaseTooNewError,
    StorageError,
)
from chorus_cli.log.rows.sqlite_words import is_damage
from chorus_cli.storage.errors import damaged, storage_error
from chorus_cli.storage.store import Store
from tests.storage.database import note, notes, of_sqlite, opened, sql
from tests.storage.unsynced import confirmed_syncs


async def test_what_a_killed_start_left_behind_is_in_nobodys_way(path: Path) -> None:
    """The next start may have the same process id, as it has in a container."""
    for process_id in (os.getpid(), 999_999):
        path.with_name(f".chorus.db.{process_id}.new").write_bytes(b"half a database")
    async with opened(path) as store:
        assert await store.read(notes) == []


async def test_the_name_of_a_new_database_is_synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed = confirmed_syncs(monkeypatch)
    await opened_and_closed(path)
    assert confirmed.has_name(path)


def newer(path: Path) -> None:
    asyncio.run(opened_and_closed(path))
    sql(path, "INSERT INTO schema_migrations VALUES ('0999_thoughts', '2030-01-01T00:00:00Z')")


def cut_short(path: Path) -> None:
    asyncio.run(opened_and_closed(path))
    path.write_bytes(path.read_bytes()[:5000])


async def opened_and_closed(path: Path) -> None:
    async with opened(path):
        pass


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (Path.touch, DatabaseDamagedError, r"is empty \(0 bytes\). Chorus never leaves an empty log"),
        (lambda path: path.write_text("Dear diary, " * 100), DatabaseDamagedError, "is damaged or is not a database"),
        (lambda path: sql(path, "CREATE TABLE moz_places(url)"), DatabaseDamagedError, "belongs to another program"),
        (newer, DatabaseTooNewError, r"newer Chorus\. Update Chorus"),
        (cut_short, DatabaseDamagedError, "is damaged or is not a database"),
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


@pytest.mark.parametrize(
    ("code", "expected", "advice"),
    [
        (sqlite3.SQLITE_BUSY, DatabaseBusyError, "Try again"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, DatabaseBusyError, "Try again"),
        (sqlite3.SQLITE_LOCKED, DatabaseBusyError, "Try again"),
        (sqlite3.SQLITE_FULL, DatabaseFullError, "Free some"),
        (sqlite3.SQLITE_CORRUPT, DatabaseDamagedError, "it offers to put a backup in its place"),
        (sqlite3.SQLITE_CORRUPT_INDEX, DatabaseDamagedError, "it offers to put a backup in its place"),
        (sqlite3.SQLITE_NOTADB, DatabaseDamagedError, "it offers to put a backup in its place"),
        (sqlite3.SQLITE_READONLY, StorageError, "Check the permissions of the file"),
        (sqlite3.SQLITE_READONLY_DBMOVED, StorageError, "moved, deleted or replaced while Chorus had it open"),
        (sqlite3.SQLITE_CANTOPEN, StorageError, "Check the permissions of the file"),
        (sqlite3.SQLITE_IOERR_FSYNC, StorageError, ": words of SQLite. Try again; if it happens again"),
        (None, StorageError, ": words of SQLite. Try again; if it happens again"),
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


def test_what_sqlite_says_of_a_damage_is_one_line(path: Path) -> None:
    sentence = str(damaged(path, "malformed database schema (t): CREATE TABLE t(\n  a TEXT,\n" + "b TEXT, " * 100))
    assert sentence.startswith(f"{path} is damaged or is not a database (malformed database schema (t): CREATE TABLE")
    assert "\n" not in sentence
    assert len(sentence) < len(str(path)) + 350


def test_a_size_that_asks_for_too_much_memory_is_damage(path: Path) -> None:
    assert is_damage(MemoryError())
    assert isinstance(storage_error(MemoryError(), path), DatabaseDamagedError)


_OPEN_AT_ONCE = """
import asyncio, pathlib, sys
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store

async def main():
    store = Store(Sqlite(pathlib.Path(sys.argv[1])))
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
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.log.rows import message_rows
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store

async def main():
    store = Store(Sqlite(pathlib.Path(sys.argv[1])))
    await store.open()
    while True:
        question = MessageContent(1, Role.USER, "words " * 300, datetime.now(UTC), token_count=300)
        _, reply = await store.write(message_rows.open_turn, "chorus", question, "model", "run")
        print(reply.id, flush=True)

asyncio.run(main())
"""


@contextmanager
def another_program(path: Path, begin: str) -> Iterator[sqlite3.Connection]:
    """Let another program hold the database's lock until its transaction ends."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(begin)
        other.execute("SELECT COUNT(*) FROM meta").fetchone()
        yield other


@of_sqlite("a lock for a whole file")
async def test_another_program_that_writes_delays_a_write_and_freezes_nothing(store: Store, path: Path) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    with another_program(path, "BEGIN IMMEDIATE") as other:
        asyncio.get_running_loop().call_later(0.5, other.execute, "COMMIT")
        ticking = asyncio.create_task(tick())
        await store.write(note, "after the other")
        ticking.cancel()
    assert ticks >= 10
    assert await store.read(notes) == ["after the other"]


@pytest.mark.parametrize(
    "begin",
    [pytest.param("BEGIN IMMEDIATE", id="it writes"), pytest.param("BEGIN", id="it reads, which holds up a commit")],
)
async def test_another_program_that_does_not_finish_is_a_sentence_and_no_damage(path: Path, begin: str) -> None:
    async with opened(path, busy_timeout_seconds=0.2) as store:
        with another_program(path, begin):
            with pytest.raises(DatabaseBusyError, match=rf"Another program uses {path}.*Try again"):
                await store.write(note, "too early")
            assert await store.read(notes) == []
        await store.write(note, "in time")
        assert await store.read(notes) == ["in time"]


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
    assert sql(path, "SELECT key FROM meta ORDER BY key") == sorted(names)
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
    assert sql(path, "PRAGMA integrity_check") == ["ok"]
    assert len(acknowledged) > 50
    assert acknowledged <= {*sql(path, "SELECT id FROM messages")}
