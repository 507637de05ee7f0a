"""Purges and thoughts of models: they are found, overwritten, recognised where they are repeated, and in backups."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rules.log_acts import PurgedIds
from chorus_cli.storage.migrations import STEPS, migrate
from chorus_cli.stores.backup import archive
from chorus_cli.stores.salvage import examination
from tests.log.service.thinking_talk import parts_of, think
from tests.stores.service.canary_talk import holding, purged
from tests.stores.service.test_stored_files import backed_up, places_of
from tests.turns.service.tool_talk import TOOLS, call
from tests.world import Tools, World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.migrations import Step
    from chorus_cli.storage.store import Store
    from tests.fakes import FakeClock, ScriptedModel

LONG = "The gate of the old mill by the river opens if you pull the iron ring twice."
SHORT = "thinking of gates"


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))


async def thought(world: World, text: str, parts: str) -> None:
    """Have message 2 be the reply after a thought; text and parts may differ."""
    think(world, text, "I cannot tell.", parts=parts_of(parts))
    await world.say("How does it open?")


@pytest.mark.parametrize(("text", "parts"), [(LONG, ""), ("", LONG), (LONG, LONG)])
async def test_what_repeats_a_purged_thought_goes_with_it(world: World, text: str, parts: str) -> None:
    await thought(world, text, parts)
    await world.told(f"/remember I say: {LONG}")
    await purged(world, "/purge message 2")
    assert holding(world.folder, "iron ring") == []


@pytest.mark.parametrize(("text", "parts"), [(LONG, ""), ("", LONG), (LONG, LONG)])
async def test_a_thought_that_repeats_a_purged_message_stays_and_is_named_once(
    world: World, text: str, parts: str
) -> None:
    await thought(world, text, parts)
    await world.say(LONG)
    told = await world.told("/purge message 3 --dry-run")
    assert told.count("#2 has the same words and would stay") == 1


async def test_names_and_signatures_among_the_parts_are_no_texts_that_others_repeat(world: World) -> None:
    await thought(world, "", SHORT)
    await world.told("/remember thinking")
    await world.told("/remember c2ln")
    await purged(world, "/purge message 2")
    assert "thinking" in await world.told("/memory show 1")
    assert "c2ln" in await world.told("/memory show 2")


async def test_a_search_finds_a_word_that_is_an_id_or_stands_in_parts_that_are_no_json(world: World) -> None:
    await thought(world, "", "xyzzy")
    await world.store.write(
        lambda connection: connection.execute("UPDATE messages SET thought_parts = '{plugh' WHERE id = 1")
    )
    await purged(world, "/purge search xyzzy")
    await purged(world, "/purge search plugh")
    assert await world.log() == []


async def test_a_backup_still_has_a_purged_reply_if_it_has_its_thought_alone(world: World) -> None:
    think(world, "", "", call("echo", {"text": "gold"}), parts=parts_of(LONG))
    await world.say("How does it open?")
    places_of(world).backups.mkdir(exist_ok=True)
    backed_up(world, "all.zip", holds_attachments=True)
    question = await world.asked_back("/purge message 2")
    assert "all.zip would still have it." in question.text
    await question.confirmed()
    assert holding(world.folder, "iron ring") == ["backups/all.zip"]
    assert await world.told("/purge backups --dry-run") != "No backup holds anything that was purged."
    await purged(world, "/purge backups")
    assert holding(world.folder, "iron ring") == []


OLDER = next(number for number, (name, _) in enumerate(STEPS) if name.endswith("thoughts"))


@pytest.mark.parametrize(
    ("steps", "statement"),
    [
        (STEPS, "UPDATE messages SET content = 'words'"),
        (STEPS, "UPDATE messages SET reasoning = 'words'"),
        (STEPS, "UPDATE messages SET thought_parts = '[]'"),
        (STEPS[:OLDER], "UPDATE messages SET content = 'words'"),
        (STEPS[:OLDER], "UPDATE messages SET reasoning = 'words'"),
    ],
)
def test_a_row_with_any_text_is_held_also_by_a_log_of_an_older_chorus(steps: tuple[Step, ...], statement: str) -> None:
    purged_rows = examination.Purged(PurgedIds(messages=frozenset({1})))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, steps)
        connection.execute(
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
            "VALUES ('frodo', 1, 'assistant', '', '2026-02-12T14:30:00Z')"
        )
        assert not examination.holds(connection, purged_rows)
        connection.execute(statement)
        assert examination.holds(connection, purged_rows)


async def test_a_backup_has_the_thoughts(world: World, tmp_path: Path) -> None:
    await thought(world, "Hm.", LONG)
    places_of(world).backups.mkdir(exist_ok=True)
    backed_up(world, "all.zip", holds_attachments=True)
    archive.unpack_log(places_of(world).backups / "all.zip", tmp_path / "unpacked.db")
    query = "SELECT reasoning, thought_parts, thought_seconds, thought_tokens FROM messages WHERE id = 2"
    with closing(sqlite3.connect(tmp_path / "unpacked.db")) as connection:
        assert connection.execute(query).fetchall() == [("Hm.", parts_of(LONG), 0.0, 640)]
