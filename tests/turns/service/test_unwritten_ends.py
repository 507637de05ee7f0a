"""A database that another program keeps locked at the end of a reply or a call: the next turn closes the row."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from chorus_cli.core.errors import DatabaseBusyError, MessageNotStoredError
from chorus_cli.models.rules.events import TextDelta, ToolStarted, TurnEvent
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.turns.service.tool_talk import TOOLS, assert_each_request_begins_with_the_one_before, call, calls, rows
from tests.world import Tools, World, built


@pytest.fixture
async def impatient(tmp_path: Path, clock: FakeClock, model: ScriptedModel) -> AsyncIterator[World]:
    """A world whose store waits for no lock."""
    store = Store(tmp_path / "busy.db", busy_timeout_seconds=0.01)
    await store.open()
    yield await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))
    await store.close()


async def say_until_locked(world: World, text: str, kind: type[TurnEvent]) -> None:
    """Send a message, and lock the database from the first event of a kind until the turn has failed."""
    other = sqlite3.connect(world.folder / "busy.db", isolation_level=None)

    async def listen() -> None:
        async for event in world.conversation.answer(world.current.target(), text):
            if isinstance(event, kind) and not other.in_transaction:
                other.execute("BEGIN IMMEDIATE")

    with closing(other), pytest.raises(DatabaseBusyError):
        await listen()


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
async def test_a_reply_whose_end_cannot_be_stored_is_closed_by_the_next_turn(
    impatient: World, *, is_called: bool
) -> None:
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
    with closing(sqlite3.connect(impatient.folder / "busy.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MessageNotStoredError, match=r"Try again\.$"):
            await impatient.say("First")
    assert impatient.model.requests == []
    assert not list(impatient.folder.glob("**/rescue*"))
