"""Leaving, whether or not a silence lasts or is being kept."""

from __future__ import annotations

import asyncio

from tests.sessions.idle.silence import HALF_AN_HOUR, Talk, settled, watches


async def test_leaving_ends_every_wait_at_once(talk: Talk) -> None:
    talk.say("hello")
    talk.turn_to("frodo")
    await settled()
    await talk.timer.close()
    talk.timer.arm()
    assert watches() == []
    await talk.clock.pass_by(3 * HALF_AN_HOUR)
    assert (talk.saved, talk.told) == ([], [])


async def test_leaving_ends_the_wait_that_followed_a_save_at_once(talk: Talk) -> None:
    talk.summary = asyncio.Event()
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    talk.say("I am back")
    talk.summary.set()
    await settled()
    async with asyncio.timeout(2):
        await talk.timer.close(patience_seconds=60)
    assert talk.saved == [("chorus", "hello")]


async def test_leaving_without_ever_having_begun_is_nothing(talk: Talk) -> None:
    await talk.timer.close()
    assert (talk.saved, talk.told, watches()) == ([], [], [])


async def test_leaving_waits_for_a_save_in_progress_that_is_soon_done(talk: Talk) -> None:
    talk.set(on_idle="save+clear")
    talk.summary = asyncio.Event()
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    leaving = asyncio.create_task(talk.timer.close())
    await settled()
    assert not leaving.done()
    talk.summary.set()
    await leaving
    assert (len(talk.saved), len(talk.told), talk.cleared) == (1, 1, [])


async def test_leaving_abandons_a_save_in_progress_that_takes_too_long(talk: Talk) -> None:
    talk.summary = asyncio.Event()
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    async with asyncio.timeout(2):
        await talk.timer.close(patience_seconds=0.01)
    talk.summary.set()
    await settled()
    assert (talk.saved, talk.told) == ([], [])


async def test_leaving_does_not_wait_for_the_silence_that_followed_a_save_in_progress(talk: Talk) -> None:
    talk.summary = asyncio.Event()
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    talk.say("I am back")
    leaving = asyncio.create_task(talk.timer.close(patience_seconds=60))
    await settled()
    talk.summary.set()
    async with asyncio.timeout(2):
        await leaving
    assert len(talk.saved) == 1
