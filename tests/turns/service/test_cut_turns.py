"""A turn that is stopped, killed or not to be stored: nothing that was said is lost."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import aclosing, closing
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.rules.plan import BROKEN_OFF
from chorus_cli.core.errors import MessageNotStoredError, StorageError
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from tests.world import World, another_thread, words_come


async def test_stopping_a_reply_keeps_what_has_arrived(world: World) -> None:
    world.model.enqueue(TextDelta("Half"), asyncio.Event())
    arrived = asyncio.Event()

    async def listen() -> None:
        async with aclosing(world.conversation.answer(world.current.target(), "Hello")) as events:
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
    async with aclosing(world.conversation.answer(world.current.target(), "Hello")) as events:
        await words_come(events)
    reply = (await world.log())[-1]
    assert (reply.content, reply.status) == ("Half", Status.INTERRUPTED)


async def test_a_reply_is_checkpointed_while_it_streams(world: World) -> None:
    hold = asyncio.Event()
    world.model.enqueue(TextDelta("One "), TextDelta("two "), hold, TextDelta("three"), ReplyEnd("stop"))
    async with aclosing(world.conversation.answer(world.current.target(), "Hello")) as events:
        await words_come(events)
        world.clock.advance(timedelta(seconds=0.6))
        await words_come(events)
        half = await world.log_row_with_content(-1)
        assert (half.content, half.status, half.run) == ("One two ", Status.STREAMING, "this-run")
        hold.set()
        _ = [event async for event in events]
    assert (await world.log())[-1].content == "One two three"


async def test_replies_that_stream_at_once_share_a_checkpoint(world: World) -> None:
    hold, statements = asyncio.Event(), list[str]()
    targets = [world.current.target(), await another_thread(world), await another_thread(world)]
    for _ in targets:
        world.model.enqueue(TextDelta("One "), TextDelta("two "), hold, TextDelta("three"), ReplyEnd("stop"))
    replies = [world.conversation.answer(target, "Hello") for target in targets]
    for events in replies:
        await words_come(events)
    world.clock.advance(timedelta(seconds=0.6))
    await world.store.read(lambda connection: connection.set_trace_callback(statements.append))
    for events in replies:
        await words_come(events)
    assert (await world.log_row_with_content(-1)).content == "One two "
    assert statements.count("BEGIN IMMEDIATE") == 1
    assert [row.content for row in await world.log() if row.role is Role.ASSISTANT] == ["One two "] * 3
    hold.set()
    for events in replies:
        assert [event async for event in events]
    ends = [(row.content, row.status) for row in await world.log() if row.role is Role.ASSISTANT]
    assert ends == [("One two three", Status.COMPLETE)] * 3


async def test_a_message_that_cannot_be_stored_is_rescued_and_not_sent(world: World, tmp_path: Path) -> None:
    await world.store.write(lambda connection: connection.execute("PRAGMA query_only = ON") and None)
    with pytest.raises(StorageError, match=r"The text is kept in .*rescue\.jsonl"):
        await world.say("Precious words")
    assert [record["content"] for record in world.rescued] == ["Precious words"]
    assert world.model.requests == []
    with sqlite3.connect(tmp_path / "chorus.db") as other:
        assert other.execute("SELECT COUNT(*) FROM messages").fetchone() == (0,)
    other.close()


async def test_a_message_that_no_file_takes_either_stays_with_the_one_who_sent_it(world: World) -> None:
    world.kept.is_full = True
    await world.store.write(lambda connection: connection.execute("PRAGMA query_only = ON") and None)
    with pytest.raises(MessageNotStoredError, match=r"^(?!.*Precious).*$"):
        await world.say("Precious words")
    assert world.model.requests == []


async def test_a_reply_that_no_file_takes_either_is_in_the_sentence(world: World) -> None:
    hold = asyncio.Event()
    world.kept.is_full = True
    world.model.enqueue(TextDelta("Precious reply"), hold, ReplyEnd("stop"))
    async with aclosing(world.conversation.answer(world.current.target(), "Hello")) as events:
        await words_come(events)
        await world.store.read(lambda connection: connection.execute("PRAGMA query_only = ON") and None)
        hold.set()
        with pytest.raises(StorageError, match="It could not be kept in a file either: Precious reply"):
            await anext(events)


async def test_a_reply_that_cannot_be_stored_is_rescued(world: World) -> None:
    hold = asyncio.Event()
    world.model.enqueue(TextDelta("Precious reply"), hold, ReplyEnd("stop"))
    async with aclosing(world.conversation.answer(world.current.target(), "Hello")) as events:
        await words_come(events)
        await world.store.read(lambda connection: connection.execute("PRAGMA query_only = ON") and None)
        hold.set()
        with pytest.raises(StorageError, match="The text is kept in"):
            await anext(events)
    assert [record["content"] for record in world.rescued] == ["Precious reply"]


async def test_a_message_is_rescued_when_not_even_the_context_can_be_read(world: World, tmp_path: Path) -> None:
    place = world.current.target()
    with closing(sqlite3.connect(tmp_path / "chorus.db", isolation_level=None)) as other:
        other.execute("DROP TABLE operations")
    with pytest.raises(StorageError, match=r"The text is kept in .*rescue\.jsonl"):
        _ = [event async for event in world.conversation.answer(place, "Precious words")]
    assert [record["content"] for record in world.rescued] == ["Precious words"]


async def test_stopping_while_the_end_is_written_loses_nothing(world: World, tmp_path: Path) -> None:
    world.model.say("A whole reply")

    async def listen() -> None:
        async with aclosing(world.conversation.answer(world.current.target(), "Hello")) as events:
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
    events = world.conversation.answer(world.current.target(), "First")
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
