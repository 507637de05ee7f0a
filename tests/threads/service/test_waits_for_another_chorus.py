"""A message that waits for the reply of another process waits like one for a reply of this one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from chorus_cli.framework.replies import Refill
from chorus_cli.models.rules.events import ReplyEnd, TextDelta, WaitBegun
from tests.threads.service.slow_replies import refuse, unsent
from tests.world import of_run, words_come

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from chorus_cli.threads.service.running_turn import RunningTurn
    from tests.world import World


@pytest.fixture
async def busy(world: World) -> AsyncGenerator[World, None]:
    """A world whose thread another process is writing in."""
    hold = asyncio.Event()
    world.model.enqueue(TextDelta("Half"), hold, ReplyEnd("stop"))
    events = of_run(world.conversation, "another").answer(world.current.target(), "First")
    await words_come(events)
    yield world
    hold.set()
    assert [event async for event in events]


async def waiting(world: World, text: str) -> RunningTurn:
    turn = await world.services.replies.send(world.current.target(), text)
    assert turn is not None
    assert isinstance(await anext(turn.followed()), WaitBegun)
    return turn


async def test_it_counts_as_waiting_and_undo_takes_it_back(busy: World) -> None:
    replies = busy.services.replies
    await waiting(busy, "Second")
    assert (replies.running, replies.waiting_count, await unsent(busy)) == ((), 1, ["Second"])
    assert await busy.told("/undo") == "Not sent: Second"
    assert (replies.waiting_count, await unsent(busy)) == (0, [])
    assert [message.content for message in await busy.log() if message.role == "user"] == ["First"]


async def test_the_end_of_the_chat_says_that_it_was_not_sent(busy: World) -> None:
    await waiting(busy, "Second")
    assert await busy.services.replies.close() == ["Not sent: 1 message, kept as a draft for the next start."]
    assert await unsent(busy) == ["Second"]


async def test_it_is_kept_even_if_it_is_stopped_before_it_is_known_to_wait(busy: World) -> None:
    turn = await busy.services.replies.send(busy.current.target(), "Second")
    assert turn is not None
    await turn.stop()
    assert (turn.is_waiting, await unsent(busy)) == (True, ["Second"])
    assert await busy.services.replies.give_back(turn) == "Second"
    assert await unsent(busy) == []


@pytest.mark.parametrize(
    ("is_full", "end"), [(False, "The text is kept in {}."), (True, "It could not be kept in a file either: Second")]
)
async def test_one_that_no_row_holds_is_in_a_file_or_in_the_sentence(busy: World, *, is_full: bool, end: str) -> None:
    await refuse(busy, "outbox")
    busy.kept.is_full = is_full
    await waiting(busy, "Second")
    told = f"A message that waited was not sent. {end.format(busy.folder / 'rescue.jsonl')}"
    assert await busy.services.replies.close() == [told]
    assert [record["content"] for record in busy.rescued] == ([] if is_full else ["Second"])


async def test_one_without_a_row_whose_thread_was_stopped_is_told_of_in_the_end(busy: World) -> None:
    await refuse(busy, "outbox")
    turn = await waiting(busy, "Second")
    assert await busy.services.replies.stop(turn.target.thread_id)
    [told] = await busy.services.replies.close()
    assert told.startswith("A message that waited was not sent. The text is kept in ")


async def test_its_row_is_the_line_that_sends_it(busy: World) -> None:
    await waiting(busy, "/quit is a word")
    assert await unsent(busy) == ["//quit is a word"]
    reply = await busy.carry_out("/undo")
    assert reply == Refill("Not sent: /quit is a word", "//quit is a word")
