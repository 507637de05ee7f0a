"""The items that a completion offers are read once for each change, and never with their whole contents."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.memory.service.remembered import Remembering


async def offered(memory: Remembering) -> dict[int, str]:
    """Press a key, wait until the store is idle, and press another."""
    memory.service.offers(memory.slug)
    for _ in range(2):
        await memory.sql("SELECT 1")
    return {head.id: head.beginning for head in memory.service.offers(memory.slug)}


async def reads(memory: Remembering, keys: int) -> int:
    """Press some keys and return how often items were read."""

    async def press() -> None:
        for _ in range(keys):
            await offered(memory)

    return sum("context_items" in statement for statement in await memory.statements(press()))


async def test_the_newest_items_are_offered_by_their_beginnings(memory: Remembering) -> None:
    for number in range(302):
        await memory.sql("INSERT INTO context_items(persona, item_type, content) VALUES ('chorus', 'TASK', ?)", number)
    await memory.add("x" * 90_000)
    found = await offered(memory)
    assert list(found) == [*range(303, 3, -1)]
    assert found[303] == "x" * 80


async def test_they_are_read_again_after_a_change_only(memory: Remembering) -> None:
    assert await reads(memory, keys=5) == 1
    await memory.add("call the plumber")
    assert [head.beginning for head in memory.service.offers(memory.slug)] == ["call the plumber"]
    assert await reads(memory, keys=5) == 0
    await memory.forget(1)
    assert await offered(memory) == {}
    await memory.world.told("/undo")
    assert await offered(memory) == {1: "call the plumber"}


async def test_a_change_of_another_program_is_seen_ten_seconds_later(memory: Remembering) -> None:
    assert await offered(memory) == {}
    await memory.sql("INSERT INTO context_items(persona, item_type, content) VALUES ('chorus', 'TASK', 'buy milk')")
    assert await offered(memory) == {}
    memory.world.clock.advance(timedelta(seconds=10))
    assert await offered(memory) == {1: "buy milk"}
