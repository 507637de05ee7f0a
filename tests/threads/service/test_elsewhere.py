"""What other runs say and do in the thread in focus is found once each, what is said when it is finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from chorus_cli.core.errors import LogUnreachableError
from chorus_cli.log.rules.acts import Retry, Way
from chorus_cli.log.rules.run_names import host_of, run_name
from chorus_cli.log.rules.threads import Exchange
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.storage.store import Store
from chorus_cli.threads.service.elsewhere import Elsewhere
from tests.sessions.service.saved_sessions import sql
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


async def next_of(there: AsyncGenerator[Exchange | str, None]) -> Exchange | str:
    while not (found := await anext(there)):
        pass
    return found


async def next_said(there: AsyncGenerator[Exchange | str, None]) -> Exchange:
    found = await next_of(there)
    assert isinstance(found, Exchange)
    return found


def test_the_name_of_a_run_has_its_machine() -> None:
    assert (OTHER, host_of(OTHER)) == ("4711-9f8e7d6c@lap.top", "lap-top")
    assert host_of("4711-9f8e7d6c") == ""


async def test_a_turn_of_another_run_is_found_and_no_turn_of_this_run(world: World) -> None:
    told = Told()
    elsewhere = Elsewhere(world.store, world.current, "this-run", told.notifications)
    other, target = of_run(world.conversation, OTHER), world.current.target()
    aside = await another_thread(world)
    async with aclosing(elsewhere.heard()) as heard:
        coming = asyncio.ensure_future(next_said(heard))
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
        reply = await next_said(heard)
        assert (reply.question, reply.reply) == ("", "half whole")


async def test_a_chat_that_began_out_of_reach_finds_what_is_said_later(world: World) -> None:
    told = Told()
    store = cast("Store", UnreachableAtFirst(world.store))
    elsewhere = Elsewhere(store, world.current, "this-run", told.notifications)
    other, target = of_run(world.conversation, OTHER), world.current.target()
    [event async for event in other.answer(target, "Before")]
    async with aclosing(elsewhere.heard()) as heard:
        coming = asyncio.ensure_future(next_said(heard))
        told.waiting.put_nowait(0)
        await asyncio.sleep(0.05)
        [event async for event in other.answer(target, "After")]
        told.waiting.put_nowait(target.thread_id)
        found = await coming
        assert (found.question, found.reply) == ("After", "ok")


async def test_acts_of_other_runs_are_found_by_their_names_in_the_order_in_which_they_were_done(world: World) -> None:
    told, target = Told(), world.current.target()
    elsewhere = Elsewhere(world.store, world.current, "this-run", told.notifications)
    other = of_run(world.conversation, OTHER)
    await world.told("/new")
    async with aclosing(elsewhere.heard()) as heard:
        coming = asyncio.ensure_future(next_of(heard))
        await asyncio.sleep(0.05)
        [event async for event in other.answer(target, "Hello")]
        for line in ("/pin 1", "/context undo", "/remember the key is green"):
            await world.carry_out(line)
        await world.journal.introduce(target, Retry(way=Way.EDIT, message=1))
        await sql(world, "UPDATE operations SET run = ?", OTHER)
        await world.carry_out("/pin 2")
        await sql(world, "UPDATE operations SET run = 'this-run' WHERE run IS NULL")
        told.waiting.put_nowait(0)
        said = await coming
        assert isinstance(said, Exchange)
        assert (said.question, said.reply) == ("Hello", "ok")
        assert [await next_of(heard) for _ in range(3)] == [
            "On lap-top: pinned #1",
            "Undone on lap-top: pinned #1",
            'On lap-top: edit of message #1 "Hello"',
        ]
