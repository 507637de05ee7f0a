"""A turn that is stopped, killed or not to be stored: nothing that was said is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, aclosing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.core.errors import DatabaseBusyError, DatabaseUnconfirmedError, MessageNotStoredError, StorageError
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.models.rules.events import ReplyEnd, TextDelta, ToolStarted, TurnEvent
from chorus_cli.models.rules.request import Echo, Span
from chorus_cli.storage.store import Store
from chorus_cli.terminal.one_shot import advised
from chorus_cli.turns.service import conversation
from tests.fakes import FakeClock, ScriptedModel
from tests.storage.database import BEGIN_TO_WRITE, locked, quick, refuse_all, sql, traced
from tests.turns.service.tool_talk import (
    TOOLS,
    assert_each_request_begins_with_the_one_before,
    call,
    calls,
    rows,
)
from tests.world import Tools, World, another_thread, built, words_come


async def test_replies_are_checkpointed_while_they_stream_all_at_once(world: World) -> None:
    hold = asyncio.Event()
    targets = [world.current.target(), await another_thread(world), await another_thread(world)]
    for _ in targets:
        world.model.enqueue(TextDelta("One "), TextDelta("two "), hold, TextDelta("three"), ReplyEnd("stop"))
    replies = [world.conversation.answer(target, "Hello") for target in targets]
    for events in replies:
        await words_come(events)
    world.clock.advance(timedelta(seconds=0.6))
    statements = await traced(world.store)
    for events in replies:
        await words_come(events)
    half = await world.log_row_with_status(-1, Status.STREAMING, has_words=True)
    assert (half.content, half.run) == ("One two ", "this-run")
    assert statements.count(BEGIN_TO_WRITE) == 1
    assert [row.content for row in await world.log() if row.role is Role.ASSISTANT] == ["One two "] * 3
    hold.set()
    for events in replies:
        assert [event async for event in events]
    ends = [(row.content, row.status) for row in await world.log() if row.role is Role.ASSISTANT]
    assert ends == [("One two three", Status.COMPLETE)] * 3


@pytest.mark.parametrize(
    ("is_full", "error", "sentence"),
    [
        (False, StorageError, r"The text is kept in .*rescue\.jsonl"),
        (True, MessageNotStoredError, r"^(?!.*Precious).*$"),
    ],
)
async def test_a_message_that_cannot_be_stored_is_rescued_and_not_sent(
    world: World, error: type[StorageError], sentence: str, *, is_full: bool
) -> None:
    world.kept.is_full = is_full
    await world.store.write(refuse_all)
    with pytest.raises(error, match=sentence):
        await world.say("Precious words")
    assert [record["content"] for record in world.rescued] == ([] if is_full else ["Precious words"])
    assert world.model.requests == []
    assert await world.log() == []


@pytest.mark.parametrize(
    ("is_full", "sentence"),
    [(False, "The text is kept in"), (True, "It could not be kept in a file either: Precious reply")],
)
async def test_a_reply_that_cannot_be_stored_is_rescued(world: World, sentence: str, *, is_full: bool) -> None:
    hold, world.kept.is_full = asyncio.Event(), is_full
    world.model.enqueue(TextDelta("Precious reply"), hold, ReplyEnd("stop"))
    async with aclosing(world.conversation.answer(world.current.target(), "Hello")) as events:
        await words_come(events)
        await world.store.write(refuse_all)
        hold.set()
        with pytest.raises(StorageError, match=sentence):
            await anext(events)
    assert [record["content"] for record in world.rescued] == ([] if is_full else ["Precious reply"])


async def test_a_message_is_rescued_when_not_even_the_context_can_be_read(world: World, tmp_path: Path) -> None:
    place = world.current.target()
    sql(tmp_path / "chorus.db", "ALTER TABLE operations RENAME TO gone")
    with pytest.raises(StorageError, match=r"The text is kept in .*rescue\.jsonl"):
        _ = [event async for event in world.conversation.answer(place, "Precious words")]
    assert [record["content"] for record in world.rescued] == ["Precious words"]


async def test_stopping_while_the_end_is_written_loses_nothing(world: World, tmp_path: Path) -> None:
    world.model.say("A whole reply")

    async def listen() -> None:
        async with aclosing(world.conversation.answer(world.current.target(), "Hello")) as events:
            async for event in events:
                if isinstance(event, TextDelta) and event.text.endswith("reply"):
                    # Another program that holds the lock delays the last write until it lets go.
                    lock.enter_context(locked(tmp_path / "chorus.db"))
                    is_locked.set()

    is_locked = asyncio.Event()
    with ExitStack() as lock:
        turn = asyncio.create_task(listen())
        await is_locked.wait()
        await asyncio.sleep(0.05)
        turn.cancel()
        await asyncio.sleep(0.05)
        lock.close()
        with pytest.raises(asyncio.CancelledError):
            await turn
    reply = (await world.log())[-1]
    assert (reply.content, reply.status) == ("A whole reply", Status.COMPLETE)


async def test_stopping_while_thoughts_are_left_out_closes_the_turn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> bool:
        raise asyncio.CancelledError

    world.model.echo = Echo(Span.TURN, is_bound=True)
    monkeypatch.setattr(conversation, "_begins_with", stop)
    with pytest.raises(asyncio.CancelledError):
        await world.say("Hello")
    assert [row.status for row in await world.log()] == [Status.COMPLETE, Status.INTERRUPTED]


@pytest.fixture
async def impatient(tmp_path: Path, clock: FakeClock, model: ScriptedModel) -> AsyncIterator[World]:
    """A world whose store waits for no lock."""
    store = Store(quick(tmp_path / "busy.db", busy_timeout_seconds=0.01))
    await store.open()
    yield await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))
    await store.close()


async def say_until_locked(world: World, text: str, kind: type[TurnEvent]) -> None:
    """Send a message, and lock the database from the first event of a kind until the turn has failed."""

    async def listen(lock: ExitStack) -> None:
        is_locked = False
        async for event in world.conversation.answer(world.current.target(), text):
            if isinstance(event, kind) and not is_locked:
                lock.enter_context(locked(world.folder / "busy.db"))
                is_locked = True

    with ExitStack() as lock, pytest.raises(DatabaseBusyError):
        await listen(lock)


async def test_a_call_whose_result_cannot_be_stored_is_closed_by_the_next_turn(impatient: World) -> None:
    calls(impatient, call("echo", {"text": "gold"}), before="Let me see.")
    await say_until_locked(impatient, "First", ToolStarted)
    assert (await rows(impatient))[-1] == ("tool_use", "", "c1", "streaming")
    await impatient.say("Second")
    assert (await rows(impatient))[2] == ("tool_use", "", "c1", "interrupted")
    assert impatient.asked() == [("user", "First"), ("assistant", "Let me see."), ("user", "Second")]
    assert_each_request_begins_with_the_one_before(impatient)


async def test_after_that_the_question_can_be_answered_again_at_once(impatient: World) -> None:
    calls(impatient, call("echo", {"text": "gold"}))
    await say_until_locked(impatient, "First", ToolStarted)
    _ = [event async for event in impatient.conversation.retry(impatient.current.target())]
    assert await impatient.seen() == ["First", "ok"]


@pytest.mark.parametrize("is_called", [False, True])
async def test_a_reply_without_an_end_is_closed_by_the_next_turn(impatient: World, *, is_called: bool) -> None:
    if is_called:
        calls(impatient, call("echo", {"text": "gold"}), before="Let me see.")
    else:
        impatient.model.say("Let me see.")
    await say_until_locked(impatient, "First", TextDelta)
    assert (await rows(impatient))[-1] == ("assistant", "", None, "streaming")
    assert [each["content"] for each in impatient.rescued] == ["Let me see."]
    await impatient.say("Second")
    assert [status for *_, status in await rows(impatient)] == ["complete", "interrupted", "complete", "complete"]


async def test_a_message_that_a_lock_keeps_out_is_left_to_its_sender_and_in_no_file(impatient: World) -> None:
    with locked(impatient.folder / "busy.db"), pytest.raises(MessageNotStoredError, match=r"Try again\.$"):
        await impatient.say("First")
    assert impatient.model.requests == []
    assert not list(impatient.folder.glob("**/rescue*"))


UNCONFIRMED = "The disk does not confirm it."


class UnconfirmedStore(Store):
    """A store that does not confirm the next opening of a turn, which ``is_made`` or not."""

    is_unconfirmed = False
    is_made = True

    async def write(self, work: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.is_unconfirmed or work.__name__ not in {"_store", "_store_retry"}:
            return await super().write(work, *args, **kwargs)
        self.is_unconfirmed = False
        if self.is_made:
            await super().write(work, *args, **kwargs)
        raise DatabaseUnconfirmedError(UNCONFIRMED)


@pytest.fixture
async def unconfirmed(tmp_path: Path, clock: FakeClock, model: ScriptedModel) -> AsyncIterator[World]:
    """A world in which a first message was answered, and the next opening will not be confirmed."""
    store = UnconfirmedStore(quick(tmp_path / "chorus.db"))
    await store.open()
    world = await built(tmp_path, store, clock, model, 10_000)
    await world.say("First")
    store.is_unconfirmed = True
    yield world
    await store.close()


async def statuses(world: World) -> list[tuple[str, str]]:
    return [(row.content, str(row.status)) for row in await world.log()]


FIRST = [("First", "complete"), ("ok", "complete")]
THIRD = [("Third", "complete"), ("ok", "complete")]


async def test_a_stored_message_is_not_rescued_and_the_next_one_does_not_wait(unconfirmed: World) -> None:
    with pytest.raises(DatabaseUnconfirmedError, match="Your message is in the log; /retry asks again"):
        await unconfirmed.say("Second")
    assert unconfirmed.rescued == []
    await unconfirmed.say("Third")
    assert await statuses(unconfirmed) == [*FIRST, ("Second", "complete"), ("", "interrupted"), *THIRD]


@pytest.mark.parametrize(
    ("again", "is_new", "told"),
    [("thread {}", True, "thread 0"), ("thread {}", False, "thread 1"), ("", False, "")],
)
async def test_a_shell_is_told_its_own_way_to_ask_again(
    unconfirmed: World, again: str, told: str, *, is_new: bool
) -> None:
    target = unconfirmed.current.target()
    target = target._replace(thread_id=0, thread_number=0) if is_new else target
    turn = unconfirmed.conversation.answer(target, "Second")
    with pytest.raises(DatabaseUnconfirmedError) as raised:
        _ = [event async for event in advised(target, turn, again.format)]
    assert str(raised.value) == f"{UNCONFIRMED} {told}".rstrip()
    assert unconfirmed.rescued == []


async def test_one_that_is_not_stored_is_rescued(unconfirmed: World) -> None:
    assert isinstance(unconfirmed.store, UnconfirmedStore)
    unconfirmed.store.is_made = False
    with pytest.raises(DatabaseUnconfirmedError, match="The text is kept in"):
        await unconfirmed.say("Second")
    assert [each["content"] for each in unconfirmed.rescued] == ["Second"]
    await unconfirmed.say("Third")
    assert await statuses(unconfirmed) == [*FIRST, *THIRD]


async def test_the_thread_of_a_retry_is_free_too(unconfirmed: World) -> None:
    with pytest.raises(DatabaseUnconfirmedError, match=UNCONFIRMED):
        _ = [event async for event in unconfirmed.conversation.retry(unconfirmed.current.target())]
    await unconfirmed.say("Third")
    assert await statuses(unconfirmed) == [*FIRST, ("", "interrupted"), *THIRD]
    assert await unconfirmed.seen() == ["First", "ok", "Third", "ok"]
