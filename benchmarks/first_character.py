"""From Enter to the first character of the reply, against the same request made without Chorus."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx

from benchmarks.figures import Figure, Pair, figure
from benchmarks.model_server import serving
from benchmarks.prose import prose
from benchmarks.stored_log import StoredRow, fill
from benchmarks.surroundings import isolated, temporary_folder
from chorus_cli.app import App, Options, opened
from chorus_cli.core.time import timestamps
from chorus_cli.models.rules.events import ModelClient, ModelEvent, TextDelta, TurnDone

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping

    from chorus_cli.models.rules.request import ModelRequest
    from chorus_cli.storage.port import Connection
    from chorus_cli.turns.service.conversation import Conversation

GOAL, LONG_GOAL = 2.5, 1.5
_ROUNDS, _QUICK_ROUNDS = 40, 12
_WARMING_ROUNDS = 3
_EARLIER_TURNS = (0, 10)
_STORED_TURNS = 349
"""The turns before those of the long talk; with one to warm up, its requests begin with 701 messages."""

_WORDS = 50
_PROVIDER, _MODEL = "openai", "gpt-4o-mini"
_REFERENCE = "the same request with httpx"
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
    """Time the first character of real conversations: real files, database and connections, all of them warm."""
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    with temporary_folder() as home:
        environment = isolated(os.environ, home)
        with serving(environment) as address:
            provider = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-of-nobody"}
            *found, long = asyncio.run(_contest(environment | provider, rounds))
    for earlier, pairs in zip(_EARLIER_TURNS, found, strict=True):
        yield figure(f"Enter → first character, {2 * earlier + 1} in the window", _REFERENCE, pairs, GOAL)
    yield figure("Enter → first character, 701 in the window", _REFERENCE, long, LONG_GOAL)


async def _contest(environment: Mapping[str, str], rounds: int) -> list[list[Pair]]:
    async with (
        opened(Options(model=f"{_PROVIDER}/{_MODEL}"), environment) as app,
        httpx.AsyncClient(base_url=environment["OPENAI_BASE_URL"], trust_env=False) as client,
    ):
        # A chat has loaded the vocabulary two seconds after its prompt.
        app.services().context.counter.load()
        conversation = app.services().conversation
        runner = conversation.runner
        recorder = _Recorder(runner.model)
        runner = replace(runner, model=recorder)
        conversation = replace(conversation, runner=runner, opener=replace(conversation.opener, runner=runner))
        contest = _Contest(app, conversation, recorder, client)
        found = [await _pairs(contest, earlier, rounds) for earlier in _EARLIER_TURNS]
        return [*found, await _long_pairs(contest, rounds)]


async def _pairs(contest: _Contest, earlier: int, rounds: int) -> list[Pair]:
    """Time one turn of each new conversation, the one after ``earlier`` others."""
    pairs: list[Pair] = []
    for _ in range(_WARMING_ROUNDS + rounds):
        await contest.app.services().journal.clear(contest.app.current.target())
        for _ in range(earlier):
            await _seconds_of_chorus(contest)
        ours = await _seconds_of_chorus(contest)
        pairs.append((ours, await _seconds_of_httpx(contest)))
    return pairs[_WARMING_ROUNDS:]


async def _long_pairs(contest: _Contest, rounds: int) -> list[Pair]:
    """Time the turns of one long conversation, of which most is in the log already."""
    await contest.app.services().journal.clear(contest.app.current.target())
    newest = await contest.app.store.read(_newest_id)
    await contest.app.store.write(fill, list(_old_rows(contest.app, newest)))
    await _seconds_of_chorus(contest)
    return [(await _seconds_of_chorus(contest), await _seconds_of_httpx(contest)) for _ in range(rounds)]


def _newest_id(connection: Connection) -> int:
    return int(connection.execute("SELECT max(id) FROM messages").fetchone()[0])


def _old_rows(app: App, newest_id: int) -> Iterator[StoredRow]:
    """Yield questions and answers of the last minutes, oldest first, which follow the message ``newest_id``."""
    chance = random.Random(15)  # noqa: S311 - words, no secret
    target, count = app.current.target(), app.services().context.counter.count
    for number in range(_STORED_TURNS):
        moment = timestamps.to_text(app.clock.now() - timedelta(seconds=_STORED_TURNS - number))
        for role in ("user", "assistant"):
            text = prose(chance, _WORDS)
            yield target.persona.slug, target.thread_id, newest_id + 2 * number + 1, role, text, moment, count(text)


async def _seconds_of_chorus(contest: _Contest) -> float:
    """Have a message answered as the chat does, and read the reply to its end outside the time."""
    begun = time.perf_counter()
    taken: float | None = None
    place = contest.app.current.target()
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
