"""A talk that is older than its window, played through the real services: only the clock and the model are made up."""

from __future__ import annotations

import asyncio
import json
import os
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.prose import prose
from benchmarks.stored_log import StoredRow, fill
from benchmarks.surroundings import isolated, temporary_folder
from chorus_cli.app import App, Options, opened
from chorus_cli.core.errors import ModelError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.memory.rules.items import ItemType
from chorus_cli.models.rules.events import ModelEvent, ReasoningDelta, ReplyEnd, TextDelta, TurnDone
from chorus_cli.models.rules.request import Echo, ModelRequest, PromptMessage, Span
from chorus_cli.turns.service.folding import Folding, Summarizer
from chorus_cli.turns.service.reply_rows import ReplyRows

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from chorus_cli.turns.service.conversation import Conversation

_NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
_MODEL = "openai/gpt-4o-mini"
_SYSTEM_PROMPT = "You keep the record of a long journey, and say what you think of it."
_OLD_WINDOWS = 3
_SECONDS_BETWEEN_QUESTIONS = (30, 90)
_REPLY_SECONDS = 10
_QUESTION_WORDS, _THOUGHT_WORDS, _REPLY_WORDS, _SUMMARY_WORDS = (10, 80), (50, 500), (50, 350), 800
_TURNS_BETWEEN_ITEMS, _TURNS_BETWEEN_CODE, _REQUESTS_BETWEEN_CALLS = 7, 5, 6
_ITEM_WORDS = 12
_CODE = "```python\ndef mile_{number}(stone):\n    print(stone, {number})\n    return stone + {number}\n```"
_QUERY = '{"query": "ferryman"}'


@dataclass(frozen=True, slots=True)
class Talk:
    """How far the window reaches, what the model takes, how many turns there are, and how far the old ones are apart.

    The old ones go back three windows. ``is_summarised`` says whether the model writes summaries when it is asked. With
    ``has_memory`` items are remembered and captured on the way, and the model looks into the memory by its tool. With a
    ``thoughts`` it thinks before it answers, and is sent its thoughts again for so long.
    """

    hours: int
    limit_tokens: int
    minutes_between_old_turns: int
    turns: int = 100
    is_summarised: bool = True
    has_memory: bool = False
    thoughts: Span | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as a provider sees it, for the talk or for a summary of it."""

    messages: tuple[PromptMessage, ...]
    is_for_summary: bool = False


class _Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self._passed = timedelta()

    def now(self) -> datetime:
        return _NOW + self._passed

    def monotonic(self) -> float:
        return self._passed.total_seconds()

    async def sleep(self, seconds: float) -> None:
        self._passed += timedelta(seconds=seconds)


class _Model:
    """Answers whatever it is asked within some seconds, and remembers the requests."""

    def __init__(self, clock: _Clock, chance: random.Random, talk: Talk) -> None:
        self.sent: list[Sent] = []
        self._is_summarised = talk.is_summarised
        self._calls_tools = talk.has_memory
        self._thinks = talk.thoughts is not None
        self._clock = clock
        self._chance = chance

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        is_for_summary = not request.messages[0].content.startswith(_SYSTEM_PROMPT)
        self.sent.append(Sent(request.messages, is_for_summary))
        await self._clock.sleep(_REPLY_SECONDS)
        if is_for_summary and not self._is_summarised:
            raise ModelError("It is down.")
        if self._thinks:
            yield ReasoningDelta(prose(self._chance, self._chance.randint(*_THOUGHT_WORDS)))
        if self._calls_tools and request.tools and len(self.sent) % _REQUESTS_BETWEEN_CALLS == 0:
            yield ReplyEnd("tool_calls", calls=(ToolCall(f"call_{len(self.sent)}", "recall_memory", _QUERY),))
            return
        words = _SUMMARY_WORDS if is_for_summary else self._chance.randint(*_REPLY_WORDS)
        yield TextDelta(prose(self._chance, words))
        yield ReplyEnd("stop")


async def play(talk: Talk) -> Sequence[Sent]:
    """Say what is to be said in a new home, a minute or so apart, and return what the model was sent."""
    chance = random.Random(7)  # noqa: S311 - words, no secret
    clock = _Clock()
    model = _Model(clock, chance, talk)
    with temporary_folder() as home:
        async with opened(Options(model=_MODEL), isolated(os.environ, home)) as app:
            await _prepare(app, talk)
            conversation = _conversation(app, clock, model, Echo(talk.thoughts or Span.NEVER, calls_only=False))
            for number in range(talk.turns):
                await clock.sleep(chance.uniform(*_SECONDS_BETWEEN_QUESTIONS) - _REPLY_SECONDS)
                question = prose(chance, chance.randint(*_QUESTION_WORDS))
                if talk.has_memory:
                    question = await _with_memory(app, conversation, chance, number, question)
                await _say(app, conversation, question)
    return model.sent


async def _with_memory(app: App, conversation: Conversation, chance: random.Random, number: int, question: str) -> str:
    """Remember an item in some turns, and return the question, in some turns with code that is captured."""
    if number % _TURNS_BETWEEN_ITEMS == 0:
        await conversation.memory.remember(app.current.slug, ItemType.TASK, prose(chance, _ITEM_WORDS))
    return f"{question}\n{_CODE.format(number=number)}" if number % _TURNS_BETWEEN_CODE == 0 else question


async def _prepare(app: App, talk: Talk) -> None:
    """Write the persona's settings, and put the old turns into the log."""
    chosen = {"system_prompt": _SYSTEM_PROMPT, "context_hours": talk.hours, "context_token_limit": talk.limit_tokens}
    app.personas.settings_path(app.current.slug).write_text(json.dumps(chosen), encoding="utf-8")
    await app.store.write(fill, list(_old_rows(app, talk)))


def _conversation(app: App, clock: _Clock, model: _Model, echo: Echo) -> Conversation:
    """Return the app's, which folds behind the talk as in the chat, with the clock and the model in their places."""
    conversation = app.services().conversation
    planner = replace(app.services().context, echo_of=lambda _model: echo)
    folds = Folding(planner, Summarizer(model, planner, clock), lambda _sentence: None)
    rows = ReplyRows(planner.store, planner.counter, clock)
    runner = replace(conversation.runner, rows=rows, model=model)
    memory = replace(conversation.memory, clock=clock)
    opener = replace(conversation.opener, context=planner, runner=runner, memory=memory)
    return replace(conversation, context=planner, runner=runner, folds=folds, memory=memory, opener=opener)


async def _say(app: App, conversation: Conversation, text: str) -> None:
    """Have a message answered, and read the reply for as long as a fold behind the talk takes."""
    async for event in conversation.answer(app.current.target(), text):
        if isinstance(event, TurnDone) and event.error is not None:
            raise event.error
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


def _old_rows(app: App, talk: Talk) -> Iterator[StoredRow]:
    """Yield questions and answers, oldest first."""
    chance = random.Random(11)  # noqa: S311 - words, no secret
    place = app.current.target()
    pause = timedelta(minutes=talk.minutes_between_old_turns)
    number = timedelta(hours=talk.hours) * _OLD_WINDOWS // pause
    for position in range(number):
        moment = timestamps.to_text(_NOW - pause * (number - position))
        for role, words in (("user", _QUESTION_WORDS), ("assistant", _REPLY_WORDS)):
            text = prose(chance, chance.randint(*words))
            count = app.services().context.counter.count(text)
            yield place.persona.slug, place.thread_id, 2 * position + 1, role, text, moment, count
