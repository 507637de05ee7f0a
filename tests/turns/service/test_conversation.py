"""One turn, from the message that is stored before anything else to the end of its reply, or to its retry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.rules.plan import BROKEN_OFF, LEAD
from chorus_cli.context.service.report import context_report
from chorus_cli.core.errors import MessageRefusedError, ModelError
from chorus_cli.log.rows import interrupted_replies, message_rows, operation_rows
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.models.rules.events import (
    ARRIVED,
    Asking,
    ModelEvent,
    Notice,
    ReasoningDelta,
    ReplyEnd,
    TextDelta,
    TurnDone,
)
from chorus_cli.models.rules.request import ModelRequest
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store
from tests.fakes import START, FakeClock, ScriptedModel
from tests.storage.database import sql
from tests.world import MODEL, World, built, of_run, words_come


async def test_a_turn_is_two_rows(world: World) -> None:
    world.model.enqueue(TextDelta("Hi "), TextDelta("there."), ReplyEnd("stop", {"prompt_tokens": 9}))
    done = await world.say("Hello")
    question, reply = await world.log()
    assert (question.role, question.content, question.status) == (Role.USER, "Hello", Status.COMPLETE)
    assert (reply.role, reply.content, reply.status) == (Role.ASSISTANT, "Hi there.", Status.COMPLETE)
    assert reply.turn_id == question.turn_id == question.id
    assert (reply.run, reply.model, reply.usage, reply.token_count) == ("this-run", MODEL, {"prompt_tokens": 9}, 2)
    assert (done.message_id, done.status, done.error) == (reply.id, Status.COMPLETE, None)


Script = tuple[ModelEvent | ModelError, ...]


@dataclass
class ReadingModel(ScriptedModel):
    """A model that reads the messages in the database, as another program would, at the moment it is asked."""

    path: Path = Path()
    read: list[list[tuple[str, str]]] = field(default_factory=list)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.read.append(sql(self.path, "SELECT content, status FROM messages ORDER BY id"))
        return super().stream(request)


async def test_the_message_is_stored_before_the_model_is_asked(tmp_path: Path, store: Store, clock: FakeClock) -> None:
    model = ReadingModel(path=tmp_path / "chorus.db")
    world = await built(tmp_path, store, clock, model, limit_tokens=10_000)
    model.enqueue(ModelError("The line is dead."))
    done = await world.say("Remember me")
    assert model.read == [[("Remember me", "complete"), ("", "streaming")]]
    question, reply = await world.log()
    assert question.content == "Remember me"
    assert (reply.status, reply.content) == (Status.FAILED, "")
    assert str(done.error) == "The line is dead."


async def test_what_a_terminal_would_obey_is_stored_and_sent_as_it_came(world: World) -> None:
    typed, replied = "\x1b[2J\x9b31m\u202etxet\u200b", "\x1b]52;c;ZWNobw==\x07\u2066x\u00ad"
    world.model.say(replied)
    await world.say(typed)
    assert [message.content for message in await world.log()] == [typed, replied]
    await world.say("Again")
    assert world.asked()[:2] == [("user", typed), ("assistant", replied)]


@pytest.mark.parametrize(
    ("pieces", "stored"),
    [(("\ud83d", "\ude00"), "\U0001f600"), (("a", "\ud83d"), "a\ufffd"), (("\ude00", "b"), "\ufffdb")],
)
async def test_halves_of_a_character_are_joined_or_replaced(world: World, pieces: tuple[str, ...], stored: str) -> None:
    world.model.enqueue(*map(TextDelta, pieces), ReplyEnd("stop"))
    assert (await world.say("Hello")).status is Status.COMPLETE
    assert (await world.log())[-1].content == stored


@pytest.mark.parametrize(
    ("script", "status", "kept", "sentence"),
    [
        ((TextDelta("Half"), ModelError("Cut.")), Status.TRUNCATED, "Half", "Cut."),
        ((TextDelta("Half"),), Status.TRUNCATED, "Half", "the connection was cut"),
        ((ReasoningDelta("Let me"),), Status.FAILED, "", "the connection was cut"),
        ((TextDelta("Half"), ReplyEnd(None)), Status.TRUNCATED, "Half", "the connection was cut"),
        ((TextDelta("Half"), ReplyEnd("length")), Status.TRUNCATED, "Half", "output limit"),
        ((TextDelta("Half"), ReplyEnd("content_filter")), Status.TRUNCATED, "Half", "content filter"),
        ((ReplyEnd("content_filter"),), Status.FAILED, "", "content filter"),
        ((ReasoningDelta("Hm."), ReplyEnd("length")), Status.FAILED, "", "output limit"),
        ((ReplyEnd("stop"),), Status.FAILED, "", "an empty reply"),
        ((TextDelta("  \n"), ReplyEnd("stop")), Status.FAILED, "  \n", "an empty reply"),
        ((ReasoningDelta("Hm."), ReplyEnd("stop")), Status.FAILED, "", "an empty reply"),
        ((), Status.FAILED, "", "no reply"),
        ((ModelError("Refused."),), Status.FAILED, "", "Refused."),
    ],
)
async def test_how_a_reply_can_end(world: World, script: Script, status: Status, kept: str, sentence: str) -> None:
    world.model.enqueue(*script)
    done = await world.say("Hello")
    reply = (await world.log())[-1]
    assert (done.status, reply.status, reply.content) == (status, status, kept)
    assert sentence in str(done.error)


async def test_a_busy_provider_is_tried_again_in_the_open(world: World) -> None:
    busy = ModelError("The provider is busy.", retryable=True, retry_after_seconds=5)
    world.model.enqueue(busy)
    world.model.enqueue(ModelError("Still busy.", retryable=True))
    world.model.say("At last.")
    assert await world.notices("Hello") == [
        "The provider is busy. Retrying in 5 s (1 of 2) …",
        "Still busy. Retrying in 3 s (2 of 2) …",
    ]
    assert world.clock.slept == [5, 3]
    assert (await world.log())[-1].content == "At last."


async def test_attempts_that_failed_and_their_pauses_are_no_thinking(world: World) -> None:
    world.model.enqueue(ModelError("Busy.", retryable=True, retry_after_seconds=30))
    world.model.enqueue(ReasoningDelta("Hm"), TextDelta("At last."), ReplyEnd("stop"))
    await world.say("Hello")
    thought = (await world.log())[-1].thought
    assert thought is not None
    assert thought.seconds == 0


async def test_who_is_asked_is_said_at_each_attempt_once_the_message_is_stored(world: World) -> None:
    world.model.enqueue(ModelError("Busy.", retryable=True))
    world.model.enqueue(TextDelta("At last."), ReplyEnd("stop"))
    events = world.conversation.answer(world.current.target(), "Hello")
    assert await anext(events) == Asking(MODEL)
    assert [message.content for message in await world.log()] == ["Hello", ""]
    kinds = [type(event) async for event in events]
    assert kinds == [Notice, Asking, TextDelta, TurnDone]


@pytest.mark.parametrize(
    "script",
    [
        (TextDelta("Half"), ModelError("Cut.", retryable=True)),
        (ReasoningDelta("Hm"), ModelError("Cut.", retryable=True)),
        (ModelError("Come back tomorrow.", retryable=True, retry_after_seconds=3600),),
        (ModelError("Wrong key."),),
    ],
)
async def test_nothing_is_tried_again_once_something_arrived(world: World, script: Script) -> None:
    world.model.enqueue(*script)
    await world.say("Hello")
    assert len(world.model.requests) == 1


async def test_a_reply_still_streaming_when_the_context_is_cleared_stays_out_with_its_question(world: World) -> None:
    hold = asyncio.Event()
    world.model.enqueue(TextDelta("Late"), hold, TextDelta(" reply"), ReplyEnd("stop"))
    async with aclosing(world.conversation.answer(world.current.target(), "Old question")) as events:
        await words_come(events)
        await world.journal.clear(world.current.target())
        hold.set()
        _ = [event async for event in events]
    assert await world.seen() == []
    await world.say("New question")
    assert world.asked() == [("user", "New question")]
    assert [message.content for message in await world.log()][:2] == ["Old question", "Late reply"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The message is empty"),
        (" \n\t ", "The message is empty"),
        ("x" * 8_000_001, "The message is 8.0 MB"),
        ("word " * 9_000, "The message is too large for openai/test: it has ~9,000 tokens"),
    ],
)
async def test_a_message_that_cannot_be_sent_is_not_stored(world: World, text: str, sentence: str) -> None:
    with pytest.raises(MessageRefusedError, match=sentence):
        await world.say(text)
    assert await world.log() == []


async def test_text_that_is_no_text_is_mended_and_told(world: World) -> None:
    (notice,) = await world.notices("a\udcffb\x00c")
    assert notice == "Chorus replaced some characters of your message that are not valid text."
    assert (await world.log())[0].content == "a\ufffdb\u2400c"


DOWN = ModelError("It is down.")
CUT = ModelError("Cut.", advice=f"{ARRIVED} Wait.")


async def retry(world: World) -> None:
    async for _ in world.conversation.retry(world.current.target()):
        pass


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
        assert world.asked() == [("user", "Hello")]
    await world.say("And then?")
    assert world.asked() == [("user", "Hello"), ("assistant", "ok"), ("user", "And then?")]


@pytest.mark.parametrize(
    ("scripts", "texts", "asked"),
    [
        ([(DOWN,)], ["Hello", "Hello\n"], ["Hello\n"]),
        ([(DOWN,)] * 3, ["Hello", "Hello", "Hello", "Hello\n"], ["Hello\n"]),
        ([(DOWN,), (DOWN,)], ["Hello", "Hello\n", "Hello", "Next"], ["Hello", "ok", "Next"]),
        ([(DOWN,)], ["Hello", "And one thing more"], ["Hello", "And one thing more"]),
        ([], ["Hello", "Hello"], ["Hello", "ok", "Hello"]),
        ([(TextDelta("Half"), DOWN)], ["Hello", "Hello"], ["Hello", f"Half\n{BROKEN_OFF}", "Hello"]),
    ],
)
async def test_only_a_message_that_failed_wordless_and_is_typed_again_is_sent_once(
    world: World, scripts: list[Script], texts: list[str], asked: list[str]
) -> None:
    for script in scripts:
        world.model.enqueue(*script)
    for text in texts:
        await world.say(text)
    assert [content for _, content in world.asked()] == asked


async def test_what_was_said_again_is_counted_as_left_out(world: World) -> None:
    world.model.enqueue(DOWN)
    await world.say("Hello")
    await world.say("Hello")
    report = await context_report(world.context, world.current.target(), world.clock.now())
    assert [(omission.reason, omission.messages) for omission in report.omissions] == [
        ("not answered, and sent again", 1)
    ]


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
    notice = 'The reply to "Tell me about the ring" was interrupted; {}.'
    assert await world.current.notices() == (notice.format("/continue goes on"),)

    def change(connection: Connection, *values: str) -> None:
        connection.execute("UPDATE messages SET model = ?, content = ? WHERE role = 'assistant'", values)

    for changed in ((ELIZA, "ok"), (MODEL, "")):
        await world.store.write(change, *changed)
        assert await world.current.notices() == (notice.format("/retry asks again"),)
    await retry(world)
    assert await world.current.notices() == ()


@pytest.mark.parametrize("command", ["/undo", "/new"])
async def test_a_reply_that_left_the_context_is_not_named_as_interrupted(world: World, command: str) -> None:
    world = await killed_while_answering(world, "Tell me about the ring")
    await world.carry_out(command)
    assert await world.current.notices() == ()


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
    [(stored, *parts)] = await world.store.read(
        lambda connection: connection.execute(
            "SELECT checksum, role, thread_id, persona, timestamp, content FROM messages WHERE role = 'assistant'"
        ).fetchall()
    )
    assert stored == message_rows.checksum(*parts)


async def test_after_two_retries_the_turn_fails_and_its_reply_has_the_time_of_its_end(world: World) -> None:
    for _ in range(3):
        world.model.enqueue(ModelError("Busy.", retryable=True))
    done = await world.say("Hello")
    assert (done.status, str(done.error), len(world.model.requests)) == (Status.FAILED, "Busy.", 3)
    _, reply = await world.log()
    assert reply.timestamp == world.clock.now() > START


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
