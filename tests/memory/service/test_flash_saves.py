"""Flash saves: refused below the mark, exact in their figures, whole or not at all, and always taken back."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from chorus_cli.core.errors import MemoryItemError
from chorus_cli.memory.rules.items import ItemType, Tier
from tests.memory.service.remembered import FIGURES, Remembering

LONG_AGO = timedelta(days=60)


@pytest.fixture
async def aged(memory: Remembering) -> Remembering:
    """Two COLD items of seven words together, a WARM one of three, and a HOT one of three."""
    await memory.add("an old section", ItemType.PRD_SECTION)
    await memory.add("an old test result", ItemType.TEST_RESULT)
    await memory.add("the old task", ItemType.TASK)
    memory.world.clock.advance(LONG_AGO)
    await memory.add("the new task", ItemType.TASK)
    await memory.service.renew_if_due(memory.slug)
    return memory


async def tiers(memory: Remembering) -> dict[str, str]:
    return dict(await memory.sql("SELECT content, tier FROM context_items ORDER BY id"))


COLD = {"an old section": "COLD", "an old test result": "COLD", "the old task": "WARM", "the new task": "HOT"}
ARCHIVED = COLD | {"an old section": "ARCHIVED", "an old test result": "ARCHIVED"}


async def test_the_report_is_right_to_the_token(aged: Remembering) -> None:
    assert await tiers(aged) == COLD
    report = await aged.flash()
    assert (report.items_count, report.items_archived, report.hot_items_retained) == (4, 2, 1)
    assert (report.token_count_before, report.token_count_after, report.reduction_percentage) == (13, 6, 53.85)
    assert await tiers(aged) == ARCHIVED


async def test_it_is_refused_below_the_mark_with_the_figures(aged: Remembering) -> None:
    with pytest.raises(MemoryItemError, match="The next request has 10 tokens, below the 100 from which on"):
        await aged.service.flash(aged.slug, *FIGURES)
    assert await tiers(aged) == COLD
    assert await aged.service.checkpoints(aged.slug) == []
    assert (await aged.service.flash(aged.slug, 100, 100)).items_archived == 2


async def flash_number(memory: Remembering) -> int:
    """Return the number of the newest flash save in the journal."""
    ((number,),) = await memory.sql("SELECT MAX(number) FROM operations WHERE kind = 'flash'")
    return int(number)


async def test_an_empty_memory_is_not_saved(memory: Remembering) -> None:
    with pytest.raises(MemoryItemError, match="no active items"):
        await memory.flash()


async def test_an_automatic_one_needs_a_cold_item_and_is_taken_back_by_its_number_only(aged: Remembering) -> None:
    assert await aged.service.flash_automatically(aged.slug) is not None
    number = await flash_number(aged)
    assert await aged.service.flash_automatically(aged.slug) is None
    assert await aged.told("/undo") == 'Undone: remembered #4 "the new task"'
    assert await aged.told(f"/context undo {number}") == ("Undone: flash save, 2 memory items archived")
    assert (await tiers(aged))["an old section"] == "COLD"


async def test_an_automatic_one_without_cold_items_changes_no_score(memory: Remembering) -> None:
    await memory.add("the new task", ItemType.TASK)
    await memory.service.renew_if_due(memory.slug)
    memory.world.clock.advance(timedelta(minutes=4))
    before = await memory.sql("SELECT * FROM context_items")
    assert await memory.service.flash_automatically(memory.slug) is None
    assert await memory.sql("SELECT * FROM context_items") == before


async def test_the_checkpoint_holds_every_active_item(aged: Remembering) -> None:
    await aged.flash()
    ((text,),) = await aged.sql("SELECT checkpoint_data FROM context_checkpoints")
    held = json.loads(text)
    assert [len(held["context_state"][f"{tier}_items"]) for tier in ("hot", "warm", "cold")] == [1, 1, 2]
    assert held["metrics"]["total_tokens"] == 13


async def test_eleven_saves_keep_ten_checkpoints_and_an_undo_outlives_its_own(aged: Remembering) -> None:
    first, number = await aged.flash(), await flash_number(aged)
    for _ in range(10):
        await aged.flash()
    kept = [row.checkpoint_id for row in await aged.service.checkpoints(aged.slug)]
    assert kept == [*range(11, 1, -1)]
    with pytest.raises(MemoryItemError, match="There is no checkpoint 1 here"):
        await aged.service.restore(aged.slug, first.checkpoint_id)
    await aged.told(f"/context undo {number}")
    assert await tiers(aged) == COLD


async def test_restore_and_undo_and_redo_bring_items_back_and_put_them_away(aged: Remembering) -> None:
    saved = await aged.flash()
    operation = await aged.service.restore(aged.slug, saved.checkpoint_id)
    assert operation is not None
    assert operation.describe() == "restored 2 memory items from checkpoint 1"
    assert await aged.service.restore(aged.slug, saved.checkpoint_id) is None
    for command, expected in [("/undo", ARCHIVED), ("/undo", COLD), ("/redo", ARCHIVED), ("/redo", COLD)]:
        await aged.told(command)
        assert await tiers(aged) == expected, command


async def test_an_undo_passes_over_an_item_that_is_in_use_again(aged: Remembering) -> None:
    await aged.flash()
    number = await flash_number(aged)
    await aged.service.pin(aged.slug, 1)
    await aged.told(f"/context undo {number}")
    assert [item.tier for item in await aged.service.listing(aged.slug)] == [Tier.HOT, Tier.HOT, Tier.WARM, Tier.COLD]
    await aged.told(f"/context redo {number}")
    assert await tiers(aged) == ARCHIVED | {"an old section": "HOT"}
