"""Summaries by a model: what it is asked, what it may fail by, and that each answer is counted as spent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Literal

import pytest

from chorus_cli.core import limits
from chorus_cli.core.errors import ChorusError, ModelError
from chorus_cli.models.rules.choice import ELIZA, ModelChoice
from chorus_cli.models.rules.events import ARRIVED, ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.models.service.costs import Costs, Grouping
from chorus_cli.personas.rules.persona import Target
from chorus_cli.turns.service.folding import Summarizer, can_summarize
from tests.sessions.service.saved_sessions import count, sql
from tests.world import MODEL, World

TASK = "Sum it up."
Script = tuple[TextDelta | ReplyEnd | ModelError, ...]


def target_of(world: World, **settings: object) -> Target:
    target = world.current.target()
    changed = target.persona.settings._replace(**settings)  # type: ignore[arg-type] # any setting may be changed
    return target._replace(persona=target.persona._replace(settings=changed))


def summarizer_of(world: World, patience_seconds: float = 5.0) -> Summarizer:
    return Summarizer(world.model, world.context, world.clock, patience_seconds)


async def test_generate_summary_calls_llm(world: World) -> None:
    world.model.enqueue(ReasoningDelta("hm"), TextDelta(" It is "), TextDelta("done. "), ReplyEnd("stop"))
    written = await summarizer_of(world).extended(target_of(world), TASK, "", ["Human: a", "Frodo: b"])
    assert written == "It is done."
    (request,) = world.model.requests
    assert request.model == MODEL
    assert [(each.role, each.content) for each in request.messages] == [
        ("system", TASK),
        ("user", "The conversation:\n\nHuman: a\n\nFrodo: b"),
    ]


async def test_an_old_summary_is_extended_and_not_made_again(world: World) -> None:
    await summarizer_of(world).extended(target_of(world), TASK, "Before.", ["Human: a"])
    assert world.model.requests[0].messages[1].content == (
        "Summary of the conversation so far:\n\nBefore.\n\n"
        "The next part of the conversation, which the summary has to take in:\n\nHuman: a"
    )


async def test_nothing_new_leaves_the_summary_as_it_is_and_asks_nobody(world: World) -> None:
    assert await summarizer_of(world).extended(target_of(world), TASK, "Before.", []) == "Before."
    assert world.model.requests == []


async def test_what_is_too_large_goes_in_slices_each_with_the_summary_so_far(world: World) -> None:
    target = target_of(world, context_token_limit=1000)
    entries = [f"Human: {number} " + "word " * 300 for number in range(4)] + ["Frodo: " + "long " * 2000]
    for number in range(9):
        world.model.say(f"part {number}")
    written = await summarizer_of(world).extended(target, TASK, "", entries)
    asked = [request.messages[1].content for request in world.model.requests]
    assert written == f"part {len(asked) - 1}"
    assert all(f"part {number - 1}\n" in text for number, text in enumerate(asked) if number)
    assert all(world.context.counter.count(text) <= 800 for text in asked)
    said = " ".join(text.rpartition("\n\n")[2] if number else text for number, text in enumerate(asked))
    assert said.count("long") == 2000


async def test_the_summary_model_writes_within_its_own_limit(world: World) -> None:
    limit = world.context.limit_of("openai/test")
    small = replace(limit, tokens=500)
    context = replace(world.context, limit_of=lambda model: small if model == "openai/small" else limit)
    target = target_of(world, summary_model="openai/small", context_token_limit=9000, max_output_tokens=450)
    await Summarizer(world.model, context, world.clock).extended(target, TASK, "", ["word " * 200, "word " * 200])
    assert [(each.model, each.context_tokens) for each in world.model.requests] == [("openai/small", 500)] * 2


@pytest.mark.parametrize(
    "events",
    [
        (ModelError("no"),),
        (TextDelta("half"), ModelError("cut", advice=ARRIVED)),
        (TextDelta("x" * (limits.REPLY.most + 1)), ReplyEnd("stop")),
        (TextDelta("half"), ReplyEnd(None)),
        (TextDelta("half"), ReplyEnd("length")),
        (TextDelta("  "), ReplyEnd("stop")),
        (ReplyEnd("stop"),),
        (),
    ],
)
async def test_a_summary_that_is_not_whole_is_a_failure(world: World, events: Script) -> None:
    world.model.enqueue(*events)
    with pytest.raises(ModelError, match=f"^(?!.*{re.escape(ARRIVED)})"):
        await summarizer_of(world).extended(target_of(world), TASK, "", ["Human: a"])


async def test_a_model_that_takes_too_long_is_not_waited_for(world: World) -> None:
    world.model.enqueue(asyncio.Event())
    with pytest.raises(ModelError, match=r"openai/test did not write a summary within 0\.02 s\."):
        await summarizer_of(world, 0.02).extended(target_of(world), TASK, "", ["Human: a"])


@pytest.mark.parametrize(("task", "so_far"), [(TASK, "word " * 9000), ("word " * 9000, "")])
async def test_a_limit_without_room_is_a_failure_and_not_an_endless_loop(world: World, task: str, so_far: str) -> None:
    problem = r"openai/test takes requests of [\d,]+ tokens, which are too few for this\."
    with pytest.raises(ModelError, match=rf"^{problem} /set summary_model NAME chooses another model"):
        await summarizer_of(world).extended(target_of(world), task, so_far, ["Human: a"])
    assert world.model.requests == []


async def test_eliza_does_not_summarise_but_a_summary_model_may(world: World) -> None:
    eliza = target_of(world)._replace(choice=ModelChoice(ELIZA, "a test"))
    assert not can_summarize(eliza)
    assert can_summarize(target_of(world))
    assert can_summarize(target_of(world, summary_model=MODEL)._replace(choice=eliza.choice))
    assert not can_summarize(target_of(world, summary_model=ELIZA))


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
    tokens = "CAST(json_extract(usage, '$.prompt_tokens') AS INTEGER)"
    statement = f"SELECT persona, thread_id, purpose, model, {tokens} FROM other_requests"  # noqa: S608 - a constant
    return await world.store.read(lambda connection: connection.execute(statement).fetchall())


async def fold(world: World) -> None:
    await world.services.folding.fold_all(world.current.target(), "")


async def save(world: World) -> None:
    await world.sessions.save(world.current.target(), "Notes")


async def save_idle_again(world: World) -> None:
    await world.sessions.save_idle(world.current.target())


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
    ("act", "events", "spent", "summaries", "sessions"),
    [
        (fold, WRITTEN, 1, 1, 0),
        (fold, (TextDelta("In sh"), ReplyEnd("length", USAGE)), 1, 0, 0),
        (fold, (ReplyEnd("stop", USAGE),), 1, 0, 0),
        (fold, (TextDelta("In short."), ReplyEnd("stop", USAGE), ModelError("The line broke.")), 1, 0, 0),
        (fold, (ModelError("No."),), 0, 0, 0),
        (fold, (TextDelta("In short."), ReplyEnd("stop")), 0, 1, 0),
        (save, WRITTEN, 1, 0, 1),
        (save_idle_again, WRITTEN, 1, 0, 1),
    ],
)
async def test_a_summary_is_counted_however_it_ends(
    spoken: World, act: Act, events: Script, spent: int, summaries: int, sessions: int
) -> None:
    spoken.model.enqueue(*events)
    with suppress(ChorusError):
        await act(spoken)
    assert await rows(spoken) == [("chorus", 1, "summary", MODEL, 100)] * spent
    assert (await count(spoken, "summaries"), await count(spoken, "sessions")) == (summaries, sessions)


async def test_a_deadline_that_passes_while_usage_is_stored_costs_no_summary(spoken: World) -> None:
    # The scripted model answers at once, so the deadline passes as soon as anything else is waited for.
    spoken.model.enqueue(*WRITTEN)
    assert await summarizer_of(spoken, 0).extended(target_of(spoken), TASK, "", ["Human: a"]) == "In short."
    assert [row[-1] for row in await rows(spoken)] == [100]


@pytest.mark.parametrize("act", [fold, save_idle_again], ids=["fold", "session of the idle timer"])
async def test_a_summary_that_is_stopped_after_the_answer_is_counted(spoken: World, act: Act) -> None:
    with pytest.raises(asyncio.CancelledError):
        await stopped(spoken, act)
    assert [row[-1] for row in await rows(spoken)] == [100]
    assert await count(spoken, "summaries") == await count(spoken, "sessions") == 0


async def test_each_slice_is_counted_also_if_a_later_one_fails(world: World) -> None:
    for _ in range(4):
        await world.say("word " * 700)
    world.configure('{"system_prompt": "Short.", "context_token_limit": 1200}')
    world.model.enqueue(*WRITTEN)
    world.model.enqueue(ModelError("It is down."))
    with pytest.raises(ModelError):
        await fold(world)
    assert [row[-1] for row in await rows(world)] == [100]


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


@pytest.mark.parametrize(("settings", "tokens"), [("{}", 10_000), ('{"context_token_limit": 4000}', 4000)])
async def test_a_question_a_retry_and_a_summary_say_the_same(world: World, settings: str, tokens: int) -> None:
    world.configure(settings)
    await world.say("Hello")
    _ = [event async for event in world.conversation.retry(world.current.target())]
    await summarizer_of(world).extended(world.current.target(), "Sum it up.", "", ["Human: Hello"])
    assert [request.context_tokens for request in world.model.requests] == [tokens] * 3


async def test_a_summary_says_how_much_of_that_its_request_takes(world: World) -> None:
    await summarizer_of(world).extended(world.current.target(), "Sum it up.", "", ["Human: " + "word " * 500])
    (request,) = world.model.requests
    words = sum(len(message.content.split()) for message in request.messages)
    assert request.prompt_tokens is not None
    assert words <= request.prompt_tokens <= words + 40
