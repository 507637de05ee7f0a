"""Replies that are held back until a test lets them go on, and the rows of them."""

from __future__ import annotations

import asyncio

from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.personas.rules.persona import Target
from chorus_cli.threads.service.replies import Replies
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.storage import database
from tests.world import World, words_come


def slow_reply(world: World, *words: str) -> asyncio.Event:
    """Enqueue a reply that stops after its first word until the gate is opened."""
    gate = asyncio.Event()
    first, *rest = words
    world.model.enqueue(TextDelta(first), gate, *map(TextDelta, rest), ReplyEnd("stop"))
    return gate


async def sent(world: World, target: Target, text: str) -> RunningTurn:
    """Send a message and wait for the first word of the reply."""
    turn = await world.services.replies.send(target, text)
    assert turn is not None
    await words_come(turn.followed())
    return turn


async def unsent(world: World) -> list[str]:
    """Return the texts in the outbox, oldest first."""
    return await world.store.read(
        lambda c: [text for (text,) in c.execute("SELECT content FROM outbox ORDER BY id").fetchall()]
    )


async def refuse(world: World, table: str) -> None:
    """Have a table take no row."""
    await world.store.write(database.refuse, f"INSERT ON {table}")


def replies(world: World) -> Replies:
    return world.services.replies


async def rows(world: World, target: Target) -> list[tuple[Role, str, Status]]:
    return [(row.role, row.content, row.status) for row in await world.log() if row.thread_id == target.thread_id]


async def settled(world: World) -> None:
    async with asyncio.timeout(5):
        await replies(world).settle()
