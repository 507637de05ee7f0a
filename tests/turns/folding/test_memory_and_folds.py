"""The memory in a talk that is folded again and again, and archived when it is crowded."""

from __future__ import annotations

from datetime import timedelta

from chorus_cli.memory.rules.items import ItemType, Tier
from tests.remembering import wants_summary
from tests.turns.folding.long_talk import Talk


async def test_a_pinned_item_is_in_every_request_of_a_folded_talk(talk: Talk) -> None:
    memory = talk.world.services.memory
    await talk.say("one!", "two!")
    item = (await memory.remember("chorus", ItemType.TASK, "the precious violin")).item
    await memory.pin("chorus", item.id)
    await talk.say(*(f"fact{number}!" for number in range(20)))
    asked = [request for request in talk.model.requests if not wants_summary(request.messages[0].content)]
    assert len(talk.summaries()) > 1
    assert all("violin" in "\n".join(message.content for message in request.messages) for request in asked[2:])


async def test_a_crowded_request_archives_cold_items_and_says_so(talk: Talk) -> None:
    memory, world = talk.world.services.memory, talk.world
    await memory.remember("chorus", ItemType.PRD_SECTION, "the old bridge")
    world.clock.advance(timedelta(days=30))
    notices = await talk.say(*(f"fact{number}!" for number in range(12)))
    assert "1 COLD memory item was archived; /memory restore 1 reverts this." in notices
    assert [item.tier for item in await memory.listing("chorus")] == [Tier.ARCHIVED]
