"""Damaged arguments that take long to repair: the chat goes on meanwhile, and Ctrl-C need not wait for it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

from chorus_cli.models.rules.events import TextDelta
from tests.turns.service.tool_talk import call, calls, rows
from tests.world import World

DAMAGED = "{" + ", ".join(f"'text {number}': 'gold'" for number in range(4_500))


async def test_a_long_repair_leaves_the_event_loop_free(tooled: World) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await tooled.conversation.tool_loop.runner.toolbox.read([call("echo", DAMAGED)])
    ticking.cancel()
    assert ticks > 10


async def test_a_reply_that_is_stopped_while_its_calls_are_read_is_interrupted(tooled: World) -> None:
    calls(tooled, call("echo", DAMAGED), before="Let me see.")
    has_words = asyncio.Event()

    async def listen() -> None:
        async with aclosing(tooled.conversation.answer(tooled.current.target(), "First")) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    has_words.set()

    turn = asyncio.create_task(listen())
    await has_words.wait()
    await asyncio.sleep(0.02)
    turn.cancel()
    with suppress(asyncio.CancelledError):
        await turn
    assert await rows(tooled) == [
        ("user", "First", None, "complete"),
        ("assistant", "Let me see.", None, "interrupted"),
    ]
