"""A turn in a thread that another chat has closed opens it again and says so."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import JournalError
from chorus_cli.log.rows import thread_rows
from chorus_cli.models.rules.events import Notice
from tests.world import World

AGAIN = "Thread #2 was closed by another Chorus; it is open again."


async def close_here(world: World) -> None:
    """Close the thread in focus as another chat does, which leaves the focus as it is."""
    await world.store.write(thread_rows.close, [world.current.thread_id], world.clock.now())


async def open_numbers(world: World) -> list[int]:
    return [thread.number for thread in await world.services.threads.open_threads()]


async def test_a_message_opens_the_thread_again_and_the_next_one_says_nothing(world: World) -> None:
    await world.carry_out("/thread new")
    await close_here(world)
    assert await world.notices("Hello") == [AGAIN]
    assert await open_numbers(world) == [1, 2]
    assert await world.notices("And now?") == []


async def test_a_retry_opens_it_again_too(world: World) -> None:
    await world.carry_out("/thread new")
    await world.say("Hello")
    await close_here(world)
    events = [event async for event in world.conversation.retry(world.current.target())]
    assert [event.text for event in events if isinstance(event, Notice)] == [AGAIN]
    assert await open_numbers(world) == [1, 2]


async def test_a_retry_that_is_refused_leaves_it_closed(world: World) -> None:
    await world.carry_out("/thread new")
    await close_here(world)
    with pytest.raises(JournalError):
        await anext(world.conversation.retry(world.current.target()))
    assert await open_numbers(world) == [1]


async def test_a_thread_of_an_earlier_persona_stays_closed(world: World) -> None:
    await world.persona_admin.create("Ada")
    await world.carry_out("/persona ada")
    before = world.current.target()
    await world.persona_admin.archive("ada")
    await world.persona_admin.delete("ada")
    await world.persona_admin.create("Ada")
    _ = [event async for event in world.conversation.answer(before, "Hello")]
    assert await open_numbers(world) == []
