"""Summaries by a model: what it is asked, in slices that fit, and what it may fail by."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from chorus_cli.context.service.context import Context
from chorus_cli.core.errors import ModelError
from chorus_cli.models.rules.choice import ELIZA, ModelChoice
from chorus_cli.models.rules.events import ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.personas.rules.persona import Target
from chorus_cli.turns.service.folding import Summarizer, can_summarize
from tests.world import MODEL, World

TASK = "Sum it up."


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
    context = Context(
        world.store,
        world.context.counter,
        lambda model: replace(world.context.limit_of(model), tokens=500 if model == "openai/small" else 10_000),
        world.context.dollars_per_input_token,
    )
    target = target_of(world, summary_model="openai/small", context_token_limit=9000, max_output_tokens=450)
    await Summarizer(world.model, context, world.clock).extended(target, TASK, "", ["word " * 200, "word " * 200])
    assert [request.model for request in world.model.requests] == ["openai/small", "openai/small"]


@pytest.mark.parametrize(
    "events",
    [
        (ModelError("no"),),
        (TextDelta("half"), ModelError("cut")),
        (TextDelta("half"), ReplyEnd(None)),
        (TextDelta("half"), ReplyEnd("length")),
        (TextDelta("  "), ReplyEnd("stop")),
        (ReplyEnd("stop"),),
        (),
    ],
)
async def test_a_summary_that_is_not_whole_is_a_failure(
    world: World, events: tuple[TextDelta | ReplyEnd | ModelError, ...]
) -> None:
    world.model.enqueue(*events)
    with pytest.raises(ModelError):
        await summarizer_of(world).extended(target_of(world), TASK, "", ["Human: a"])


async def test_a_model_that_takes_too_long_is_not_waited_for(world: World) -> None:
    world.model.enqueue(asyncio.Event())
    with pytest.raises(ModelError, match=r"openai/test did not write a summary within 0\.02 s\."):
        await summarizer_of(world, 0.02).extended(target_of(world), TASK, "", ["Human: a"])


@pytest.mark.parametrize(
    ("task", "so_far", "problem"),
    [
        (
            TASK,
            "word " * 9000,
            r"The summary so far is too long to be extended: that takes a request of at least 9,\d{3} tokens",
        ),
        ("word " * 9000, "", r"openai/test takes requests of [\d,]+ tokens, too few to write a summary with\."),
    ],
)
async def test_a_limit_without_room_is_a_failure_and_not_an_endless_loop(
    world: World, task: str, so_far: str, problem: str
) -> None:
    with pytest.raises(ModelError, match=rf"^{problem}.* /settings set summary_model NAME chooses another model"):
        await summarizer_of(world).extended(target_of(world), task, so_far, ["Human: a"])
    assert world.model.requests == []


async def test_eliza_does_not_summarise_but_a_summary_model_may(world: World) -> None:
    eliza = target_of(world)._replace(choice=ModelChoice(ELIZA, "a test"))
    assert not can_summarize(eliza)
    assert can_summarize(target_of(world))
    assert can_summarize(target_of(world, summary_model=MODEL)._replace(choice=eliza.choice))
    assert not can_summarize(target_of(world, summary_model=ELIZA))
