"""A turn whose opening the disk does not confirm: stored or not, the message is kept once, and the thread is free."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.core.errors import DatabaseUnconfirmedError
from chorus_cli.storage.store import Store
from chorus_cli.terminal.one_shot import advised
from tests.fakes import FakeClock, ScriptedModel
from tests.world import World, built

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
    store = UnconfirmedStore(tmp_path / "chorus.db")
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
    "again", ["Your message is kept in the log.", "Your message is kept; chorus ask /retry asks again.", ""]
)
async def test_a_shell_is_told_its_own_way_to_ask_again(unconfirmed: World, again: str) -> None:
    turn = unconfirmed.conversation.answer(unconfirmed.current.target(), "Second")
    with pytest.raises(DatabaseUnconfirmedError) as raised:
        _ = [event async for event in advised(turn, again)]
    assert str(raised.value) == f"{UNCONFIRMED} {again}".rstrip()


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
