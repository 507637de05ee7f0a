"""Every request says for how many tokens it was planned, because some servers hold no more than they are told."""

from __future__ import annotations

import pytest

from chorus_cli.turns.service.folding import Summarizer
from tests.world import World


@pytest.mark.parametrize(("settings", "tokens"), [("{}", 10_000), ('{"context_token_limit": 4000}', 4000)])
async def test_a_question_a_retry_and_a_summary_say_the_same(world: World, settings: str, tokens: int) -> None:
    world.configure(settings)
    await world.say("Hello")
    _ = [event async for event in world.conversation.retry(world.current.target())]
    summarizer = Summarizer(world.model, world.context, world.clock)
    await summarizer.extended(world.current.target(), "Sum it up.", "", ["Human: Hello"])
    assert [request.context_tokens for request in world.model.requests] == [tokens] * 3


async def test_a_summary_model_is_planned_for_by_its_own_limit(world: World) -> None:
    world.configure('{"context_token_limit": 4000, "summary_model": "openai/small"}')
    summarizer = Summarizer(world.model, world.context, world.clock)
    await summarizer.extended(world.current.target(), "Sum it up.", "", ["Human: Hello"])
    assert [request.context_tokens for request in world.model.requests] == [10_000]


async def test_a_summary_says_how_much_of_that_its_request_takes(world: World) -> None:
    summarizer = Summarizer(world.model, world.context, world.clock)
    await summarizer.extended(world.current.target(), "Sum it up.", "", ["Human: " + "word " * 500])
    (request,) = world.model.requests
    words = sum(len(message.content.split()) for message in request.messages)
    assert request.prompt_tokens is not None
    assert words <= request.prompt_tokens <= words + 40
