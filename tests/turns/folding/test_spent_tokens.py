"""Money spent on summaries is counted whether the summary is stored, comes to nothing or is stopped, and only once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Literal

import pytest

from chorus_cli.core.errors import ChorusError, ModelError
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.models.service.costs import Costs, Grouping
from chorus_cli.turns.service.folding import Folding
from tests.sessions.service.saved_sessions import count, folder, save_idle, sql
from tests.world import MODEL, World

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
WRITTEN = (TextDelta("In short."), ReplyEnd("stop", USAGE))

Act = Callable[[World], Coroutine[None, None, object]]


class Pause(asyncio.Event):
    """Keeps the model from saying the rest until it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.is_reached = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.is_reached.set()
        return await super().wait()


async def rows(world: World) -> list[tuple[object, ...]]:
    statement = "SELECT persona, thread_id, purpose, model, json_extract(usage, '$.prompt_tokens') FROM other_requests"
    return await world.store.read(lambda connection: connection.execute(statement).fetchall())


def folding_of(world: World) -> Folding:
    return world.services.folding


async def fold(world: World) -> None:
    await folding_of(world).fold_all(world.current.target(), "")


async def save(world: World) -> None:
    await world.sessions.save(world.current.target(), "Notes")


async def save_where_no_file_can_be(world: World) -> None:
    folder(world).write_text("in the way")
    await save(world)


async def save_idle_again(world: World) -> None:
    await world.sessions.save_idle(world.current.target(), "Silence")


async def stopped(world: World, act: Act) -> None:
    """Cancel an act once the model has said all, and its stream has no end yet."""
    pause = Pause()
    world.model.enqueue(*WRITTEN, pause)
    task = asyncio.create_task(act(world))
    await pause.is_reached.wait()
    task.cancel()
    await task


@pytest.fixture
async def spoken(world: World) -> World:
    for text in ("one", "two", "three", "four"):
        await world.say(text)
    return world


@pytest.mark.parametrize(
    ("act", "events", "summaries", "sessions"),
    [
        (fold, WRITTEN, 1, 0),
        (fold, (TextDelta("In sh"), ReplyEnd("length", USAGE)), 0, 0),
        (fold, (ReplyEnd("stop", USAGE),), 0, 0),
        (fold, (TextDelta("In short."), ReplyEnd("stop", USAGE), ModelError("The line broke.")), 0, 0),
        (save, WRITTEN, 0, 1),
        (save, (ReplyEnd("stop", USAGE),), 0, 1),
        (save_where_no_file_can_be, WRITTEN, 0, 0),
        (save_idle_again, WRITTEN, 0, 1),
    ],
    ids=[
        "fold",
        "cut at the limit",
        "empty answer",
        "failure after the usage",
        "session",
        "session without a summary",
        "session that cannot be written",
        "session of the idle timer",
    ],
)
async def test_a_summary_is_counted_however_it_ends(
    spoken: World, act: Act, events: tuple[TextDelta | ReplyEnd | ModelError, ...], summaries: int, sessions: int
) -> None:
    spoken.model.enqueue(*events)
    with suppress(ChorusError):
        await act(spoken)
    assert await rows(spoken) == [("chorus", 1, "summary", MODEL, 100)]
    assert await count(spoken, "summaries") == summaries
    assert await count(spoken, "sessions") == sessions


@pytest.mark.parametrize("act", [fold, save_idle_again], ids=["fold", "session of the idle timer"])
async def test_a_summary_that_is_stopped_after_the_answer_is_counted(spoken: World, act: Act) -> None:
    with pytest.raises(asyncio.CancelledError):
        await stopped(spoken, act)
    assert [row[-1] for row in await rows(spoken)] == [100]
    assert await count(spoken, "summaries") == await count(spoken, "sessions") == 0


async def test_the_summary_of_a_session_that_is_saved_all_the_same_is_counted_too(spoken: World) -> None:
    await stopped(spoken, save)
    assert [row[-1] for row in await rows(spoken)] == [100]
    assert (await count(spoken, "summaries"), await count(spoken, "sessions")) == (0, 1)


async def test_a_summary_of_a_context_that_was_changed_meanwhile_is_counted(spoken: World) -> None:
    pause = Pause()
    spoken.model.enqueue(pause, *WRITTEN)
    task = asyncio.create_task(folding_of(spoken).fold_all(spoken.current.target(), ""))
    await pause.is_reached.wait()
    await spoken.told("/new")
    pause.set()
    assert (await task).summary is None
    assert [row[-1] for row in await rows(spoken)] == [100]


@pytest.mark.parametrize(
    "events", [(ModelError("No."),), (TextDelta("In short."), ReplyEnd("stop"))], ids=["refused", "without a report"]
)
async def test_a_request_without_usage_is_not_counted(
    spoken: World, events: tuple[TextDelta | ReplyEnd | ModelError, ...]
) -> None:
    spoken.model.enqueue(*events)
    with suppress(ModelError):
        await fold(spoken)
    assert await rows(spoken) == []


async def test_each_slice_is_counted_also_if_a_later_one_fails(world: World) -> None:
    for _ in range(4):
        await world.say("word " * 700)
    world.configure('{"system_prompt": "Short.", "context_token_limit": 1200}')
    world.model.enqueue(*WRITTEN)
    world.model.enqueue(ModelError("It is down."))
    with pytest.raises(ModelError):
        await fold(world)
    assert [row[-1] for row in await rows(world)] == [100]


async def test_an_idle_session_that_is_extended_is_counted_each_time(spoken: World) -> None:
    spoken.model.enqueue(*WRITTEN)
    await save_idle(spoken)
    await spoken.say("More")
    spoken.model.enqueue(*WRITTEN)
    await save_idle_again(spoken)
    assert len(await rows(spoken)) == 2
    assert await count(spoken, "sessions") == 1


async def test_of_a_summary_that_cannot_be_stored_the_usage_is(spoken: World) -> None:
    await sql(spoken, "CREATE TRIGGER no BEFORE INSERT ON summaries BEGIN SELECT RAISE(ABORT, 'no'); END")
    spoken.model.enqueue(*WRITTEN)
    with pytest.raises(ChorusError):
        await fold(spoken)
    assert len(await rows(spoken)) == 1


async def test_a_database_that_takes_no_usage_leaves_the_failure_of_the_summary_as_it_is(spoken: World) -> None:
    await sql(spoken, "DROP TABLE other_requests")
    spoken.model.enqueue(ReplyEnd("stop", USAGE))
    with pytest.raises(ModelError, match="empty reply"):
        await fold(spoken)


async def test_a_reply_that_is_stopped_after_its_end_is_counted(world: World) -> None:
    with pytest.raises(asyncio.CancelledError):
        await stopped(world, lambda world: world.say("Hello"))
    report = await Costs(world.store, world.clock, lambda _model: None).report(Grouping.MODEL, None)
    assert (report.total.replies, report.total.tokens.prompt) == (1, 100)
