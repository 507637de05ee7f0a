"""A provider that fails before the first word: /retry is advised and works, and nothing is sent twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.core.errors import ModelError
from chorus_cli.log.rows import interrupted_replies
from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.events import ARRIVED, ModelEvent, TextDelta, TurnDone
from tests.world import World, of_run, words_come

DOWN = ModelError("It is down.", status_code=400)
CUT = ModelError("Cut.", advice=f"{ARRIVED} Wait.")
FAILED = [("user", "Hello")]


async def retry(world: World) -> None:
    async for _ in world.conversation.retry(world.current.target()):
        pass


async def test_a_failure_without_a_word_advises_retry(world: World) -> None:
    world.model.enqueue(DOWN)
    assert (await world.say("Hello")).complaint == "It is down. Your message is kept; /retry asks again."


@pytest.mark.parametrize(
    ("done", "complaint"),
    [
        (TurnDone(1, Status.TRUNCATED, error=DOWN), "It is down."),
        (TurnDone(1, Status.FAILED, error=DOWN), "It is down. Your message is kept; /retry asks again."),
        (TurnDone(1, Status.TRUNCATED, error=CUT), "Cut. The part that arrived is kept; /retry asks again. Wait."),
        (TurnDone(1, Status.FAILED, error=CUT), "Cut. Wait. Your message is kept; /retry asks again."),
        (TurnDone(1, Status.TRUNCATED, error=CUT, again=""), "Cut. Wait."),
    ],
)
def test_only_a_reply_that_broke_off_is_to_be_asked_for_again(done: TurnDone, complaint: str) -> None:
    assert done.complaint == complaint


async def test_retry_after_failures_sends_the_message_once(world: World) -> None:
    for _ in range(2):
        world.model.enqueue(DOWN)
    await world.say("Hello")
    for _ in range(2):
        await retry(world)
        assert world.asked() == FAILED
    await world.say("And then?")
    assert world.asked() == [("user", "Hello"), ("assistant", "ok"), ("user", "And then?")]


@pytest.mark.parametrize("times", [1, 3])
async def test_a_failed_message_that_is_typed_again_is_sent_once(world: World, times: int) -> None:
    for _ in range(times):
        world.model.enqueue(DOWN)
        await world.say("Hello")
    await world.say("Hello\n")
    assert world.asked() == [("user", "Hello\n")]
    await world.say("Next")
    assert world.asked() == [("user", "Hello\n"), ("assistant", "ok"), ("user", "Next")]


async def test_another_message_after_a_failed_one_is_sent_with_it(world: World) -> None:
    world.model.enqueue(DOWN)
    await world.say("Hello")
    await world.say("And one thing more")
    assert world.asked() == [("user", "Hello"), ("user", "And one thing more")]


@pytest.mark.parametrize("events", [(), (TextDelta("Half"), DOWN)], ids=["answered", "cut"])
async def test_what_was_answered_is_sent_twice_if_it_was_said_twice(
    world: World, events: tuple[ModelEvent | ModelError, ...]
) -> None:
    if events:
        world.model.enqueue(*events)
    await world.say("Hello")
    await world.say("Hello")
    assert [role for role, _ in world.asked()] == ["user", "assistant", "user"]


async def test_what_was_said_again_is_counted_as_left_out(world: World) -> None:
    world.model.enqueue(DOWN)
    await world.say("Hello")
    await world.say("Hello")
    report = await context_report(world.context, world.current.target(), world.clock.now())
    assert [(omission.reason, omission.messages) for omission in report.omissions] == [("failed, and said again", 1)]


async def killed_while_answering(world: World, text: str) -> World:
    """Send a message from a process that is killed in the middle of the reply, and return the next start."""
    turn = of_run(world.conversation, "dead").answer(world.current.target(), text)
    await words_come(turn)
    await world.store.write(interrupted_replies.mark_interrupted, lambda run: run != "dead", world.clock.now())
    await turn.aclose()
    world.clock.advance(timedelta(minutes=1))
    next_run = replace(of_run(world.conversation, "next"), began_at=world.clock.now())
    return replace(world, services=replace(world.services, conversation=next_run))


async def test_the_next_start_names_the_question_whose_reply_was_interrupted(world: World) -> None:
    world = await killed_while_answering(world, "Tell me about the ring")
    notice = 'The reply to "Tell me about the ring" was interrupted; /retry asks again.'
    assert await world.current.notices() == (notice,)
    await retry(world)
    assert await world.current.notices() == ()


@pytest.mark.parametrize("command", ["/undo", "/new"])
async def test_a_reply_that_left_the_context_is_not_named_as_interrupted(world: World, command: str) -> None:
    world = await killed_while_answering(world, "Tell me about the ring")
    await world.carry_out(command)
    assert await world.current.notices() == ()
