"""The items that a completion offers are those that were read last, and never their whole contents."""

from __future__ import annotations

from tests.memory.service.remembered import Remembering


async def offered(memory: Remembering) -> dict[int, str]:
    """Press a key, wait until the store is idle, and press another."""
    memory.service.offers(memory.slug)
    for _ in range(2):
        await memory.sql("SELECT 1")
    return {id_: beginning for id_, _, beginning in memory.service.offers(memory.slug)}


async def test_the_newest_items_are_offered_by_their_beginnings(memory: Remembering) -> None:
    for number in range(302):
        await memory.sql("INSERT INTO context_items(persona, item_type, content) VALUES ('chorus', 'TASK', ?)", number)
    await memory.add("x" * 90_000)
    found = await offered(memory)
    assert list(found) == [*range(303, 3, -1)]
    assert found[303] == "x" * 80


async def test_changes_of_this_and_of_another_program_are_seen(memory: Remembering) -> None:
    assert await offered(memory) == {}
    await memory.add("call the plumber")
    assert await offered(memory) == {1: "call the plumber"}
    await memory.forget(1)
    assert await offered(memory) == {}
    await memory.world.told("/undo")
    await memory.sql("INSERT INTO context_items(persona, item_type, content) VALUES ('chorus', 'TASK', 'buy milk')")
    assert await offered(memory) == {2: "buy milk", 1: "call the plumber"}
