"""One turn, from the message that is stored before anything else to the reply that is never lost."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import aclosing, closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.assembly import BROKEN_OFF
from chorus_cli.core.errors import MessageRefusedError, ModelError, StorageError
from chorus_cli.core.events import Asking, Notice, ReasoningDelta, ReplyEnd, TextDelta, TurnDone
from chorus_cli.core.messages import Role, Status
from chorus_cli.storage import message_log
from tests.fakes import WordCounter
from tests.services.world import MODEL, built, words_come

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.database import Store
    from tests.fakes import FakeClock, ScriptedModel
    from tests.services.world import World


async def test_a_turn_is_two_rows(world: World) -> None:
    world.model.enqueue(TextDelta("Hi "), TextDelta("there."), ReplyEnd("stop", {"prompt_tokens": 9}))
    done = await world.say("Hello")
    question, reply = await world.log()
    assert (question.role, question.content, question.status) == (Role.USER, "Hello", Status.COMPLETE)
    assert (reply.role, reply.content, reply.status) == (Role.ASSISTANT, "Hi there.", Status.COMPLETE)
    assert reply.turn_id == question.turn_id == question.id
    assert (reply.run, reply.model, reply.usage, reply.token_count) == ("this-run", MODEL, {"prompt_tokens": 9}, 2)
    assert (done.message_id, done.status, done.error) == (reply.id, Status.COMPLETE, None)


async def test_the_message_is_stored_before_the_model_is_asked(world: World) -> None:
    world.model.enqueue(ModelError("The line is dead."))
    done = await world.say("Remember me")
    question, reply = await world.log()
    assert question.content == "Remember me"
    assert (reply.status, reply.content) == (Status.FAILED, "")
    assert str(done.error) == "The line is dead."


async def test_context_includes_system_prompt(world: World) -> None:
    world.configure('{"system_prompt": "You are a lighthouse."}')
    await world.say("Hello")
    assert world.model.requests[0].messages[0].content == "You are a lighthouse."


async def test_context_includes_agent_docs(world: World) -> None:
    docs = world.personas.settings_path("chorus").parent / "docs"
    docs.mkdir()
    (docs / "b.md").write_text("Second.", encoding="utf-8")
    (docs / "a.md").write_text("First.", encoding="utf-8")
    (docs / "blank.md").write_text(" \n", encoding="utf-8")
    await world.say("Hello")
    system = world.model.requests[0].messages[0].content
    assert system.endswith("# a.md\n\nFirst.\n\n# b.md\n\nSecond.")


class CuriousCounter(WordCounter):
    """Remembers what it was asked to count."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    def count(self, text: str) -> int:
        self.counted.append(text)
        return super().count(text)


async def test_documents_are_counted_again_only_when_they_change(world: World) -> None:
    docs = world.personas.settings_path("chorus").parent / "docs"
    docs.mkdir()
    counter = CuriousCounter()
    context = replace(world.context, counter=counter)
    sizes = []
    for text in ("One two.", "One two.", "One two three.", "One two three."):
        (docs / "a.md").write_text(text, encoding="utf-8")
        sizes.append((await context.foundation(world.focus.place().persona)).document_tokens)
    assert sizes == [4, 4, 5, 5]
    assert len([text for text in counter.counted if "One two" in text]) == 2


async def test_context_includes_rolling_window_messages(world: World) -> None:
    world.model.say("One.")
    await world.say("First")
    world.clock.advance(timedelta(minutes=5))
    await world.say("Second")
    assert world.asked() == [("user", "First"), ("assistant", "One."), ("user", "Second")]


async def test_what_is_older_than_the_window_is_not_sent_but_kept(world: World) -> None:
    await world.say("Old")
    world.clock.advance(timedelta(hours=9))
    await world.say("New")
    assert world.asked() == [("user", "New")]
    assert [message.content for message in await world.log()] == ["Old", "ok", "New", "ok"]


async def test_a_preamble_is_stored_and_sent_again_word_for_word(world: World) -> None:
    await world.say("First")
    world.clock.advance(timedelta(hours=2))
    await world.say("Second")
    told = world.asked()[-1]
    world.clock.advance(timedelta(minutes=1))
    await world.say("Third")
    assert world.asked()[2] == told
    assert world.model.requests[2].messages[: len(world.model.requests[1].messages)] == world.model.requests[1].messages


async def test_the_user_sees_the_pause_that_the_model_is_told_of(world: World) -> None:
    assert await world.notices("First") == []
    world.clock.advance(timedelta(hours=7, minutes=12))
    (notice,) = await world.notices("Second")
    assert notice == f"7 h 12 m later, {world.clock.now():%a %H:%M}"
    world.clock.advance(timedelta(minutes=59))
    assert await world.notices("Third") == []


async def test_the_clock_can_be_kept_from_the_model(world: World) -> None:
    world.configure('{"clock": false}')
    await world.say("First")
    world.clock.advance(timedelta(hours=2))
    await world.say("Second")
    assert world.asked()[-1] == ("user", "Second")


