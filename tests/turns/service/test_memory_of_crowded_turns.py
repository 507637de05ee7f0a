"""A turn whose request is crowded archives COLD memory; what a turn has captured is undone before the turn."""

from __future__ import annotations

from datetime import timedelta

from chorus_cli.memory.rules.items import ItemType, Tier
from tests.world import World

ARCHIVED = "1 COLD memory item was archived; /memory restore 1 reverts this."


async def cold_item(world: World) -> int:
    """Return an item that is COLD: a section of two months ago."""
    slug = world.current.slug
    remembered = await world.services.memory.remember(slug, ItemType.PRD_SECTION, "an old section")
    world.clock.advance(timedelta(days=60))
    return remembered.item.id


async def test_a_crowded_turn_archives_cold_items_and_says_so_once(world: World) -> None:
    item_id = await cold_item(world)
    told = [await world.notices("word " * 2_000) for _ in range(6)]
    crowded = [number for number, notices in enumerate(told) if ARCHIVED in notices]
    assert crowded == [3]
    assert (await world.services.memory.item(world.current.slug, item_id)).tier is Tier.ARCHIVED
    (checkpoint,) = await world.services.memory.checkpoints(world.current.slug)
    assert (checkpoint.items_count, checkpoint.items_archived) == (1, 1)


async def test_a_captured_item_is_undone_first_and_its_message_second(world: World) -> None:
    await world.say("Look:\n```\na = 1\nb = 2\nc = 3\n```")
    assert (await world.told("/undo")).startswith("Undone: captured #1")
    assert len(await world.seen()) == 2
    await world.told("/undo")
    assert await world.seen() == []
