"""What other runs say in the thread in focus is found once each, when it is finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from chorus_cli.core.errors import LogUnreachableError
from chorus_cli.log.rules.run_names import host_of, run_name
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.storage.store import Store
from chorus_cli.threads.service.elsewhere import Elsewhere
from tests.world import World, another_thread, of_run, words_come

OTHER = run_name(4711, "9f8e7d6c", "lap-top.example.org")


@dataclass
class Told:
    """Notifications as the test gives them."""

    waiting: asyncio.Queue[int] = field(default_factory=asyncio.Queue)

    async def notifications(self) -> AsyncGenerator[int, None]:
        while True:
            yield await self.waiting.get()


class UnreachableAtFirst:
    """A store whose first read fails."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reads = 0

    async def read(self, work: Callable[..., Any], *values: object) -> Any:
        self._reads += 1
        if self._reads == 1:
            raise LogUnreachableError("The log is out of reach.")
        return await self._store.read(work, *values)


def test_the_name_of_a_run_has_its_machine() -> None:
    assert (OTHER, host_of(OTHER)) == ("4711-9f8e7d6c@lap.top", "lap-top")
    assert host_of("4711-9f8e7d6c") == ""


async def test_a_turn_of_another_run_is_found_and_no_turn_of_this_run(world: World) -> None:
    told = Told()
    elsewhere = Elsewhere(world.store, world.current, "this-run", told.notifications)
    other, target = of_run(world.conversation, OTHER), world.current.target()
    aside = await another_thread(world)
    async with aclosing(elsewhere.exchanges()) as exchanges:
        coming = asyncio.ensure_future(anext(exchanges))
        await asyncio.sleep(0.05)
        await world.say("Mine")
        [event async for event in other.answer(aside, "In another thread")]
        told.waiting.put_nowait(0)
        end = asyncio.Event()
        world.model.enqueue(TextDelta("half "), end, TextDelta("whole"), ReplyEnd("stop"))
        async with aclosing(other.answer(target, "Which way?")) as events:
            await words_come(events)
            told.waiting.put_nowait(target.thread_id)
            question = await coming
            assert (question.place, question.question, question.reply) == ("on lap-top", "Which way?", "")
            end.set()
            [event async for event in events]
        told.waiting.put_nowait(target.thread_id)
        reply = await anext(exchanges)
        assert (reply.question, reply.reply) == ("", "half whole")


async def test_a_chat_that_began_out_of_reach_finds_what_is_said_later(world: World) -> None:
    told = Told()
    store = cast("Store", UnreachableAtFirst(world.store))
    elsewhere = Elsewhere(store, world.current, "this-run", told.notifications)
    other, target = of_run(world.conversation, OTHER), world.current.target()
    [event async for event in other.answer(target, "Before")]
    async with aclosing(elsewhere.exchanges()) as exchanges:
        coming = asyncio.ensure_future(anext(exchanges))
        told.waiting.put_nowait(0)
        await asyncio.sleep(0.05)
        [event async for event in other.answer(target, "After")]
        told.waiting.put_nowait(target.thread_id)
        found = await coming
        assert (found.question, found.reply) == ("After", "ok")
