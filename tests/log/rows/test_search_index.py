"""The full-text index: every row is in it exactly once, after any failure."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.log.rows import search_index
from chorus_cli.log.rows.search_index import IndexDamagedError, begin_anew, check, index_batch, progress
from chorus_cli.storage import meta_rows
from tests.amount import examples
from tests.log.rows.indexed_log import find, ids, index_all, indexed, put
from tests.storage.database import database

if TYPE_CHECKING:
    from pathlib import Path


# Filling


def test_a_reply_that_is_being_written_is_indexed_when_it_has_ended_and_holds_nothing_up(
    connection: sqlite3.Connection,
) -> None:
    put(connection, "a half ring", status="streaming")
    put(connection, "another ring")
    index_all(connection)
    assert ids(connection, "ring") == [2]
    assert progress(connection).is_whole
    connection.execute("UPDATE messages SET status = 'interrupted', content = 'a half ring and more' WHERE id = 1")
    assert not progress(connection).is_whole
    index_all(connection)
    assert ids(connection, "ring more") == [1]
    assert progress(connection).is_whole


@given(st.lists(st.sampled_from(["put", "begin", "end", "index", "anew", "new format"]), max_size=40))
@examples(150)
def test_every_row_that_is_not_being_written_is_indexed_once(deeds: list[str]) -> None:
    with closing(database()) as connection:
        for deed in [*deeds, "index"]:
            match deed:
                case "put":
                    put(connection, "row")
                case "begin":
                    put(connection, "row", status="streaming")
                case "end":
                    connection.execute("UPDATE messages SET status = 'failed' WHERE id % 3 > 0")
                case "anew":
                    begin_anew(connection)
                case "new format":
                    meta_rows.store(connection, search_index.STATE, '{"format": 0, "through": 99}')
                case _:
                    index_batch(connection, 2)
        index_all(connection, 2)
        settled = connection.execute("SELECT id FROM messages WHERE status <> 'streaming' ORDER BY id").fetchall()
        assert indexed(connection) == [id_ for (id_,) in settled]


FILL = """
import sqlite3, sys
from chorus_cli.log.rows.search_index import index_batch
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
print("ready", flush=True)
while True:
    connection.execute("BEGIN IMMEDIATE")
    done = index_batch(connection, 5).is_whole
    connection.execute("COMMIT")
    if done:
        break
"""


def test_two_processes_that_are_killed_again_and_again_index_every_row_once(tmp_path: Path) -> None:
    path = tmp_path / "chorus.db"
    with closing(database(str(path))) as connection:
        connection.execute("BEGIN")
        put(connection, *[f"row {number}" for number in range(2_000)])
        connection.execute("COMMIT")
        for _ in range(4):
            fillers = [
                subprocess.Popen([sys.executable, "-c", FILL, str(path)], stdout=subprocess.PIPE) for _ in range(2)
            ]
            for filler in fillers:
                assert filler.stdout
                assert filler.stdout.readline()
            time.sleep(0.05)
            for filler in fillers:
                os.kill(filler.pid, signal.SIGKILL)
                filler.communicate()
        index_all(connection, 500)
        assert indexed(connection) == list(range(1, 2_001))


# Damage


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM message_words_data",
        "DELETE FROM message_words_data WHERE id > 10",
        "UPDATE message_words_data SET block = x'00ff00ff' WHERE id > 10",
    ],
)
def test_damage_of_the_index_is_told_and_mended_by_beginning_anew(connection: sqlite3.Connection, damage: str) -> None:
    put(connection, *["row"] * 50)
    index_all(connection, 20)
    connection.execute(damage)
    put(connection, "row")
    with pytest.raises(IndexDamagedError):
        find(connection, "row")
    begin_anew(connection)
    index_all(connection, 20)
    assert len(ids(connection, "row")) == 51


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE message_words_data SET block = zeroblob(length(block))",
        "UPDATE message_words_docsize SET sz = zeroblob(length(sz))",
        "INSERT INTO message_words(message_words) VALUES ('delete-all')",
    ],
)
def test_an_index_without_words_is_told_and_a_sound_one_is_not(connection: sqlite3.Connection, damage: str) -> None:
    put(connection, "one", "two three", "many " * 70_000, "")
    put(connection, "half", status="streaming")
    index_all(connection, 20)
    check(connection)
    connection.execute(damage)
    with pytest.raises(IndexDamagedError):
        check(connection)


def test_an_index_that_takes_no_more_is_told(connection: sqlite3.Connection) -> None:
    put(connection, *["row"] * 50)
    index_all(connection, 20)
    connection.execute("UPDATE message_words_data SET block = x'00' WHERE id = 10")
    put(connection, "row")
    with pytest.raises(IndexDamagedError):
        index_batch(connection)


def test_a_row_that_was_changed_by_hand_is_noticed_when_it_is_found_by_what_it_said(
    connection: sqlite3.Connection,
) -> None:
    put(connection, "a ring", "a sword")
    index_all(connection)
    connection.execute("UPDATE messages SET content = 'a shield' WHERE id = 1")
    with pytest.raises(IndexDamagedError):
        find(connection, "ring")
    begin_anew(connection)
    index_all(connection)
    assert ids(connection, "ring") == []
    assert ids(connection, "shield") == [1]


def test_a_row_that_was_deleted_by_hand_is_not_found(connection: sqlite3.Connection) -> None:
    put(connection, "a ring", "another ring")
    index_all(connection)
    connection.execute("DELETE FROM messages WHERE id = 1")
    assert ids(connection, "ring") == [2]


@pytest.mark.parametrize("state", ["", "null", "7", "{}", '{"format": 1}', '{"format": 1, "through": 1, "waiting": 3}'])
def test_a_state_that_cannot_be_read_begins_anew(connection: sqlite3.Connection, state: str) -> None:
    put(connection, "row", "row")
    index_all(connection)
    meta_rows.store(connection, search_index.STATE, state)
    index_all(connection)
    assert indexed(connection) == [1, 2]


# Excerpts


@pytest.mark.parametrize(
    ("content", "typed", "excerpt"),
    [
        ("ring " * 100_000, "ring", "«ring» «ring»"),
        ("hill " * 4_000 + "ring " * 50_000, "ring", "«ring» «ring»"),
        ("hill and " * 20_000 + "a ring", "hill ring", "«hill» and"),
        ("hill " + "and " * 20_000 + "a ring", "hill ring", "hill and and"),
        ("x " * 1_995 + " the one ring", '"the one ring"', "«the one ring»"),
    ],
    ids=["everywhere", "late", "one rarely", "far apart", "at a seam"],
)
def test_an_excerpt_of_a_long_message_takes_no_time(
    connection: sqlite3.Connection, content: str, typed: str, excerpt: str
) -> None:
    put(connection, content)
    index_all(connection)
    begun = time.thread_time()
    (hit,) = find(connection, typed).hits
    assert time.thread_time() - begun < 2
    assert excerpt in hit.excerpt
