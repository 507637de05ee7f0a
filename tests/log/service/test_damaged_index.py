"""A search over a file whose blocks were damaged: the index is made again, the log is only ever read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import DatabaseDamagedError
from chorus_cli.log.rows.search_index import Scope
from chorus_cli.recall.service import Search
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock
from tests.log.rows.indexed_log import index_all, put
from tests.storage.database import database

if TYPE_CHECKING:
    from pathlib import Path

MESSAGES = 900
TOLD = ["The index of the search was damaged and is made again from the log; no message is concerned."]


def talk(path: Path) -> None:
    with closing(database(str(path))) as connection:
        connection.execute("BEGIN")
        put(connection, *[f"row {number} of the ring, {number * number} steps" for number in range(MESSAGES)])
        index_all(connection, MESSAGES)
        connection.execute("COMMIT")


def damage(path: Path, table: str, block: bytes) -> None:
    """Write ``block`` over the first page of a table."""
    with closing(sqlite3.connect(path)) as connection:
        [(page,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchall()
        [(size,)] = connection.execute("PRAGMA page_size").fetchall()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write((block * size)[:size])


async def searched(path: Path, told: list[str], words: str = "ring") -> int:
    store = Store(path)
    await store.open()
    try:
        found = await Search(store, FakeClock()).find(words, Scope(None, None, 10), told.append)
        return len(found.matches) + found.more
    finally:
        await store.close()


def integrity(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute("PRAGMA integrity_check").fetchone()
        return str(found)


@pytest.mark.parametrize("block", [b"\0", b"\x05\xa7\x13"], ids=["zeroes", "anything"])
@pytest.mark.parametrize("table", ["data", "idx", "config"])
async def test_an_index_whose_pages_cannot_be_read_is_made_again_and_the_file_is_sound(
    tmp_path: Path, table: str, block: bytes
) -> None:
    path = tmp_path / "chorus.db"
    talk(path)
    damage(path, f"message_words_{table}", block)
    told: list[str] = []
    assert await searched(path, told) == MESSAGES
    assert told == TOLD
    assert integrity(path) == "ok"
    assert await searched(path, told) == MESSAGES
    assert told == TOLD


async def test_an_index_whose_words_are_zeroed_is_made_again_instead_of_finding_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chorus.db"
    talk(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE message_words_data SET block = zeroblob(length(block)) WHERE id > 10")
    told: list[str] = []
    assert await searched(path, told) == MESSAGES
    assert told == TOLD


async def test_an_index_that_is_gone_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "chorus.db"
    talk(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE message_words")
    told: list[str] = []
    assert await searched(path, told) == MESSAGES
    assert told == TOLD


async def test_what_is_in_no_message_is_not_found_in_a_sound_index_and_nothing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "chorus.db"
    talk(path)
    told: list[str] = []
    assert await searched(path, told, "sword") == 0
    assert told == []


async def test_damage_of_the_log_is_told_as_such_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "chorus.db"
    talk(path)
    damage(path, "message_words_data", b"\0")
    damage(path, "messages", b"\0")
    before = path.read_bytes()
    with pytest.raises(DatabaseDamagedError, match=r"chorus\.db is damaged"):
        await searched(path, [])
    assert path.read_bytes() == before
