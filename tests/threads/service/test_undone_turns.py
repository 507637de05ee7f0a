"""Turns that were not seen: those that are undone are not shown any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.events import TextDelta
from tests.threads.service.slow_replies import replies, sent, settled, slow_reply

if TYPE_CHECKING:
    from tests.world import World


async def test_an_undone_turn_that_was_not_seen_is_not_shown_any_more(world: World) -> None:
    here = world.current.target()
    gate = slow_reply(world, "first", " reply")
    turn = await sent(world, here, "first")
    await replies(world).send(here, "second")
    gate.set()
    await settled(world)
    assert turn.next is not None
    assert await world.told("/undo") == 'Undone: your message "second" and its reply'
    assert turn.next is None
    assert replies(world).in_thread(here.thread_id) is turn


async def test_a_message_whose_reply_an_undo_stops_before_its_first_word_is_taken_back_alone(world: World) -> None:
    world.model.enqueue(asyncio.Event())
    await replies(world).send(world.current.target(), "first")
    await world.log_row_with_status(1, Status.STREAMING)
    assert await world.told("/undo") == 'Undone: your message "first"'


async def test_undoing_the_only_turn_that_was_not_seen_leaves_none_to_show(world: World) -> None:
    here = world.current.target()
    gate = slow_reply(world, "first", " reply")
    await sent(world, here, "first")
    gate.set()
    await settled(world)
    await world.told("/undo")
    assert replies(world).in_thread(here.thread_id) is None


async def test_after_an_undone_turn_the_message_that_waited_is_shown_in_its_place(world: World) -> None:
    here = world.current.target()
    gate = slow_reply(world, "first")
    turn = await sent(world, here, "first")
    slow_reply(world, "half")
    for text in ("second", "third"):
        await replies(world).send(here, text)
    gate.set()
    await turn.over()
    await asyncio.sleep(0)
    second = turn.next
    assert second is not None
    async for event in second.followed():
        if isinstance(event, TextDelta):
            break
    await replies(world).break_off(here.thread_id)
    await settled(world)
    assert [each.text for each in turn.chain] == ["first", "third"]
    assert replies(world).in_thread(here.thread_id) is turn
