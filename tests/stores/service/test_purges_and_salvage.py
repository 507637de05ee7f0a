"""A salvage, and texts brought from backups: purged texts stay purged, and deleted rows stay deleted."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from chorus_cli.log.rows import input_rows
from chorus_cli.machine.paths import paths
from chorus_cli.stores.backup import salvaging
from chorus_cli.stores.backup.salvaging import Lost
from chorus_cli.stores.rules.findings import Repair
from chorus_cli.subcommands.repairs import MENDS
from tests.stores.service.canary_talk import CANARY, canary_talk, holding
from tests.stores.service.test_stored_files import backed_up, places_of
from tests.world import World

DELETED_FROM = "SELECT COUNT(*) FROM input_history UNION ALL SELECT COUNT(*) FROM sessions"
DAMAGE = {
    "a usage": ["UPDATE messages SET usage = 'x' WHERE id = (SELECT MAX(id) FROM messages)"],
    "purged messages": ["DELETE FROM messages WHERE purged_by IS NOT NULL"],
    "a purged text": ["UPDATE messages SET content = 'x' WHERE id = 1"],
    "the purge": ["DELETE FROM operations WHERE kind = 'purge'"],
    "the purge and its name": [
        "DELETE FROM operations WHERE kind = 'purge'",
        "DELETE FROM meta WHERE key = 'newest_purge'",
    ],
    "all that the purge marked": ["DELETE FROM messages WHERE purged_by IS NOT NULL", "DELETE FROM context_items"],
    "the purge and all that it marked": [
        "DELETE FROM operations WHERE kind = 'purge'",
        "DELETE FROM messages WHERE purged_by IS NOT NULL",
        "DELETE FROM context_items",
    ],
    "a purge that cannot be read": [
        "UPDATE operations SET detail = '[1]' WHERE kind = 'purge'",
        "DELETE FROM messages WHERE purged_by IS NOT NULL",
    ],
    "the memory": ["DELETE FROM context_items", "DELETE FROM context_checkpoints"],
    "the journal": ["DELETE FROM operations WHERE kind <> 'purge'", "DELETE FROM summaries"],
}


def changed(world: World, statements: Iterable[str]) -> None:
    """Change the log as damage does, past its references."""
    with closing(sqlite3.connect(places_of(world).database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


async def purged(world: World) -> None:
    await (await world.asked_back(f"/purge search {CANARY}")).confirmed()
    assert all(name.startswith("backups/") for name in holding(world.folder))


def backup_of(world: World, name: str, age_seconds: float) -> Path:
    path = places_of(world).backups / name
    backed_up(world, name, holds_attachments=True)
    os.utime(path, (1e9 - age_seconds, 1e9 - age_seconds))
    return path


def rows(database: Path, query: str) -> Sequence[object]:
    with closing(sqlite3.connect(database)) as connection:
        return [row[0] for row in connection.execute(query).fetchall()]


@pytest.mark.parametrize("statements", DAMAGE.values(), ids=DAMAGE)
async def test_a_salvage_brings_nothing_purged_back(world: World, statements: Sequence[str]) -> None:
    places_of(world).backups.mkdir()
    await canary_talk(world)
    backup_of(world, "all.zip", 0)
    await purged(world)
    changed(world, statements)
    with salvaging.salvaged(places_of(world)) as (folder, counts):
        assert counts.backup is None
        assert holding(folder) == []


@pytest.mark.parametrize("gone", [[], ["DELETE FROM messages WHERE purged_by IS NOT NULL", "DELETE FROM summaries"]])
async def test_pages_from_before_a_purge_bring_nothing_back(world: World, gone: Sequence[str]) -> None:
    database = places_of(world).database
    places_of(world).backups.mkdir()
    await world.say(f"The word is {CANARY}.")
    await world.told(f"/remember {CANARY}")
    before = database.read_bytes()
    await purged(world)
    changed(world, gone)
    pages = [before[at : at + 4096] for at in range(0, len(before), 4096)]
    database.write_bytes(database.read_bytes() + b"".join(page for page in pages if CANARY.encode() in page))
    assert CANARY.encode() in database.read_bytes()
    with salvaging.salvaged(places_of(world)) as (folder, _counts):
        assert holding(folder) == []


async def test_rows_that_are_gone_come_from_a_backup_without_purged_ones(world: World) -> None:
    places_of(world).backups.mkdir()
    for text in (f"The word is {CANARY}.", "Is the weather fine?"):
        await world.say(text)
    backup_of(world, "newest.zip", 0)
    await purged(world)
    older = backup_of(world, "older.zip", 1)
    changed(world, ["DELETE FROM messages WHERE id = 3"])
    with salvaging.salvaged(places_of(world)) as (folder, counts):
        assert (counts.backup, counts.from_backup) == (older, 1)
        assert rows(folder / "chorus.db", "SELECT content FROM messages") == ["", "ok", "Is the weather fine?", "ok"]


async def test_deleted_rows_of_a_backup_stay_deleted(world: World) -> None:
    places_of(world).backups.mkdir()
    await world.say("hello")
    await world.told("/context save about hello")
    await world.store.write(input_rows.add, "chorus", "hello", world.clock.now())
    assert rows(places_of(world).database, DELETED_FROM) == [1, 1]
    backup = backup_of(world, "all.zip", 0)
    changed(world, ["DELETE FROM input_history", "DELETE FROM sessions"])
    changed(world, ["DELETE FROM messages WHERE id = 1"])
    with salvaging.salvaged(places_of(world)) as (folder, counts):
        assert (counts.backup, counts.from_backup) == (backup, 1)
        assert rows(folder / "chorus.db", DELETED_FROM) == [0, 0]


async def test_of_the_single_values_only_the_ends_of_earlier_personas_come_back(world: World) -> None:
    places_of(world).backups.mkdir()
    await world.say("hello")
    changed(world, ["INSERT INTO meta VALUES ('threads_before:frodo', '7'), ('purge', '{}')"])
    backup_of(world, "all.zip", 0)
    changed(world, ["DELETE FROM meta"])
    with salvaging.salvaged(places_of(world)) as (folder, _counts):
        assert rows(folder / "chorus.db", "SELECT key FROM meta") == ["threads_before:frodo"]


@pytest.mark.parametrize(
    ("gone", "lost"),
    [
        ("DELETE FROM context_items", Lost(0, (), is_least=True)),
        ("DELETE FROM context_items WHERE id = 1", Lost(1, (1,), is_least=False)),
        ("DELETE FROM sqlite_sequence", Lost(0, (), is_least=True)),
    ],
)
async def test_lost_items_are_counted_and_a_purge_finds_their_words(world: World, gone: str, lost: Lost) -> None:
    for number in (1, 2):
        await world.told(f"/remember {CANARY} {number}")
    changed(world, [gone])
    with salvaging.salvaged(places_of(world)) as (_folder, counts):
        assert counts.lost_items == lost
    question = await world.asked_back(f"/purge search {CANARY}")
    assert (f"{lost.number} earlier text" in question.text) is (lost.number > 0)
    await question.confirmed()
    assert holding(world.folder) == []


async def test_a_purge_finds_words_in_an_operation_that_cannot_be_read(world: World) -> None:
    await world.told(f"/remember {CANARY}")
    changed(world, ["UPDATE operations SET detail = substr(detail, 2)", "DELETE FROM context_items"])
    await purged(world)
    assert "cannot be read" in await world.told("/context ops")


async def test_a_changed_text_of_a_purged_message_is_not_brought(world: World) -> None:
    places_of(world).backups.mkdir()
    await world.say(f"The word is {CANARY}.")
    backup_of(world, "all.zip", 0)
    await purged(world)
    changed(world, ["UPDATE messages SET content = 'x' WHERE id = 1"])
    home = paths({}, str(world.folder))
    home.make()
    assert await MENDS[Repair.CHECKSUMS](home) is False
    assert rows(places_of(world).database, "SELECT content FROM messages WHERE id = 1") == ["x"]
