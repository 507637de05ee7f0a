"""Restoring a session while a reply is being written: its turn follows the session, and nothing else does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from tests.sessions.service.saved_sessions import restore, save

if TYPE_CHECKING:
    from tests.world import World


async def begun(world: World, text: str) -> asyncio.Event:
    """Send a message to the thread in focus, whose reply waits for an event after its first word."""
    gate = asyncio.Event()
    world.model.enqueue(TextDelta("slow"), gate, ReplyEnd("stop"))
    turn = await world.services.replies.send(world.current.target(), text)
    assert turn is not None
    async for event in turn.followed():
        if isinstance(event, TextDelta):
            break
    return gate


async def finished(world: World, gate: asyncio.Event) -> None:
    gate.set()
    await world.services.replies.settle()
    await world.services.idle_timer.close()


async def test_what_was_said_elsewhere_while_a_reply_is_written_leaves_the_context(talked: World) -> None:
    await save(talked)
    await talked.told("/thread new")
    gate = await begun(talked, "A long one")
    await talked.told("/thread 1")
    await talked.say("Not in the session")
    await restore(talked)
    await finished(talked, gate)
    assert await talked.seen() == ["Hello", "Hi there", "How are you?", "ok"]
    await talked.current.turn_to_thread(2)
    assert await talked.seen() == ["A long one", "slow"]


async def test_a_reply_that_a_new_conversation_left_behind_stays_behind(talked: World) -> None:
    await save(talked)
    gate = await begun(talked, "Left behind")
    await talked.told("/new")
    await restore(talked)
    await finished(talked, gate)
    assert await talked.seen() == ["Hello", "Hi there", "How are you?", "ok"]


async def test_the_reply_to_a_restored_question_comes_in(talked: World) -> None:
    gate = await begun(talked, "In the session")
    await save(talked)
    await talked.told("/new")
    await restore(talked)
    await finished(talked, gate)
    assert await talked.seen() == ["Hello", "Hi there", "How are you?", "ok", "In the session", "slow"]
