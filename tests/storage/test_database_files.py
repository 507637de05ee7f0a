"""Files that a store is opened on, and sentences for those that it cannot use."""

from __future__ import annotations

import asyncio
import os
import sqlite3
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
from chorus_cli.log.rows.search_index import is_damage
from chorus_cli.storage.errors import damaged, storage_error
from chorus_cli.storage.store import Store
from tests.storage.database import note, notes
from tests.storage.unsynced import confirmed_syncs

if TYPE_CHECKING:
    from collections.abc import Callable


async def test_what_a_killed_start_left_behind_is_in_nobodys_way(path: Path) -> None:
    """The next start may have the same process id, as it has in a container."""
    for process_id in (os.getpid(), 999_999):
        path.with_name(f".chorus.db.{process_id}.new").write_bytes(b"half a database")
    store = Store(path)
    await store.open()
    assert await store.read(notes) == []
    await store.close()


async def test_the_name_of_a_new_database_is_synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed = confirmed_syncs(monkeypatch)
    await opened_and_closed(path)
    assert confirmed.has_name(path)


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
        (sqlite3.SQLITE_READONLY, StorageError, "Check its permissions"),
        (sqlite3.SQLITE_READONLY_DBMOVED, StorageError, "moved, deleted or replaced while Chorus had it open"),
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


async def test_a_text_that_is_not_utf_8_is_told_as_damage(store: Store) -> None:
    with pytest.raises(DatabaseDamagedError, match="is not UTF-8"):
        await store.read(lambda connection: connection.execute("SELECT CAST(x'f0ff' AS TEXT)").fetchall())


async def test_a_database_that_was_moved_away_takes_no_more_rows(store: Store, path: Path) -> None:
    move_away(path)
    with pytest.raises(StorageError, match="cannot be written"):
        await store.write(note, "into the void")


def move_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def test_what_sqlite_says_of_a_damage_is_one_line(path: Path) -> None:
    sentence = str(damaged(path, "malformed database schema (t): CREATE TABLE t(\n  a TEXT,\n" + "b TEXT, " * 100))
    assert sentence.startswith(f"{path} is damaged or is no database (malformed database schema (t): CREATE TABLE")
    assert "\n" not in sentence
    assert len(sentence) < len(str(path)) + 350


def test_a_size_that_asks_for_too_much_memory_is_damage(path: Path) -> None:
    assert is_damage(MemoryError())
    assert isinstance(storage_error(MemoryError(), path), DatabaseDamagedError)
