"""Backups are purged by the criteria of the log: a search leaves its words in none of their texts and names."""

from __future__ import annotations

import sqlite3
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING

from chorus_cli.commands.framework.replies import Question, Text
from chorus_cli.core.models.costs import OtherRequest
from chorus_cli.storage.sqlite.log import input_rows, usage_rows
from tests.services.upkeep.canary_talk import CANARY, canary_talk, holding

if TYPE_CHECKING:
    from tests.services.world import World


async def purged(world: World, line: str) -> str:
    answer = await (await world.asked_back(line)).confirmed()
    assert isinstance(answer, Text | Question)
    return answer.text


async def backed_up_talk(world: World) -> None:
    """Have the word everywhere, in lines and names too that no message is a source of, and make a backup."""
    await canary_talk(world)
    for line in (f"/context save about {CANARY}", f"/search {CANARY}"):
        await world.store.write(input_rows.add, "chorus", line, world.clock.now())
    await world.told(f"/context save about {CANARY}")
    await world.told("/backup")
    assert any(name.startswith("backups/") for name in holding(world.folder))


async def test_a_search_leaves_its_words_nowhere_in_a_backup(world: World) -> None:
    await backed_up_talk(world)
    assert (await purged(world, f"/purge search {CANARY} --backups")).endswith("Rewrote 1 backup.")
    assert holding(world.folder) == []


async def test_a_search_finds_words_that_only_backups_have(world: World) -> None:
    await backed_up_talk(world)
    assert "still has it" in await purged(world, f"/purge search {CANARY}")
    assert all(name.startswith("backups/") for name in holding(world.folder))
    await purged(world, "/purge backups")
    assert "Nothing was purged" in await world.told(f"/purge search {CANARY} --dry-run")
    assert await purged(world, f"/purge search {CANARY}") == "Rewrote 1 backup."
    assert holding(world.folder) == []
    assert await world.told(f"/purge search {CANARY}") == "There is nothing of that; nothing was purged."


async def test_a_purge_of_a_persona_takes_the_usage_of_its_summaries_out_of_backups(world: World) -> None:
    await canary_talk(world)
    usage = [
        OtherRequest(slug, 1, "summary", "openai/test", world.clock.now(), {"prompt_tokens": 1})
        for slug in ("chorus", "frodo")
    ]
    await world.store.write(usage_rows.store, usage)
    await world.told("/backup")
    assert (await purged(world, "/purge persona chorus --backups")).endswith("Rewrote 1 backup.")
    [backup] = (world.folder / "backups").glob("*.zip")
    with zipfile.ZipFile(backup) as archive, closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(archive.read("chorus.db"))
        assert [use.persona for use in usage_rows.uses(connection)] == ["frodo"]
