"""The store: what lasts of it, in one thread and in whole transactions."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
import time
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from chorus_cli.core.errors import DatabaseFullError, StorageError
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage import meta_rows
from chorus_cli.storage.migrations import APPLICATION_ID, STEPS
from chorus_cli.storage.store import Store
from tests.fakes import START
from tests.log.rows.views import view_in
from tests.storage.notes import increment, note, note_and_fail, notes


def question(text: str, at: datetime = START) -> MessageContent:
    return MessageContent(1, Role.USER, text, at, token_count=1)


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
    await before.write(message_rows.open_turn, "chorus", question("remember me"), "model", "run")
    await before.close()
    assert await seen_after_restart(path) == ["remember me", ""]


async def test_clear_time_survives_restart(path: Path) -> None:
    before = Store(path)
    await before.open()
    await before.write(message_rows.open_turn, "chorus", question("old"), "model", "run")
    await before.write(operation_rows.introduce, NewOperation("chorus", Clear(), START))
    await before.write(message_rows.open_turn, "chorus", question("new"), "model", "run")
    await before.close()
    assert await seen_after_restart(path) == ["new", ""]


async def seen_after_restart(path: Path) -> list[str]:
    store = Store(path)
    await store.open()
    since = START - timedelta(hours=8)
    seen = await store.read(view_in, "chorus", 1, since)
    await store.close()
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
        "application_id": APPLICATION_ID,
        "user_version": len(STEPS),
    }

    def in_force(connection: sqlite3.Connection) -> dict[str, object]:
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in expected}

    store = Store(path)
    await store.open()
    assert await store.read(in_force) == expected
    await store.close()


async def test_the_file_is_not_mapped_into_memory(store: Store) -> None:
    assert await store.read(lambda connection: connection.execute("PRAGMA mmap_size").fetchone()) == (0,)


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
    # A shorter text would have its place taken by what the next commit stores.
    await store.write(meta_rows.store, "key", "a word to be forgotten " * 100)
    assert stands_in(path, b"a word to be forgotten")
    await store.write(lambda connection: connection.execute("DELETE FROM meta").fetchall())
    assert not stands_in(path, b"a word to be forgotten")


async def test_no_page_of_what_is_deleted_lingers_either(store: Store, path: Path) -> None:
    await store.write(meta_rows.store, "key", "a word to be forgotten " * 2000)
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


async def test_a_write_waits_for_another_program_before_it_reads(store: Store, path: Path) -> None:
    """A transaction that first reads and then asks for the lock would be refused at once, without any wait."""
    entered = threading.Event()

    def begin_and_increment(connection: sqlite3.Connection) -> int:
        entered.set()
        return increment(connection)

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.ensure_future(store.write(begin_and_increment))
        assert not await asyncio.to_thread(entered.wait, 0.2)
        note(other, "first")
        other.execute("COMMIT")
    assert await writing == 1


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


async def test_a_store_that_is_not_open_says_so(path: Path) -> None:
    store = Store(path)
    with pytest.raises(RuntimeError, match="the store is not open"):
        await store.read(notes)
    await store.close()
