"""What is kept of a silence, how often, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from chorus_cli.core.errors import ChorusError, PersonaError, StorageError
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.sessions.service.idle import IdleActions, IdleTimer, described
from tests.sessions.idle.silence import A_SECOND, ALMOST, HALF_AN_HOUR, Talk, message, settled, watches
from tests.world import World


async def test_idle_timer_auto_save_creates_session(talk: Talk) -> None:
    talk.say("\n  let us  refactor\nthe login", "and then the rest")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.saved == [("chorus", "let us refactor")]


async def test_idle_timer_posts_summary_to_channel(talk: Talk) -> None:
    talk.set(name="Chorus the Great")
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.told == [
        "Nothing was said to Chorus the Great for 30 m. Saved session 1: they spoke of hello.",
    ]


async def test_idle_timer_no_trigger_when_context_empty(talk: Talk) -> None:
    talk.timer.arm()
    await talk.clock.pass_by(3 * HALF_AN_HOUR)
    assert (talk.saved, talk.told) == ([], [])


async def test_a_silence_is_kept_once_however_long_it_lasts(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(timedelta(days=2))
    assert len(talk.saved) == len(talk.told) == 1


async def test_a_second_silence_after_more_talk_is_kept_too(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    talk.say("once more")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.saved == [("chorus", "hello"), ("chorus", "once more")]


async def test_a_second_silence_without_talk_between_keeps_nothing_twice(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    talk.timer.arm()
    await talk.clock.pass_by(2 * HALF_AN_HOUR)
    assert len(talk.saved) == len(talk.told) == 1


async def test_a_restart_keeps_nothing_twice_but_keeps_what_was_left(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    await talk.timer.close()
    talk.timer = talk.restarted()
    talk.timer.arm()
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.saved == [("chorus", "hello")]

    talk.say("once more")
    await talk.timer.close()
    talk.timer = talk.restarted()
    talk.timer.arm()
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.saved == [("chorus", "hello"), ("chorus", "once more")]


async def test_off_keeps_nothing(talk: Talk) -> None:
    talk.set(on_idle="off")
    talk.say("hello")
    await talk.clock.pass_by(timedelta(hours=9))
    assert (talk.saved, talk.told) == ([], [])


async def test_a_save_that_a_message_comes_into_is_finished_and_the_next_silence_kept(talk: Talk) -> None:
    talk.summary = asyncio.Event()
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    talk.say("I am back")
    talk.summary.set()
    await talk.clock.pass_by(ALMOST)
    assert talk.saved == [("chorus", "hello")]
    await talk.clock.pass_by(A_SECOND)
    assert talk.saved == [("chorus", "hello"), ("chorus", "I am back")]


async def test_what_was_saved_is_told_only_when_nothing_streams(talk: Talk) -> None:
    talk.summary = asyncio.Event()
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    with talk.timer.busy():
        talk.summary.set()
        await settled()
        assert (len(talk.saved), talk.told) == (1, [])
    await settled()
    assert len(talk.told) == 1


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (
            StorageError("The disk is full."),
            "The talk with chorus could not be saved after a while of silence: The disk is full.",
        ),
        (ValueError("oops"), "That is a bug."),
    ],
)
async def test_a_failure_is_told_once_and_ends_nothing(talk: Talk, failure: Exception, told: str) -> None:
    talk.say("hello")
    talk.fails.append(failure)
    await talk.clock.pass_by(5 * HALF_AN_HOUR)
    assert (talk.saved, talk.told) == ([], [told])
    assert talk.bugs == ([] if isinstance(failure, ChorusError) else [failure])
    talk.say("once more")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.saved == [("chorus", "hello")]


async def test_a_log_that_cannot_be_asked_is_told_once_too(talk: Talk) -> None:
    async def fail(_slug: str) -> datetime | None:
        raise StorageError("The disk is gone.")

    actions = replace(talk.timer._actions, last_spoken=fail)
    await talk.timer.close()
    talk.timer = IdleTimer(talk.clock, actions, lambda: "chorus", talk.told.append, talk._report_bug)
    talk.say("hello")
    await talk.clock.pass_by(2 * HALF_AN_HOUR)
    assert talk.told == ["The talk with chorus could not be saved after a while of silence: The disk is gone."]


async def test_a_terminal_that_is_gone_when_something_is_to_be_told_ends_nothing(talk: Talk) -> None:
    def gone(_line: str) -> None:
        raise BrokenPipeError

    await talk.timer.close()
    talk.timer = IdleTimer(talk.clock, talk.timer._actions, lambda: "chorus", gone, talk._report_bug)
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    talk.say("once more")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert len(talk.saved) == 2


async def test_a_persona_put_away_meanwhile_is_left_alone_without_a_word(talk: Talk) -> None:
    talk.say("hello")
    del talk.personas["chorus"]
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert (talk.saved, talk.told) == ([], [])


def kept_by(world: World, told: list[str]) -> IdleTimer:
    """Make a timer that saves real sessions of the persona in focus."""
    saving = world.sessions.saving

    async def persona(slug: str) -> Persona:
        return world.personas.load(slug)

    async def unsaved(_slug: str) -> Sequence[Message]:
        return await saving.unsaved(world.current.target())

    async def save(_slug: str, description: str) -> str | None:
        saved = await saving.save_idle(world.current.target(), description)
        return f"{saved.row.session_id}, {saved.row.message_count} messages." if saved else None

    async def no_other_window(_slug: str) -> datetime | None:
        return None

    async def never(_slug: str, _message_id: int) -> bool:
        return False

    actions = IdleActions(persona, no_other_window, unsaved, save, never)
    return IdleTimer(world.clock, actions, lambda: world.current.slug, told.append, str)


async def over() -> None:
    """Wait until every silence has been seen to."""
    for _ in range(5000):
        if not watches():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("a silence lasts on")


async def test_a_second_silence_rewrites_the_session_of_the_first_and_a_restart_nothing(world: World) -> None:
    # The world's clock passes by itself whenever somebody sleeps, so each silence is over at once.
    told: list[str] = []
    timer = kept_by(world, told)
    await world.say("let us talk")
    timer.arm()
    await over()
    assert told == ["Nothing was said to chorus for 30 m. 2026-02-12_let-us-talk, 2 messages."]
    await world.say("of something else")
    timer.arm()
    await over()
    assert told[1].endswith(" 2026-02-12_let-us-talk, 4 messages.")
    timer = kept_by(world, told)
    timer.arm()
    await over()
    assert len(told) == 2
    assert [row.session_id for row in (await world.sessions.listing("chorus")).rows] == ["2026-02-12_let-us-talk"]


async def test_of_a_session_saved_by_itself_the_user_reads_one_line_without_the_summary(world: World) -> None:
    told: list[str] = []
    await world.say("let us talk")
    world.model.say("One point of many.\n" * 20)
    with world.services.notifier.heard_by(told.append, told.append):
        world.services.idle_timer.arm()
        await over()
    (line,) = told
    assert line == (
        "Nothing was said to chorus for 30 m. "
        "Saved session 2026-02-12_let-us-talk: 2 messages. /context history lists it."
    )
    assert (await world.sessions.listing("chorus")).rows[0].summary.count("One point of many.") == 20


@pytest.mark.parametrize(
    ("said", "description"),
    [
        ([(Role.USER, "  hello   there \nsecond line")], "hello there"),
        ([(Role.USER, "\n\r\n \t\nfirst words")], "first words"),
        ([(Role.USER, "x" * 80)], "x" * 80),
        ([(Role.USER, "x" * 81)], "x" * 79 + "…"),
        ([(Role.ASSISTANT, "an answer"), (Role.USER, "a question")], "a question"),
        ([(Role.ASSISTANT, "the end of an answer")], "the end of an answer"),
        ([(Role.USER, " \n ")], ""),
        ([], ""),
    ],
)
def test_a_session_is_described_by_the_first_line_that_the_user_says(
    said: list[tuple[Role, str]], description: str
) -> None:
    messages = [message(position, content, role, datetime.now(UTC)) for position, (role, content) in enumerate(said)]
    assert described(messages) == description


async def test_settings_that_cannot_be_read_are_told_of_once_and_not_while_the_user_is_at_work(talk: Talk) -> None:
    async def fail(_slug: str) -> Persona:
        raise PersonaError("The folder cannot be read.")

    actions = replace(talk.timer._actions, persona=fail)
    await talk.timer.close()
    talk.timer = IdleTimer(talk.clock, actions, lambda: "chorus", talk.told.append, talk._report_bug)
    for _ in range(3):
        talk.say("hello")
        await talk.clock.pass_by(A_SECOND)
    assert talk.told == []
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.told == ["The talk with chorus could not be saved after a while of silence: The folder cannot be read."]
