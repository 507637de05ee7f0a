"""When a silence begins, what breaks it, and when it is over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chorus_cli.core.errors import StorageError
from chorus_cli.sessions.service.idle import LONGEST_SLEEP_SECONDS
from tests.sessions.idle.silence import A_SECOND, ALMOST, HALF_AN_HOUR, ONE_MINUTE, Talk, message, settled


async def test_idle_timer_triggers_after_timeout(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(ALMOST)
    assert talk.saved == []
    await talk.clock.pass_by(A_SECOND)
    assert talk.saved == [("chorus", "hello")]


async def test_idle_timer_resets_on_message(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(ALMOST)
    talk.say("are you there?")
    await talk.clock.pass_by(ALMOST)
    assert talk.saved == []
    await talk.clock.pass_by(A_SECOND)
    assert talk.saved == [("chorus", "hello")]


@pytest.mark.parametrize("minutes", [1, 5, 1440])
async def test_idle_timer_configurable_timeout(talk: Talk, minutes: int) -> None:
    talk.set(idle_minutes=minutes)
    talk.say("hello")
    await talk.clock.pass_by(timedelta(minutes=minutes) - A_SECOND)
    assert talk.saved == []
    await talk.clock.pass_by(A_SECOND)
    assert talk.saved == [("chorus", "hello")]


async def test_nothing_is_kept_while_a_reply_streams_and_the_silence_begins_after_it(talk: Talk) -> None:
    talk.say("hello")
    with talk.timer.busy():
        await talk.clock.pass_by(3 * HALF_AN_HOUR)
        assert talk.saved == []
    await talk.clock.pass_by(ALMOST)
    assert talk.saved == []
    await talk.clock.pass_by(A_SECOND)
    assert talk.saved == [("chorus", "hello")]


async def test_nothing_is_kept_until_the_last_of_several_occupations_has_ended(talk: Talk) -> None:
    talk.set("frodo")
    talk.say("hello")
    talk.turn_to("frodo")
    with talk.timer.busy():
        with talk.timer.busy():
            await talk.clock.pass_by(HALF_AN_HOUR)
        await talk.clock.pass_by(HALF_AN_HOUR)
        assert talk.saved == []
    await settled()
    assert talk.saved == [("chorus", "hello")]


async def test_an_occupation_that_fails_has_ended_too(talk: Talk) -> None:
    talk.say("hello")
    with pytest.raises(StorageError), talk.timer.busy():
        raise StorageError("no")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert len(talk.saved) == 1


async def test_each_persona_has_a_silence_of_its_own(talk: Talk) -> None:
    talk.set("frodo", name="Frodo")
    talk.say("hello")
    await talk.clock.pass_by(timedelta(minutes=20))
    talk.turn_to("frodo")
    talk.say("the ring")
    await talk.clock.pass_by(timedelta(minutes=10))
    assert talk.saved == [("chorus", "hello")]
    await talk.clock.pass_by(timedelta(minutes=20))
    assert talk.saved == [("chorus", "hello"), ("frodo", "the ring")]
    assert talk.told[1].startswith("Nothing was said to Frodo for 30 m.")


async def test_a_silence_that_ends_during_another_persona_s_reply_is_kept_after_it(talk: Talk) -> None:
    talk.set("frodo")
    talk.say("hello")
    talk.turn_to("frodo")
    with talk.timer.busy():
        await talk.clock.pass_by(HALF_AN_HOUR)
        assert talk.saved == []
    await settled()
    assert talk.saved == [("chorus", "hello")]


async def test_turning_to_a_persona_begins_its_silence(talk: Talk) -> None:
    talk.set("frodo")
    talk.log["frodo"] = [message(1, "left from yesterday")]
    talk.turn_to("frodo")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.saved == [("frodo", "left from yesterday")]


async def test_a_longer_setting_holds_also_when_the_old_time_is_over(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(ALMOST)
    talk.set(idle_minutes=60)
    await talk.clock.pass_by(ALMOST)
    assert talk.saved == []
    await talk.clock.pass_by(2 * A_SECOND)
    assert len(talk.saved) == 1


async def test_a_shorter_setting_holds_at_once_when_the_timer_is_armed_and_else_at_the_next_look(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(timedelta(minutes=10))
    talk.set(idle_minutes=5)
    await talk.clock.pass_by(timedelta(seconds=LONGEST_SLEEP_SECONDS))
    assert len(talk.saved) == 1


async def test_what_happens_is_read_when_it_is_due(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(ALMOST)
    talk.set(on_idle="off")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.saved == []


async def test_what_is_said_in_another_window_breaks_the_silence(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(timedelta(minutes=20))
    talk.elsewhere["chorus"] = talk.clock.now()
    await talk.clock.pass_by(ALMOST)
    assert talk.saved == []
    await talk.clock.pass_by(A_SECOND)
    assert len(talk.saved) == 1


async def test_a_laptop_that_slept_for_hours_finds_the_silence_over_at_the_next_look(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(5 * ONE_MINUTE)
    talk.clock.suspend(timedelta(hours=9))
    await talk.clock.pass_by(timedelta(seconds=LONGEST_SLEEP_SECONDS))
    assert talk.told == ["Nothing was said to chorus for 9 h 6 m. Saved session 1: they spoke of hello."]


@pytest.mark.parametrize("hours", [-3, 3])
async def test_a_clock_that_is_set_delays_nothing(talk: Talk, hours: int) -> None:
    talk.say("hello")
    await talk.clock.pass_by(ONE_MINUTE)
    talk.clock.suspend(timedelta(hours=hours))
    await talk.clock.pass_by(HALF_AN_HOUR - ONE_MINUTE)
    assert len(talk.saved) == 1
