"""From Enter to the first character of the reply, against the same request made without Chorus and litellm."""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import httpx

from benchmarks.figures import figure
from benchmarks.model_server import serving
from benchmarks.surroundings import isolated, temporary_folder
from chorus_cli.app import Options, opened
from chorus_cli.core.models.events import TextDelta, TurnDone

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping

    from benchmarks.figures import Figure, Pair
    from chorus_cli.app import App
    from chorus_cli.core.models.events import ModelEvent
    from chorus_cli.core.models.exchange import ModelRequest
    from chorus_cli.ports import ModelClient
    from chorus_cli.services.turns.conversation import Conversation

GOAL = 3
_ROUNDS, _QUICK_ROUNDS = 40, 12
_WARMING_ROUNDS = 3
_EARLIER_TURNS = (0, 20)
_PROVIDER, _MODEL = "openai", "gpt-4o-mini"
_QUESTION = "What did we decide about the bridge?"


class _Recorder:
    """A ``ModelClient`` that remembers the last request."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self.request: ModelRequest | None = None

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.request = request
        return self._client.stream(request)


@dataclass(frozen=True, slots=True)
class _Contest:
    """Both ways to the same server."""

    app: App
    conversation: Conversation
    recorder: _Recorder
    client: httpx.AsyncClient


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time the first character of real conversations: real files, database and litellm, all of them warm."""
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    with temporary_folder() as home:
        environment = isolated(os.environ, home)
        with serving(environment) as address:
            found = asyncio.run(_contest({**environment, "OPENAI_BASE_URL": address}, rounds))
    for earlier, pairs in zip(_EARLIER_TURNS, found, strict=True):
        yield figure(f"Enter → first character, turn {earlier + 1}", "the same request with httpx", pairs, GOAL)


async def _contest(environment: Mapping[str, str], rounds: int) -> list[list[Pair]]:
    async with (
        opened(Options(model=f"{_PROVIDER}/{_MODEL}"), environment) as app,
        httpx.AsyncClient(base_url=environment["OPENAI_BASE_URL"], trust_env=False) as client,
    ):
        conversation = app.services().conversation
        answering = conversation.answering
        recorder = _Recorder(answering.outside.model)
        answering = replace(answering, outside=replace(answering.outside, model=recorder))
        conversation = replace(conversation, rounds=replace(conversation.rounds, answering=answering))
        contest = _Contest(app, conversation, recorder, client)
        return [await _pairs(contest, earlier, rounds) for earlier in _EARLIER_TURNS]


async def _pairs(contest: _Contest, earlier: int, rounds: int) -> list[Pair]:
    """Time one turn of each new conversation, the one after ``earlier`` others."""
    pairs: list[Pair] = []
    for _ in range(_WARMING_ROUNDS + rounds):
        await contest.app.services().log.journal.clear(contest.app.focus.target())
        for _ in range(earlier):
            await _seconds_of_chorus(contest)
        ours = await _seconds_of_chorus(contest)
        pairs.append((ours, await _seconds_of_httpx(contest)))
    return pairs[_WARMING_ROUNDS:]


async def _seconds_of_chorus(contest: _Contest) -> float:
    """Have a message answered as the chat does, and read the reply to its end outside the time."""
    begun = time.perf_counter()
    taken: float | None = None
    place = contest.app.focus.target()
    async for event in contest.conversation.answer(place, _QUESTION):
        if taken is None and isinstance(event, TextDelta):
            taken = time.perf_counter() - begun
        if isinstance(event, TurnDone) and event.error is not None:
            raise event.error
    if taken is None:
        raise RuntimeError("The model answered without a word.")
    return taken


async def _seconds_of_httpx(contest: _Contest) -> float:
    """Send the last request once more, directly."""
    if contest.recorder.request is None:
        raise RuntimeError("The conversation never asked the model.")
    begun = time.perf_counter()
    async with _posted(contest.client, contest.recorder.request) as response:
        taken: float | None = None
        async for line in response.aiter_lines():
            if taken is None and _content(line):
                taken = time.perf_counter() - begun
    if taken is None:
        raise RuntimeError("The server answered without a word.")
    return taken


@asynccontextmanager
async def _posted(client: httpx.AsyncClient, request: ModelRequest) -> AsyncIterator[httpx.Response]:
    messages = [
        {name: value for name, value in message._asdict().items() if value is not None} for message in request.messages
    ]
    body = {"model": _MODEL, "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
    async with client.stream("POST", "/chat/completions", json=body) as response:
        response.raise_for_status()
        yield response


def _content(line: str) -> str:
    """Return the text that a line of the event stream adds to the reply."""
    name, _, data = line.partition(": ")
    if name != "data" or data == "[DONE]":
        return ""
    choices = json.loads(data)["choices"]
    return choices[0]["delta"].get("content") or "" if choices else ""
