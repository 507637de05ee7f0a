"""Rows that refer to rows that are gone: a salvage is offered if it mends some of them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.stores.backup import salvaging
from chorus_cli.stores.salvage import copying, examination
from chorus_cli.stores.service.log_checks import check_log
from tests.stores.service.test_purges_and_salvage import backup_of, changed
from tests.stores.service.test_stored_files import places_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.stores.rules.findings import Finding
    from tests.world import World

QUESTION = ["DELETE FROM messages WHERE id = 1"]
OPERATION = [
    "UPDATE messages SET introduced_by = 99 WHERE id = 2",
    "DELETE FROM operations WHERE id = 99",
]
THREAD = ["DELETE FROM threads"]
NUMBER = ["DELETE FROM messages WHERE id > 2"]
UNREADABLE = ["UPDATE messages SET usage = 'x' WHERE id = 2"]


def of_rows(world: World) -> list[Finding]:
    return [each for each in check_log(places_of(world), world.folder / "run") if each.subject == "rows"]


@pytest.mark.parametrize(
    ("statements", "has_backup", "told"),
    [
        (QUESTION, False, "No backup has rows that are gone."),
        (OPERATION, True, "No backup has rows that are gone."),
        (QUESTION, True, "A salvage keeps all texts. BACKUP has rows that are gone."),
        (THREAD, False, "A salvage keeps all texts."),
        (UNREADABLE, False, "A salvage keeps all texts."),
        (
            [*UNREADABLE, *QUESTION],
            False,
            "A salvage keeps all texts. No backup has rows that are gone.",
        ),
    ],
)
async def test_a_salvage_is_offered_if_it_mends_something(
    world: World, statements: Sequence[str], told: str, *, has_backup: bool
) -> None:
    places_of(world).backups.mkdir()
    await world.say("hello")
    backup = str(backup_of(world, "all.zip", 0)) if has_backup else ""
    changed(world, statements)
    (found,) = of_rows(world)
    assert found.sentence.endswith(f". {told.replace('BACKUP', backup)}")
    assert found.repair == ("salvage" if "A salvage" in told else None)


@pytest.mark.parametrize("statements", [THREAD, UNREADABLE])
async def test_a_salvage_without_a_backup_mends_threads_and_values(world: World, statements: Sequence[str]) -> None:
    await world.say("hello")
    changed(world, statements)
    with salvaging.salvaged(places_of(world)) as (folder, counts), copying.opened(folder / "chorus.db") as connection:
        assert counts.backup is None
        assert (examination.dangling_references(connection), examination.unreadable(connection)) == ([], [])


@pytest.mark.parametrize(("has_backup", "state", "repair"), [(True, "wrong", "salvage"), (False, "note", None)])
async def test_messages_that_no_other_row_names_are_told_by_their_numbers(
    world: World, state: str, repair: str | None, *, has_backup: bool
) -> None:
    places_of(world).backups.mkdir()
    for text in ("hello", "and", "then", "more"):
        await world.say(text)
    if has_backup:
        backup_of(world, "all.zip", 0)
    changed(world, NUMBER)
    (found,) = of_rows(world)
    assert found.sentence.startswith("6 messages are gone: #3, #4, #5, #6, #7 and 1 more. ")
    assert (found.state, found.repair) == (state, repair)
    with salvaging.salvaged(places_of(world)) as (_, counts):
        assert counts.from_backup == (6 if has_backup else 0)


async def test_a_salvage_rolls_the_transaction_of_a_killed_process_back(world: World) -> None:
    await world.say("hello")
    log = places_of(world).database
    with closing(sqlite3.connect(log)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        for statement in ("UPDATE messages SET content = 'half'", "CREATE TABLE filling AS SELECT zeroblob(99999)"):
            connection.execute(statement)
        parts = {path: path.read_bytes() for path in (log, log.with_name(f"{log.name}-journal"))}
    assert b"half" in parts[log]
    for path, content in parts.items():
        path.write_bytes(content)
    with salvaging.salvaged(places_of(world)) as (folder, _counts), copying.opened(folder / "chorus.db") as connection:
        assert connection.execute("SELECT content FROM messages").fetchall() == [("hello",), ("ok",)]
    assert log.read_bytes() == parts[log]
