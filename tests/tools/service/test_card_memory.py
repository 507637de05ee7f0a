"""A model that recalls the lore of its character card reads names, not macros."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from chorus_cli.tools.service import BUILT_IN
from tests.cards.rules.made_cards import card
from tests.turns.service.tool_talk import call, calls, events_of, results
from tests.world import Tools, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Store
    from tests.fakes import FakeClock, ScriptedModel


async def test_macros_in_a_recalled_item_are_replaced(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel
) -> None:
    world = await built(tmp_path, store, clock, model, 10_000, Tools(BUILT_IN))
    (tmp_path / "mira.json").write_text(json.dumps(card(2)))
    await world.told(f"/persona import {tmp_path}/mira.json")
    calls(world, call("recall_memory", {"query": "lens"}))
    await events_of(world, "Go on, please.")
    assert results(world)[-1].endswith("The lamp was made in Mira's youth.")