async def test_sampling_settings_are_sent_only_when_they_are_set(world: World) -> None:
    await world.say("Hello")
    world.configure('{"temperature": 0.5, "max_output_tokens": 100}')
    await world.say("Hello")
    before, after = world.model.requests
    assert (before.temperature, before.max_output_tokens) == (None, None)
    assert (after.temperature, after.max_output_tokens) == (0.5, 100)


@pytest.mark.parametrize(
    ("script", "status", "kept", "sentence"),
    [
        ((TextDelta("Half"), ModelError("Cut.")), Status.TRUNCATED, "Half", "Cut."),
        ((TextDelta("Half"),), Status.TRUNCATED, "Half", "the connection was cut"),
        ((TextDelta("Half"), ReplyEnd(None)), Status.TRUNCATED, "Half", "the connection was cut"),
        ((TextDelta("Half"), ReplyEnd("length")), Status.TRUNCATED, "Half", "output limit"),
        ((TextDelta("Half"), ReplyEnd("content_filter")), Status.TRUNCATED, "Half", "content filter"),
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


async def test_a_broken_reply_is_sent_with_a_mark_and_an_empty_one_not_at_all(world: World) -> None:
    world.model.enqueue(TextDelta("Half"))
    await world.say("First")
    world.model.enqueue(ModelError("Down."))
    await world.say("Second")
    await world.say("Third")
    assert world.asked() == [
        ("user", "First"),
        ("assistant", f"Half\n{BROKEN_OFF}"),
        ("user", "Second"),
        ("user", "Third"),
    ]


async def test_a_busy_provider_is_tried_again_in_the_open(world: World) -> None:
    busy = ModelError("The provider is busy.", status_code=429, retryable=True, retry_after_seconds=5)
    world.model.enqueue(busy)
    world.model.enqueue(ModelError("Still busy.", retryable=True))
    world.model.say("At last.")
    assert await world.notices("Hello") == [
        "The provider is busy. Trying again in 5 s (1 of 2).",
        "Still busy. Trying again in 3 s (2 of 2).",
    ]
    assert world.clock.slept == [5, 3]
    assert (await world.log())[-1].content == "At last."


async def test_who_is_asked_is_said_at_each_attempt_once_the_message_is_stored(world: World) -> None:
    world.model.enqueue(ModelError("Busy.", retryable=True))
    world.model.enqueue(TextDelta("At last."), ReplyEnd("stop"))
    events = world.conversation.answer(world.focus.place(), "Hello")
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


async def test_stopping_a_reply_keeps_what_has_arrived(world: World) -> None:
    world.model.enqueue(TextDelta("Half"), asyncio.Event())
    arrived = asyncio.Event()

    async def listen() -> None:
        async with aclosing(world.conversation.answer(world.focus.place(), "Hello")) as events:
            await words_come(events)
            arrived.set()
            await words_come(events)

    turn = asyncio.create_task(listen())
    await arrived.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    reply = (await world.log())[-1]
    assert (reply.content, reply.status) == ("Half", Status.INTERRUPTED)


async def test_a_listener_that_goes_away_keeps_what_has_arrived(world: World) -> None:
    world.model.enqueue(TextDelta("Half"), TextDelta("Rest"), ReplyEnd("stop"))
    async with aclosing(world.conversation.answer(world.focus.place(), "Hello")) as events:
        await words_come(events)
    reply = (await world.log())[-1]
    assert (reply.content, reply.status) == ("Half", Status.INTERRUPTED)


async def test_a_reply_is_checkpointed_while_it_streams(world: World) -> None:
    hold = asyncio.Event()
    world.model.enqueue(TextDelta("One "), TextDelta("two "), hold, TextDelta("three"), ReplyEnd("stop"))
    async with aclosing(world.conversation.answer(world.focus.place(), "Hello")) as events:
        await words_come(events)
        world.clock.advance(timedelta(seconds=0.6))
        await words_come(events)
        half = await world.log_row_with_content(-1)
        assert (half.content, half.status, half.run) == ("One two ", Status.STREAMING, "this-run")
        hold.set()
        _ = [event async for event in events]
    assert (await world.log())[-1].content == "One two three"


async def test_a_reply_still_streaming_when_the_context_is_cleared_stays_out_with_its_question(world: World) -> None:
    hold = asyncio.Event()
    world.model.enqueue(TextDelta("Late"), hold, TextDelta(" reply"), ReplyEnd("stop"))
    async with aclosing(world.conversation.answer(world.focus.place(), "Old question")) as events:
        await words_come(events)
        await world.journal.clear(world.focus.place())
        hold.set()
        _ = [event async for event in events]
    assert await world.seen() == []
    await world.say("New question")
    assert world.asked() == [("user", "New question")]
    assert [message.content for message in await world.log()][:2] == ["Old question", "Late reply"]


async def test_the_oldest_turns_stay_out_when_the_request_would_be_too_large(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel
) -> None:
    world = await built(tmp_path, store, clock, model, limit_tokens=200)
    world.configure('{"system_prompt": "Short.", "summary_model": "chorus/eliza"}')
    for number in ("first", "second", "third"):
        model.say("a " * 25)
        await world.say(f"{number} " + "q " * 25)
    (notice,) = await world.notices("fourth")
    assert notice.startswith("The oldest 2 messages in the window did not fit openai/test")
    assert world.asked()[0][1].startswith("second")
    assert await world.notices("fifth") == []
    assert len(await world.log()) == 10


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


async def test_a_message_that_cannot_be_stored_is_rescued_and_not_sent(world: World, tmp_path: Path) -> None:
    await world.store.write(lambda connection: connection.execute("PRAGMA query_only = ON") and None)
    with pytest.raises(StorageError, match=r"The text is kept in .*rescue\.jsonl"):
        await world.say("Precious words")
    assert [record["content"] for record in world.rescued] == ["Precious words"]
    assert world.model.requests == []
    with sqlite3.connect(tmp_path / "chorus.db") as other:
        assert other.execute("SELECT COUNT(*) FROM messages").fetchone() == (0,)
    other.close()


async def test_a_reply_that_cannot_be_stored_is_rescued(world: World) -> None:
    hold = asyncio.Event()
    world.model.enqueue(TextDelta("Precious reply"), hold, ReplyEnd("stop"))
    async with aclosing(world.conversation.answer(world.focus.place(), "Hello")) as events:
        await words_come(events)
        await world.store.read(lambda connection: connection.execute("PRAGMA query_only = ON") and None)
        hold.set()
        with pytest.raises(StorageError, match="The text is kept in"):
            await anext(events)
    assert [record["content"] for record in world.rescued] == ["Precious reply"]


async def test_rows_put_in_by_hand_are_counted_once(world: World) -> None:
    world.model.say("fine")
    await world.store.write(
        lambda connection: (
            connection.execute(
                "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
                "VALUES ('chorus', 1, 'user', 'three little words', '2026-02-12T14:00:00.000000Z')"
            )
            and None
        )
    )
    await world.say("Hello")
    assert world.asked()[0] == ("user", "three little words")
    assert (await world.store.read(message_log.rows, [1]))[0].token_count == 3


async def test_context_survives_restart_via_sqlite(world: World, tmp_path: Path) -> None:
    await world.say("Before")
    again = await built(tmp_path / "elsewhere", world.store, world.clock, world.model, limit_tokens=10_000)
    await again.say("After")
    assert again.asked() == [("user", "Before"), ("assistant", "ok"), ("user", "After")]


async def test_a_persona_that_leaves_no_room_is_to_blame_and_not_the_message(world: World) -> None:
    docs = world.personas.settings_path("chorus").parent / "docs"
    docs.mkdir()
    (docs / "big.md").write_text("word " * 9_000, encoding="utf-8")
    with pytest.raises(MessageRefusedError, match=r"leaves no room for a message: .* the documents 9,00\d"):
        await world.say("hi")
    assert await world.log() == []


async def test_a_message_is_rescued_when_not_even_the_context_can_be_read(world: World, tmp_path: Path) -> None:
    place = world.focus.place()
    with closing(sqlite3.connect(tmp_path / "chorus.db", isolation_level=None)) as other:
        other.execute("DROP TABLE operations")
    with pytest.raises(StorageError, match=r"The text is kept in .*rescue\.jsonl"):
        _ = [event async for event in world.conversation.answer(place, "Precious words")]
    assert [record["content"] for record in world.rescued] == ["Precious words"]


async def test_stopping_while_the_end_is_written_loses_nothing(world: World, tmp_path: Path) -> None:
    world.model.say("A whole reply")

    async def listen() -> None:
        async with aclosing(world.conversation.answer(world.focus.place(), "Hello")) as events:
            async for event in events:
                if isinstance(event, TextDelta) and event.text.endswith("reply"):
                    # Whoever holds the lock now delays the last write until it lets go.
                    other.execute("BEGIN IMMEDIATE")
                    locked.set()

    locked = asyncio.Event()
    with closing(sqlite3.connect(tmp_path / "chorus.db", isolation_level=None)) as other:
        turn = asyncio.create_task(listen())
        await locked.wait()
        await asyncio.sleep(0.05)
        turn.cancel()
        await asyncio.sleep(0.05)
        other.execute("ROLLBACK")
        with pytest.raises(asyncio.CancelledError):
            await turn
    reply = (await world.log())[-1]
    assert (reply.content, reply.status) == ("A whole reply", Status.COMPLETE)


async def test_what_a_killed_process_left_is_in_the_next_request(world: World) -> None:
    hold = asyncio.Event()
    world.model.enqueue(TextDelta("Half"), hold)
    events = world.conversation.answer(world.focus.place(), "First")
    await words_come(events)
    await world.store.write(
        lambda connection: (
            connection.execute("UPDATE messages SET run = 'dead', content = 'Half' WHERE id = 2") and None
        )
    )
    world.model.say("Fine")
    await world.say("Second")
    assert world.asked() == [("user", "First"), ("assistant", f"Half\n{BROKEN_OFF}"), ("user", "Second")]
    await events.aclose()
