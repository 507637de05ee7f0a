"""Damaged databases: all that can be read is in the salvaged log, and a backup gives the rest."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import StorageError
from chorus_cli.log.rows import message_rows, thread_rows
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.models import rows as usage_rows
from chorus_cli.models.rules.costs import OtherRequest
from chorus_cli.storage.store import Store
from chorus_cli.stores.salvage.salvage import salvage
from tests.fakes import START
from tests.storage.damaged_files import PAGE_BYTES, damaged, readable, texts

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Connection

MESSAGES = 600


def talk(connection: Connection) -> None:
    thread = thread_rows.new(connection, "frodo", "The road", START)
    for number in range(MESSAGES):
        role = Role.ASSISTANT if number % 2 else Role.USER
        content = MessageContent(thread.id, role, f"Step {number} of the road. " * 12, START + timedelta(number))
        message_rows.insert_row(connection, "frodo", content)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "chorus.db"

    async def fill() -> None:
        store = Store(path)
        await store.open()
        await store.write(talk)
        await store.close()

    asyncio.run(fill())
    return path


@pytest.fixture(scope="module")
def backup(log: Path) -> Path:
    """A backup of the time when the last hundred messages were not there yet."""
    path = log.with_name("backup.db")
    shutil.copyfile(log, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM messages WHERE id > ?", (MESSAGES - 100,))
    return path


def everything_is_salvaged(log: Path, backup: Path, folder: Path, number: int) -> None:
    folder.mkdir()
    original, known = texts(log), texts(backup)
    broken = folder / "damaged.db"
    broken.write_bytes(damaged(log.read_bytes(), number))
    expected = readable(broken, MESSAGES)
    for used in (None, backup):
        shutil.copyfile(broken, folder / "copy.db")
        target = folder / f"{used is None}.db"
        try:
            counts = salvage(folder / "copy.db", target, used)
        except StorageError:
            assert used is None
            assert not expected
            continue
        found = texts(target)
        assert expected.items() <= found.items()
        changed = sum(found[id_] != original.get(id_) for id_ in found)
        assert changed <= counts.changed
        assert counts.read + counts.from_backup == len(found) or used
        if used is not None:
            assert {id_ for id_ in known if found.get(id_) != original[id_]} == set()


@pytest.mark.parametrize("number", range(10))
def test_every_message_that_could_be_read_is_in_the_salvaged_log(
    log: Path, backup: Path, tmp_path: Path, number: int
) -> None:
    everything_is_salvaged(log, backup, tmp_path / "one", number)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_two_hundred_damaged_logs_are_salvaged(log: Path, backup: Path, tmp_path: Path) -> None:
    for number in range(200):
        everything_is_salvaged(log, backup, tmp_path / str(number), number)


def test_if_no_message_can_be_read_all_are_lost_and_no_number_is_given_again(log: Path, tmp_path: Path) -> None:
    shutil.copyfile(log, tmp_path / "damaged.db")
    with closing(sqlite3.connect(tmp_path / "damaged.db")) as connection, connection:
        connection.execute("DELETE FROM messages")
    counts = salvage(tmp_path / "damaged.db", tmp_path / "new.db", None)
    assert (counts.lost.number, counts.lost.first_ids[:2]) == (MESSAGES, (1, 2))
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone() == (MESSAGES,)


def test_a_salvaged_log_opens_and_goes_on_where_the_damaged_one_was(log: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged.db").write_bytes(damaged(log.read_bytes(), 2))
    salvage(tmp_path / "damaged.db", tmp_path / "new.db", None)

    async def said() -> int:
        store = Store(tmp_path / "new.db")
        await store.open()
        thread = await store.write(lambda connection: thread_rows.new(connection, "frodo", "", START))
        content = MessageContent(thread.id, Role.USER, "On we go.", START)
        id_ = await store.write(message_rows.insert_row, "frodo", content)
        await store.close()
        return id_

    assert asyncio.run(said()) == MESSAGES + 1


def test_a_log_without_its_first_page_is_salvaged_without_a_backup(log: Path, tmp_path: Path) -> None:
    shutil.copyfile(log, tmp_path / "damaged.db")
    with (tmp_path / "damaged.db").open("r+b") as file:
        file.write(bytes(PAGE_BYTES))
    assert salvage(tmp_path / "damaged.db", tmp_path / "new.db", None).read == MESSAGES
    assert texts(tmp_path / "new.db") == texts(log)


def test_a_text_that_is_not_utf_8_is_kept_as_far_as_it_is(log: Path, tmp_path: Path) -> None:
    shutil.copyfile(log, tmp_path / "damaged.db")
    with closing(sqlite3.connect(tmp_path / "damaged.db")) as connection, connection:
        connection.execute("UPDATE messages SET content = CAST(x'526fff61642e' AS TEXT) WHERE id = 7")
    assert salvage(tmp_path / "damaged.db", tmp_path / "new.db", None).changed == 1
    assert texts(tmp_path / "new.db") == texts(log) | {7: "Ro\ufffdad."}


def test_the_number_of_a_lost_message_is_not_given_again(log: Path, tmp_path: Path) -> None:
    shutil.copyfile(log, tmp_path / "damaged.db")
    with closing(sqlite3.connect(tmp_path / "damaged.db")) as connection, connection:
        connection.execute("DELETE FROM messages WHERE id > ?", (MESSAGES - 10,))
    salvage(tmp_path / "damaged.db", tmp_path / "new.db", None)
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        numbers = dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    assert (len(texts(tmp_path / "new.db")), numbers["messages"]) == (MESSAGES - 10, MESSAGES)


def test_the_usage_of_summaries_is_salvaged_and_brought_from_a_backup(log: Path, tmp_path: Path) -> None:
    """Of three rows one is in the damaged log, one only in the backup, and one cannot be read."""
    copies = [tmp_path / name for name in ("damaged.db", "backup.db")]
    for path, number in zip(copies, (1, 2), strict=True):
        shutil.copyfile(log, path)
        with closing(sqlite3.connect(path)) as connection, connection:
            requests = [
                OtherRequest("frodo", each, "summary", "m", START, {"prompt_tokens": 7}) for each in range(number)
            ]
            usage_rows.store(connection, requests)
    with closing(sqlite3.connect(copies[0])) as connection, connection:
        connection.execute(
            "INSERT INTO other_requests VALUES (9, 'frodo', 9, 'summary', 'm', '{', '2026-01-01T00:00:00Z')"
        )
    salvage(copies[0], tmp_path / "new.db", copies[1])
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        found = connection.execute("SELECT id, persona, thread_id FROM other_requests").fetchall()
        assert found == [(1, "frodo", 0), (2, "frodo", 1)]
        assert [(use.summaries, use.tokens.prompt) for use in usage_rows.uses(connection)] == [(1, 7), (1, 7)]


def test_thoughts_are_salvaged_and_parts_that_are_no_json_are_not(log: Path, tmp_path: Path) -> None:
    path, target = tmp_path / "damaged.db", tmp_path / "salvaged.db"
    shutil.copyfile(log, path)
    thoughts = [("Hm.", '{"parts": []}', 1.5, 7), ("Hm.", "{", 1.5, 7)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "UPDATE messages SET reasoning = ?, thought_parts = ?, thought_seconds = ?, thought_tokens = ? "
            "WHERE id = ?",
            [(*each, number) for number, each in enumerate(thoughts, 2)],
        )
    assert salvage(path, target, None).changed == 0
    query = "SELECT reasoning, thought_parts, thought_seconds, thought_tokens FROM messages WHERE id IN (2, 3)"
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute(query).fetchall() == [thoughts[0], ("Hm.", None, 1.5, 7)]
