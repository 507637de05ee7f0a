"""A thread answers one message at a time: while a reply is being written in it, the next turn waits."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest

from chorus_cli.context.rules.plan import BROKEN_OFF
from chorus_cli.core.errors import MessageRefusedError
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.models.rules.events import ReplyEnd, TextDelta, TurnDone, TurnEvent, WaitBegun, WaitOver
from tests.world import World, of_run, words_come

ELSEWHERE = "Waiting for the reply in thread #1 that another Chorus is writing …"
HERE = "Waiting for the reply in thread #1 that is still being written here …"


class Writing:
    """A reply to ``First`` that ``run`` is writing, as far as its first word."""

    def __init__(self, world: World, run: str) -> None:
        self.hold = asyncio.Event()
        world.model.enqueue(TextDelta("Half"), self.hold, TextDelta(" and half"), ReplyEnd("stop"))
        conversation = of_run(world.conversation, run)
        self.events = conversation.answer(world.current.target(), "First")

    async def begin(self) -> None:
        await words_come(self.events)

    async def end(self) -> None:
        self.hold.set()
        _ = [event async for event in self.events]


@pytest.fixture
async def writing(world: World) -> Writing:
    begun = Writing(world, "another")
    await begun.begin()
    return begun


async def waiting(events: AsyncGenerator[TurnEvent, None]) -> str:
    """Follow a turn until it waits, and return what it says."""
    event = await anext(events)
    assert isinstance(event, WaitBegun)
    return event.text


@pytest.mark.parametrize(("run", "sentence"), [("another", ELSEWHERE), ("this-run", HERE)])
async def test_a_message_waits_for_the_reply_and_its_request_holds_it(world: World, run: str, sentence: str) -> None:
    writing = Writing(world, run)
    await writing.begin()
    second = world.conversation.answer(world.current.target(), "Second")
    assert await waiting(second) == sentence
    assert [message.content for message in await world.log() if message.role is Role.USER] == ["First"]
    await writing.end()
    events = [event async for event in second]
    assert isinstance(events[0], WaitOver)
    assert isinstance(events[-1], TurnDone)
    assert world.asked() == [("user", "First"), ("assistant", "Half and half"), ("user", "Second")]
    assert [message.content for message in await world.log()] == ["First", "Half and half", "Second", "ok"]


async def test_a_message_in_another_thread_does_not_wait(world: World, writing: Writing) -> None:
    await world.carry_out("/thread new")
    assert (await world.say("Elsewhere")).status is Status.COMPLETE
    await writing.end()


async def test_a_retry_waits_and_asks_again_for_that_reply(world: World, writing: Writing) -> None:
    retry = world.conversation.retry(world.current.target())
    assert await waiting(retry) == ELSEWHERE
    await writing.end()
    _ = [event async for event in retry]
    assert world.asked() == [("user", "First")]
    assert await world.seen() == ["First", "ok"]


@pytest.mark.parametrize("turn", ["message", "retry"])
async def test_nothing_is_stored_when_the_wait_is_stopped(world: World, writing: Writing, turn: str) -> None:
    target, waits = world.current.target(), asyncio.Event()

    async def listen() -> None:
        talk = world.conversation
        async for _ in talk.answer(target, "Second") if turn == "message" else talk.retry(target):
            waits.set()

    task = asyncio.create_task(listen())
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await writing.end()
    assert await world.seen() == ["First", "Half and half"]
    assert await world.told("/context ops") == "There are no operations on this context yet."


async def test_the_wait_ends_when_the_process_that_writes_has_died(world: World, writing: Writing) -> None:
    second = world.conversation.answer(world.current.target(), "Second")
    await waiting(second)
    await world.store.write(
        lambda connection: (
            connection.execute("UPDATE messages SET run = 'dead', content = 'Half' WHERE id = 2") and None
        )
    )
    _ = [event async for event in second]
    assert world.asked() == [("user", "First"), ("assistant", f"Half\n{BROKEN_OFF}"), ("user", "Second")]
    assert [message.status for message in await world.log()][1] is Status.INTERRUPTED
    await writing.events.aclose()


async def test_messages_that_wait_together_are_answered_one_after_the_other(world: World, writing: Writing) -> None:
    runs = [of_run(world.conversation, f"run-{number}") for number in range(4)]
    asking = [run.answer(world.current.target(), f"Q{number}") for number, run in enumerate(runs)]
    assert {await waiting(events) for events in asking} == {ELSEWHERE}

    async def rest(events: AsyncGenerator[TurnEvent, None]) -> list[TurnEvent]:
        return [event async for event in events]

    others = asyncio.gather(*map(rest, asking))
    await writing.end()
    assert [sum(isinstance(event, WaitBegun) for event in events) for events in await others] == [0, 0, 0, 0]
    log = await world.log()
    assert [message.role for message in log] == [Role.USER, Role.ASSISTANT] * 5
    assert sorted(message.content for message in log[2::2]) == ["Q0", "Q1", "Q2", "Q3"]
    # Each request holds every turn before it, whole.
    assert [len(world.asked(number)) for number in range(5)] == [1, 3, 5, 7, 9]


async def test_a_message_that_is_stopped_while_it_is_stored_says_that_it_is(
    world: World, writing: Writing, tmp_path: Path
) -> None:
    seen: list[TurnEvent] = []
    second = world.conversation.answer(world.current.target(), "Second")
    await waiting(second)
    see = seen.append

    async def listen() -> None:
        async for event in second:
            see(event)

    task = asyncio.create_task(listen())
    await writing.end()
    with closing(sqlite3.connect(tmp_path / "chorus.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.sleep(0.05)
        other.execute("ROLLBACK")
    with pytest.raises(asyncio.CancelledError):
        await task
    stored = [message.content for message in await world.log() if message.role is Role.USER]
    assert any(isinstance(event, WaitOver) for event in seen) == (stored == ["First", "Second"])
    assert Status.STREAMING not in {message.status for message in await world.log()}


async def test_a_message_that_can_never_be_sent_is_refused_at_once(world: World, writing: Writing) -> None:
    assert "too large" in (await refusal(world, " ".join(["w"] * 20_000)))
    assert await refusal(world, "  ")
    await writing.end()


async def refusal(world: World, text: str) -> str:
    try:
        await anext(world.conversation.answer(world.current.target(), text))
    except MessageRefusedError as error:
        return str(error)
    return ""
