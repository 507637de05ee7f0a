"""A reply that is broken off has the words that were shown, neither more nor fewer."""

from __future__ import annotations

import asyncio
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.rules.events import TextDelta
from tests.threads.service.slow_replies import sent, slow_reply

if TYPE_CHECKING:
    from tests.world import World


@pytest.mark.parametrize("steps", range(24))
async def test_a_reply_that_is_broken_off_at_any_step_has_the_words_that_were_shown(world: World, steps: int) -> None:
    gate = slow_reply(world, "one", *(f" {number}" for number in range(9)))
    turn = await sent(world, world.current.target(), "question")
    screen = StringIO()

    async def follow() -> None:
        try:
            async for event in turn.followed():
                screen.write(event.text if isinstance(event, TextDelta) else "")
        except asyncio.CancelledError:
            await turn.stop()
            raise

    listener = asyncio.create_task(follow())
    await asyncio.sleep(0)
    gate.set()
    for _ in range(steps):
        await asyncio.sleep(0)
    listener.cancel()
    await asyncio.wait({listener})
    reply = (await world.log())[-1]
    assert (turn.is_over, reply.content) == (True, screen.getvalue())
