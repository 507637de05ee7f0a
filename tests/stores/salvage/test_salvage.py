"""Damaged databases: all that can be read is in the salvaged log, and a backup gives the rest."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.log.rows import message_rows, thread_rows
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.models import rows as usage_rows
from chorus_cli.storage.port import Connection
from chorus_cli.stores.backup.salvaging import Counts, salvage
from tests.fakes import START
from tests.storage.damaged_files import PAGE_BYTES, damaged, overwritten, readable, texts
from tests.storage.database import opened, sql

MESSAGES = 300
INNER, LEAF = 0x05, 0x0D
STEP = re.compile(rb"Step (\d+) of the road. Step \d+ of")
ALL = Counts(MESSAGES, 0, 0, None)
UNKNOWN = tuple(f"It is unknown how many more {things} are lost." for things in ("messages", "memory items"))
LONG = " ".join(f"step {number}" for number in range(5000))


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
        async with opened(path) as store:
            await store.write(talk)

    asyncio.run(fill())
    return path


@pytest.fixture(scope="module")
def backup(log: Path) -> Path:
    """A backup of the time when the last hundred messages were not there yet."""
    path = log.with_name("backup.db")
    shutil.copyfile(log, path)
    sql(path, "DELETE FROM messages WHERE id > 200")
    return path


def salvaged(damaged: Path, target: Path, backup: Path | None = None) -> Counts:
    """Salvage a log with the rows of a backup, if there is one; the name of that is of no interest."""
    return salvage(damaged, target, backup or target, lambda _purged: backup)._replace(backup=None)


def changed(log: Path, folder: Path, *statements: str) -> Path:
    """Return a copy of a log in which something was changed by SQL."""
    path = folder / "damaged.db"
    shutil.copyfile(log, path)
    sql(path, *statements)
    return path


def in_leaf_pages(log: bytes, broken: bytes) -> set[int]:
    """Return the messages on pages that are whole, wherever they are now."""
    pages = {page for page in split(log) if page[0] == LEAF}
    return {int(id_) + 1 for page in split(broken) if page in pages for id_ in STEP.findall(page)}


def split(log: bytes) -> Sequence[bytes]:
    return [log[at : at + PAGE_BYTES] for at in range(0, len(log), PAGE_BYTES)]


def newest_number(log: Path) -> int:
    [number] = sql(log, "SELECT seq FROM sqlite_sequence WHERE name = 'messages'")
    return int(number)


def everything_is_salvaged(log: Path, backup: Path, folder: Path, data: bytes) -> None:
    folder.mkdir()
    original, known = texts(log), texts(backup)
    broken = folder / "damaged.db"
    broken.write_bytes(data)
    expected = readable(broken, MESSAGES)
    expected |= {id_: original[id_] for id_ in in_leaf_pages(log.read_bytes(), data)}
    for has_backup in (False, True):
        target = folder / f"{has_backup}.db"
        counts = salvaged(broken, target, backup if has_backup else None)
        assert broken.read_bytes() == data
        found = texts(target)
        assert (expected | (known if has_backup else {})).items() <= found.items()
        assert sum(found[id_] != original.get(id_) for id_ in found) <= counts.changed
        assert counts.read + counts.from_backup == len(found)
        lost = original.keys() - found.keys()
        told = next((each for each in counts.gone if " gone: #" in each and "message" in each), "0")
        number = int(told.split()[0])
        assert number <= len(lost) if UNKNOWN[0] in counts.gone else number == len(lost)
        assert {*map(int, re.findall(r"#(\d+)", told))} <= lost


@pytest.mark.parametrize("damage", [damaged, overwritten])
@pytest.mark.parametrize("number", range(10))
def test_every_message_that_could_be_read_is_in_the_salvaged_log(
    log: Path, backup: Path, tmp_path: Path, number: int, damage: Callable[[bytes, int], bytes]
) -> None:
    everything_is_salvaged(log, backup, tmp_path / "one", damage(log.read_bytes(), number))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("damage", [damaged, overwritten])
def test_two_hundred_damaged_logs_are_salvaged(
    log: Path, backup: Path, tmp_path: Path, damage: Callable[[bytes, int], bytes]
) -> None:
    for number in range(200):
        everything_is_salvaged(log, backup, tmp_path / str(number), damage(log.read_bytes(), number))


def without_pages(log: Path, broken: Path, *kinds: int) -> None:
    """Overwrite all pages of the trees of messages and of the newest numbers that have one of these kinds."""
    pages = split(log.read_bytes())
    found = sql(log, "SELECT pageno FROM dbstat WHERE name IN ('messages', 'sqlite_sequence')")
    gone = {page - 1 for page in found if pages[page - 1][0] in kinds}
    assert gone
    broken.write_bytes(b"".join(bytes(PAGE_BYTES) if place in gone else page for place, page in enumerate(pages)))


def test_all_messages_are_read_without_the_inner_pages_of_their_tree(log: Path, tmp_path: Path) -> None:
    without_pages(log, tmp_path / "damaged.db", INNER)
    assert salvaged(tmp_path / "damaged.db", tmp_path / "new.db") == ALL
    assert texts(tmp_path / "new.db") == texts(log)


@pytest.mark.parametrize("has_backup", [False, True])
def test_without_the_newest_number_it_is_unknown_how_many_messages_are_lost(
    log: Path, backup: Path, tmp_path: Path, *, has_backup: bool
) -> None:
    without_pages(log, tmp_path / "damaged.db", INNER, LEAF)
    counts = salvaged(tmp_path / "damaged.db", tmp_path / "new.db", backup if has_backup else None)
    assert (counts.read, counts.from_backup) == (0, MESSAGES - 100 if has_backup else 0)
    assert counts.gone == UNKNOWN


NAMED = "INSERT INTO operations(persona, kind, after_message_id) VALUES ('frodo', 'clear', 250)"


@pytest.mark.parametrize(
    ("statements", "left", "newest"),
    [
        (["DELETE FROM messages WHERE id > 290"], 290, MESSAGES),
        ([NAMED, "DELETE FROM messages WHERE id > 200", "DELETE FROM sqlite_sequence"], 200, 250),
    ],
    ids=["that was the newest", "that a row names"],
)
def test_the_number_of_a_lost_message_is_not_given_again(
    log: Path, tmp_path: Path, statements: Sequence[str], left: int, newest: int
) -> None:
    salvaged(changed(log, tmp_path, *statements), tmp_path / "new.db")
    assert len(texts(tmp_path / "new.db")) == left
    assert newest_number(tmp_path / "new.db") == newest


ABSURD = {
    "the number of a row": "UPDATE messages SET id = 137438953255 WHERE id = 300",
    "a newest number": "UPDATE sqlite_sequence SET seq = 137438953255",
    "a likely newest number": "UPDATE sqlite_sequence SET seq = 8792",
    "a reference": "UPDATE messages SET turn_id = 8792 WHERE id = 300",
    "numbers of other rows": "UPDATE messages SET id = -id WHERE id > 200",
}


@pytest.mark.parametrize("statement", ABSURD.values(), ids=ABSURD)
def test_a_damaged_number_makes_no_message_lost(log: Path, tmp_path: Path, statement: str) -> None:
    counts = salvaged(changed(log, tmp_path, statement), tmp_path / "new.db")
    unknown = {ABSURD["a newest number"]: UNKNOWN, ABSURD["a likely newest number"]: UNKNOWN[:1]}
    assert counts == ALL._replace(gone=unknown.get(statement, ()))
    assert texts(tmp_path / "new.db") == texts(log)


FIELDS = {
    "all": (0, bytes(100)),
    "the first page": (0, bytes(PAGE_BYTES)),
    "the size of a page": (16, (8192).to_bytes(2, "big")),
    "the number of pages": (28, (3).to_bytes(4, "big")),
    "the list of free pages": (32, (7).to_bytes(4, "big") * 2),
    "the format of tables": (44, b"\xff" * 4),
    "the encoding": (56, (3).to_bytes(4, "big")),
    "the number of steps": (60, (4).to_bytes(4, "big")),
}


@pytest.mark.parametrize(("at", "field"), FIELDS.values(), ids=FIELDS)
def test_no_field_of_the_header_hides_a_row(log: Path, tmp_path: Path, at: int, field: bytes) -> None:
    data = log.read_bytes()
    (tmp_path / "damaged.db").write_bytes(data[:at] + field + data[at + len(field) :])
    assert salvaged(tmp_path / "damaged.db", tmp_path / "new.db").read == MESSAGES
    assert texts(tmp_path / "new.db") == texts(log)


def test_a_row_with_the_number_of_another_gets_its_own(log: Path, tmp_path: Path) -> None:
    data = log.read_bytes()
    place = next(page for page in split(data) if b"Step 7 of" in page and page[0] == LEAF)
    at = data.index(place)
    (cell,) = [
        at + int.from_bytes(place[8 + 2 * number : 10 + 2 * number], "big")
        for number in range(int.from_bytes(place[3:5], "big"))
        if data[at + int.from_bytes(place[8 + 2 * number : 10 + 2 * number], "big") + 2] == 8
    ]
    (tmp_path / "damaged.db").write_bytes(data[: cell + 2] + bytes([5]) + data[cell + 3 :])
    assert salvaged(tmp_path / "damaged.db", tmp_path / "new.db").read == MESSAGES
    assert texts(tmp_path / "new.db") == texts(log)


def said(path: Path, text: str) -> int:
    """Say something in a new thread, and return the number of the message."""

    async def say() -> int:
        async with opened(path) as store:
            thread = await store.write(lambda connection: thread_rows.new(connection, "frodo", "", START))
            return await store.write(
                message_rows.insert_row, "frodo", MessageContent(thread.id, Role.USER, text, START)
            )

    return asyncio.run(say())


def test_of_a_long_text_the_beginning_is_kept_if_its_end_is_lost(tmp_path: Path) -> None:
    said(tmp_path / "damaged.db", LONG)
    salvaged(tmp_path / "damaged.db", tmp_path / "whole.db")
    assert texts(tmp_path / "whole.db") == {1: LONG}
    data = (tmp_path / "damaged.db").read_bytes()
    end = data.index(b"step 4000")
    (tmp_path / "damaged.db").write_bytes(data[: end // PAGE_BYTES * PAGE_BYTES])
    assert salvaged(tmp_path / "damaged.db", tmp_path / "new.db").changed == 1
    (content,) = texts(tmp_path / "new.db").values()
    assert LONG.startswith(content)
    assert len(content) > PAGE_BYTES


def test_a_salvaged_log_opens_and_goes_on_where_the_damaged_one_was(log: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged.db").write_bytes(damaged(log.read_bytes(), 2))
    salvaged(tmp_path / "damaged.db", tmp_path / "new.db")
    assert said(tmp_path / "new.db", "On we go.") == MESSAGES + 1


def test_a_text_that_is_not_utf_8_is_kept_as_far_as_it_is(log: Path, tmp_path: Path) -> None:
    path = changed(log, tmp_path, "UPDATE messages SET content = CAST(x'526fff61642e' AS TEXT) WHERE id = 7")
    assert salvaged(path, tmp_path / "new.db").changed == 1
    assert texts(tmp_path / "new.db") == texts(log) | {7: "Ro\ufffdad."}


def test_the_usage_of_summaries_is_salvaged_and_brought_from_a_backup(log: Path, tmp_path: Path) -> None:
    """Of three rows one is in the damaged log, one only in the backup, and one cannot be read."""
    row = "INSERT INTO other_requests VALUES ({0}, 'frodo', {0}, 'summary', 'm', '{1}', '2026-01-01T00:00:00Z')"
    usage = '{"prompt_tokens": 7}'
    backup = changed(log, tmp_path, row.format(1, usage), row.format(2, usage)).rename(tmp_path / "backup.db")
    salvaged(changed(log, tmp_path, row.format(1, usage), row.format(9, "{")), tmp_path / "new.db", backup)
    found = sql(tmp_path / "new.db", "SELECT id, persona, thread_id, usage FROM other_requests")
    assert found == [(1, "frodo", 1, usage), (2, "frodo", 2, usage)]
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert [(use.summaries, use.tokens.prompt) for use in usage_rows.uses(connection)] == [(1, 7), (1, 7)]


def test_thoughts_are_salvaged_and_parts_that_are_no_json_are_not(log: Path, tmp_path: Path) -> None:
    thought = "UPDATE messages SET reasoning = 'Hm.', thought_seconds = 1.5, thought_tokens = 7 WHERE id IN (2, 3)"
    sound = "UPDATE messages SET thought_parts = '{}' WHERE id = 2"
    unsound = "UPDATE messages SET thought_parts = '{' WHERE id = 3"
    assert salvaged(changed(log, tmp_path, thought, sound, unsound), tmp_path / "new.db").changed == 0
    query = "SELECT reasoning, thought_parts, thought_seconds, thought_tokens FROM messages WHERE id IN (2, 3)"
    assert sql(tmp_path / "new.db", query) == [("Hm.", "{}", 1.5, 7), ("Hm.", None, 1.5, 7)]


def test_the_installations_of_this_machine_stay_what_they_are(log: Path, tmp_path: Path) -> None:
    other = "INSERT INTO other_installations VALUES ('0123456789abcdef')"
    path = changed(log, tmp_path, other, "CREATE TABLE mine(line TEXT) STRICT", "INSERT INTO mine VALUES ('a line')")
    salvaged(path, tmp_path / "new.db", log)
    for query in ("SELECT origin FROM installation", "SELECT origin FROM other_installations"):
        assert sql(tmp_path / "new.db", query) == sql(path, query)
