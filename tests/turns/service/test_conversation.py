"""One turn, from the message that is stored before anything else to the end of its reply."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chorus_cli.core.errors import MessageRefusedError, ModelError
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.models.rules.events import Asking, ModelEvent, Notice, ReasoningDelta, ReplyEnd, TextDelta, TurnDone
from chorus_cli.models.rules.request import ModelRequest
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.world import MODEL, World, built, words_come


async def test_a_turn_is_two_rows(world: World) -> None:
    world.model.enqueue(TextDelta("Hi "), TextDelta("there."), ReplyEnd("stop", {"prompt_tokens": 9}))
    done = await world.say("Hello")
    question, reply = await world.log()
    assert (question.role, question.content, question.status) == (Role.USER, "Hello", Status.COMPLETE)
    assert (reply.role, reply.content, reply.status) == (Role.ASSISTANT, "Hi there.", Status.COMPLETE)
    assert reply.turn_id == question.turn_id == question.id
    assert (reply.run, reply.model, reply.usage, reply.token_count) == ("this-run", MODEL, {"prompt_tokens": 9}, 2)
    assert (done.message_id, done.status, done.error) == (reply.id, Status.COMPLETE, None)


@dataclass
class ReadingModel(ScriptedModel):
    """A model that reads the messages in the database, as another program would, at the moment it is asked."""

    path: Path = Path()
    read: list[list[tuple[str, str]]] = field(default_factory=list)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        with closing(sqlite3.connect(self.path)) as other:
            self.read.append(other.execute("SELECT content, status FROM messages ORDER BY id").fetchall())
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


async def test_another_program_can_read_the_message_while_the_model_is_being_asked(world: World) -> None:
    hold = asyncio.Event()
    world.model.enqueue(hold, TextDelta("Yes."), ReplyEnd("stop"))
    saying = asyncio.create_task(world.say("Remember me"))
    async with asyncio.timeout(10):
        while not world.model.requests:  # noqa: ASYNC110 - it is another task that asks
            await asyncio.sleep(0)
    (path,) = world.folder.rglob("chorus.db")
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT content FROM messages ORDER BY id").fetchall() == [("Remember me",), ("",)]
    hold.set()
    assert (await saying).status is Status.COMPLETE


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
async def test_halves_of_a_character_are_stored_as_a_whole_one_or_replaced(
    world: World, pieces: tuple[str, ...], stored: str
) -> None:
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
        ((ModelError("Refused.", status_code=401),), Status.FAILED, "", "Refused."),
    ],
)
async def test_how_a_reply_can_end(
    world: World, script: tuple[TextDelta | ReplyEnd | ModelError, ...], status: Status, kept: str, sentence: str
) -> None:
    world.model.enqueue(*script)
    done = await world.say("Hello")
    reply = (await world.log())[-1]
    assert (done.status, reply.status, reply.content) == (status, status, kept)
    assert sentence in str(done.error)


async def test_a_busy_provider_is_tried_again_in_the_open(world: World) -> None:
    busy = ModelError("The provider is busy.", status_code=429, retryable=True, retry_after_seconds=5)
    world.model.enqueue(busy)
    world.model.enqueue(ModelError("Still busy.", retryable=True))
    world.model.say("At last.")
    assert await world.notices("Hello") == [
        "The provider is busy. Retrying in 5 s (1 of 2) …",
        "Still busy. Retrying in 3 s (2 of 2) …",
    ]
    assert world.clock.slept == [5, 3]
    assert (await world.log())[-1].content == "At last."


async def test_who_is_asked_is_said_at_each_attempt_once_the_message_is_stored(world: World) -> None:
    world.model.enqueue(ModelError("Busy.", retryable=True))
    world.model.enqueue(TextDelta("At last."), ReplyEnd("stop"))
    events = world.conversation.answer(world.current.target(), "Hello")
    assert await anext(events) == Asking(MODEL)
    assert [message.content for message in await world.log()] == ["Hello", ""]
    kinds = [type(event) async for event in events]
    assert kinds == [Notice, Asking, TextDelta, TurnDone]


async def test_after_two_retries_the_turn_fails(world: World) -> None:
    for _ in range(3):
        world.model.enqueue(ModelError("Busy.", retryable=True))
    done = await world.say("Hello")
    assert (done.status, str(done.error), len(world.model.requests)) == (Status.FAILED, "Busy.", 3)


@pytest.mark.parametrize(
    "script",
    [
        (TextDelta("Half"), ModelError("Cut.", retryable=True)),
        (ReasoningDelta("Hm"), ModelError("Cut.", retryable=True)),
        (ModelError("Come back tomorrow.", retryable=True, retry_after_seconds=3600),),
        (ModelError("Wrong key."),),
    ],
)
async def test_nothing_is_tried_again_once_something_arrived_or_nobody_would_wait(
    world: World, script: tuple[TextDelta | ModelError, ...]
) -> None:
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
        ("x" * 8_000_001, "The message has 8.0 MB"),
        ("word " * 9_000, "The message is too large for openai/test: it has ~9,000 tokens"),
    ],
)
async def test_a_message_that_cannot_be_sent_is_refused_before_it_is_stored(
    world: World, text: str, sentence: str
) -> None:
    with pytest.raises(MessageRefusedError, match=sentence):
        await world.say(text)
    assert await world.log() == []


async def test_text_that_is_no_text_is_mended_and_told(world: World) -> None:
    (notice,) = await world.notices("a\udcffb\x00c")
    assert notice == "Some characters of your message are not valid text and were replaced."
    assert (await world.log())[0].content == "a\ufffdb\u2400c"
