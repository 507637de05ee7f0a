"""A reply bears the time when it began, not that of its question; what depends on times holds all the same."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from chorus_cli.context.rules.plan import LEAD
from chorus_cli.core.errors import ModelError
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from tests.fakes import START
from tests.world import World

SLOW = timedelta(seconds=40)


async def answered_slowly(world: World, text: str = "Hello", waited: timedelta = SLOW) -> None:
    """Say something; the reply begins after ``waited``, and goes on for as long again."""
    begun, ended = asyncio.Event(), asyncio.Event()
    world.model.enqueue(begun, TextDelta("Well,"), ended, TextDelta(" yes."), ReplyEnd("stop"))
    saying = asyncio.create_task(world.say(text))
    await world.log_row_with_status(len(await world.log()) + 1, Status.STREAMING)
    world.clock.advance(waited)
    begun.set()
    await asyncio.sleep(0.01)
    world.clock.advance(waited)
    ended.set()
    await saying


async def test_a_reply_has_the_time_when_its_first_words_came(world: World) -> None:
    await answered_slowly(world)
    question, reply = await world.log()
    assert (question.timestamp, reply.timestamp) == (START, START + SLOW)
    assert await world.store.read(operation_rows.last_spoken_at, 1) == START + SLOW


async def test_a_reply_that_never_came_has_the_time_of_its_end(world: World) -> None:
    for _ in range(3):
        world.model.enqueue(ModelError("Busy.", retryable=True))
    await world.say("Hello")
    _, reply = await world.log()
    assert reply.timestamp == world.clock.now() > START


async def test_the_checksum_is_of_the_time_that_is_stored(world: World) -> None:
    await answered_slowly(world)
    [(stored, *parts)] = await world.store.read(
        lambda connection: connection.execute(
            "SELECT checksum, role, thread_id, persona, timestamp, content FROM messages WHERE role = 'assistant'"
        ).fetchall()
    )
    assert stored == message_rows.checksum(*parts)


async def test_a_clock_that_is_set_back_makes_no_reply_older_than_its_question(world: World) -> None:
    await answered_slowly(world, waited=-SLOW)
    question, reply = await world.log()
    assert reply.timestamp == question.timestamp


async def test_a_view_that_the_window_begins_within_a_turn_is_led_by_a_line(world: World) -> None:
    await answered_slowly(world)
    world.clock.advance(timedelta(hours=8) - 2 * SLOW + SLOW / 2)
    assert await world.seen() == ["Well, yes."]
    await world.say("And then?")
    assert world.asked()[:-1] == [("user", LEAD), ("assistant", "Well, yes.")]


@pytest.mark.parametrize("command", ["/new", "/undo"])
async def test_a_session_finds_its_messages_in_the_log(world: World, command: str) -> None:
    await answered_slowly(world)
    world.model.say("A summary.")
    await world.told("/context save talk")
    await world.told(command)
    await world.told("/context restore talk")
    assert await world.seen() == ["Hello", "Well, yes."]
    assert len(await world.log()) == 2


async def test_an_edit_made_while_a_reply_begins_leaves_that_turn_as_it_is(world: World) -> None:
    await world.say("Before")
    begun = asyncio.Event()
    world.model.enqueue(begun, TextDelta("Late"), ReplyEnd("stop"))
    saying = asyncio.create_task(world.say("Running"))
    await world.log_row_with_status(3, Status.STREAMING)
    opened = await world.services.context_editing.open(world.current.target())
    world.clock.advance(SLOW)
    begun.set()
    await saying
    await world.services.context_editing.save(opened, opened.sheet.text.replace("Before", "BEFORE"))
    assert await world.seen() == ["BEFORE", "ok", "Running", "Late"]
