"""Rows that are gone, cannot be read or were cut off: the doctor tells of them, and a salvage keeps the texts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

import pytest

from chorus_cli.storage import file_lock
from chorus_cli.stores.backup import salvaging
from chorus_cli.stores.rules.findings import Finding
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.service.checks import check_log
from tests.stores.service.test_purges_and_salvage import backup_of, changed
from tests.stores.service.test_stored_files import places_of
from tests.world import World

QUESTION = ["DELETE FROM messages WHERE id = 1"]
OPERATION = ["UPDATE messages SET introduced_by = 99 WHERE id = 2", "DELETE FROM operations WHERE id = 99"]
THREAD = ["DELETE FROM threads"]
NUMBER = ["DELETE FROM messages WHERE id > 2"]
UNREADABLE = ["UPDATE messages SET usage = 'x' WHERE id = 2"]


TURN = ["UPDATE messages SET turn_id = 99 WHERE id = 2"]
LIVING_RUN, ODD_RUN = "18-0123abcd", "19-0123abcd"


def of_subject(world: World, subject: str) -> list[Finding]:
    return [each for each in check_log(places_of(world), world.folder / "run") if each.subject == subject]


@pytest.mark.parametrize(
    ("statements", "told", "state"),
    [
        (QUESTION, "The log has 1 message of a turn that is gone. 1 message is gone: #1.", "wrong"),
        (OPERATION, "The log has 1 message of an operation that is gone.", "wrong"),
        (THREAD, "The log has 2 messages of threads that are gone.", "wrong"),
        (UNREADABLE, "Message 2 of chorus (", "wrong"),
        (TURN, "The log has 1 message of a turn that is gone.", "wrong"),
        (NUMBER, "6 messages are gone: #3, #4, #5, #6, #7 and 1 more.", "note"),
    ],
)
async def test_rows_that_are_gone_or_cannot_be_read_are_told_and_a_salvage_offered(
    world: World, statements: Sequence[str], told: str, state: str
) -> None:
    for text in ("hello", "and", "then", "more")[: 4 if statements is NUMBER else 1]:
        await world.say(text)
    changed(world, statements)
    (found,) = of_subject(world, "rows")
    assert found.sentence.startswith(told)
    assert found.sentence.endswith(
        ". A salvage keeps all texts, and brings what is gone if the newest sound backup has it."
    )
    assert (found.state, found.repair) == (state, "salvage")


@pytest.mark.parametrize("column", ["context_items.content", "operations.detail", "threads.title", "sessions.summary"])
async def test_a_text_that_is_not_utf_8_is_told_and_a_salvage_offered(world: World, column: str) -> None:
    await world.say("hello")
    await world.told("/remember it rains")
    await world.told("/context save rain")
    table, name = column.split(".")
    changed(world, [f"UPDATE {table} SET {name} = CAST(x'fffe41' AS TEXT)"])  # noqa: S608 - the names above
    (found,) = of_subject(world, "rows")
    assert "a name or a text in it is not UTF-8" in found.sentence
    assert (found.state, found.repair) == ("wrong", "salvage")


@pytest.mark.parametrize("statements", [THREAD, UNREADABLE])
async def test_a_salvage_without_a_backup_mends_threads_and_values(world: World, statements: Sequence[str]) -> None:
    await world.say("hello")
    changed(world, statements)
    with salvaging.salvaged(places_of(world)) as (folder, counts), examination.opened(folder / "chorus.db") as log:
        assert counts.backup is None
        assert (examination.dangling_references(log), examination.unreadable(log)) == ([], [])


@pytest.mark.parametrize("has_backup", [True, False])
async def test_a_salvage_brings_messages_that_no_other_row_names_from_a_backup(
    world: World, *, has_backup: bool
) -> None:
    places_of(world).backups.mkdir()
    for text in ("hello", "and", "then", "more"):
        await world.say(text)
    if has_backup:
        backup_of(world, "all.zip", 0)
    changed(world, NUMBER)
    with salvaging.salvaged(places_of(world)) as (_, counts):
        assert counts.from_backup == (6 if has_backup else 0)


async def test_a_salvage_rolls_the_transaction_of_a_killed_process_back(world: World) -> None:
    await world.say("hello")
    database = places_of(world).database
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        for statement in ("UPDATE messages SET content = 'half'", "CREATE TABLE filling AS SELECT zeroblob(99999)"):
            connection.execute(statement)
        parts = {path: path.read_bytes() for path in (database, database.with_name("chorus.db-journal"))}
    assert b"half" in parts[database]
    for path, content in parts.items():
        path.write_bytes(content)
    with (
        salvaging.salvaged(places_of(world)) as (folder, _counts),
        examination.opened(folder / "chorus.db") as connection,
    ):
        assert connection.execute("SELECT content FROM messages").fetchall() == [("hello",), ("ok",)]
    assert database.read_bytes() == parts[database]


async def in_progress(world: World, run: str | None) -> None:
    await world.say("hello")
    statement = "UPDATE messages SET status = 'streaming', run = ? WHERE id = 2"
    await world.store.write(lambda c: c.execute(statement, (run,)))


@pytest.mark.parametrize("run", ["17-0123abcd", None, LIVING_RUN])
async def test_rows_in_progress_are_told_unless_their_process_lives(world: World, run: str | None) -> None:
    await in_progress(world, run)
    with file_lock.hold(world.folder / "run" / LIVING_RUN):
        told = of_subject(world, "interrupted")
    assert len(told) == (run != LIVING_RUN)
    assert all(each.sentence.startswith("1 reply or call (#2) was cut off when its process ended.") for each in told)


async def test_a_row_of_a_run_whose_lock_file_cannot_be_opened_is_left_to_it(world: World) -> None:
    await in_progress(world, ODD_RUN)
    (world.folder / "run" / ODD_RUN).symlink_to(ODD_RUN)
    assert of_subject(world, "interrupted") == []
