"""What is cleared from the context once it is saved, and what stays there."""

from __future__ import annotations

import asyncio

from chorus_cli.core.errors import StorageError
from chorus_cli.sessions.service.idle import IdleTimer
from tests.sessions.idle.silence import HALF_AN_HOUR, SilentTalk, Talk, message, settled


async def test_saving_alone_leaves_the_context(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.cleared == []


async def test_save_and_clear_clears_what_was_saved_and_says_how_to_undo_it(talk: Talk) -> None:
    talk.set(on_idle="save+clear")
    talk.say("hello", "goodbye")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.cleared == [("chorus", 2)]
    assert talk.told[0].endswith("of hello.\nThe context is cleared; /context undo brings it back.")


async def test_a_session_that_could_not_be_saved_is_not_cleared(talk: Talk) -> None:
    talk.set(on_idle="save+clear")
    talk.say("hello")
    talk.fails.append(StorageError("The disk is full."))
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.cleared == []


async def test_the_user_who_is_back_before_the_save_is_done_finds_the_context_as_it_was(talk: Talk) -> None:
    talk.set(on_idle="save+clear")
    talk.summary = asyncio.Event()
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    talk.say("I am back")
    talk.summary.set()
    await settled()
    assert (len(talk.saved), talk.cleared) == (1, [])
    assert "cleared" not in talk.told[0]


async def test_nothing_is_cleared_while_a_reply_streams(talk: Talk) -> None:
    talk.set(on_idle="save+clear")
    talk.summary = asyncio.Event()
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    with talk.timer.busy():
        talk.summary.set()
        await settled()
        assert (len(talk.saved), talk.cleared) == (1, [])


async def test_what_another_window_says_before_the_save_is_done_is_not_cleared_either(talk: Talk) -> None:
    talk.set(on_idle="save+clear")
    talk.summary = asyncio.Event()
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    talk.log["chorus"].append(message(2, "from another Chorus"))
    talk.summary.set()
    await settled()
    assert (len(talk.saved), talk.cleared) == (1, [])
    assert "cleared" not in talk.told[0]


async def test_a_context_that_cannot_be_cleared_is_told_beside_the_session(talk: Talk) -> None:
    talk.set(on_idle="save+clear")
    talk.say("hello")

    class FullDisk(SilentTalk):
        async def save(self, _slug: str, _description: str) -> str:
            talk.fails.append(StorageError("The disk is full."))
            return "Saved."

    await talk.timer.close()
    talk.timer = IdleTimer(talk.clock, FullDisk(talk), lambda: "chorus", talk.told.append, talk._report_bug)
    talk.timer.arm()
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.told == [
        "Nothing was said to chorus for 30 m. Saved.\nThe context could not be cleared: The disk is full."
    ]
