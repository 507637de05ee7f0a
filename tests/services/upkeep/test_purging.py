"""A purge overwrites messages and all that repeats them or was made of them, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.commands.framework.replies import Question, Text, plain
from chorus_cli.services.tools.built_in import BUILT_IN
from tests.services.upkeep.canary_talk import CANARY, canary_talk, holding
from tests.services.world import Tools, World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.sqlite.store import Store
    from tests.fakes import FakeClock, ScriptedModel


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, 10_000, Tools(BUILT_IN))


async def purged(world: World, line: str) -> str:
    """Carry out a purge, agree to it, and return the answer; backups stay."""
    answer = await (await world.asked_back(line)).confirmed()
    return plain(answer)


async def test_a_word_that_was_everywhere_is_nowhere_after_a_purge_of_what_a_search_finds(world: World) -> None:
    await canary_talk(world)
    before = holding(world.folder)
    assert {name.partition("/")[0] for name in before} == {"chorus.db", "attachments", "drafts", "personas", "rescue"}
    assert await purged(world, f"/purge search {CANARY}") != ""
    assert holding(world.folder) == []
