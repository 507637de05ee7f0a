"""Has a model write a summary, and extend it by the messages since; the usage of its requests is stored."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from chorus_cli.core.errors import DatabaseUnconfirmedError, ModelError, StorageError
from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.models import rows as usage_rows
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE
from chorus_cli.models.rules.choice import ELIZA, ModelChoice
from chorus_cli.models.rules.costs import OtherRequest
from chorus_cli.models.rules.events import ReplyEnd, TextDelta, outcome
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.turns.rules import next_slice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.context.service.context import Context
    from chorus_cli.machine.ports import Clock
    from chorus_cli.models.rules.budget import Budget
    from chorus_cli.models.rules.events import ModelClient
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.storage.store import Connection, Store

T = TypeVar("T")

PATIENCE_SECONDS = 30.0

_BEGINNING = "The conversation:"
_SO_FAR = "Summary of the conversation so far:"
_NEXT_PART = "The next part of the conversation, which the summary has to take in:"
_SMALLEST_ROOM_TOKENS = 100
_PURPOSE = "summary"


@dataclass(frozen=True, slots=True)
class _Part:
    """As much of a transcript as fits a request, and the tokens of the whole request."""

    text: str
    prompt_tokens: int


class Spent:
    """The usage of the requests for one summary, as long as it is not stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._requests: list[OtherRequest] = []

    def add(self, target: Target, at: datetime, usage: Mapping[str, int]) -> None:
        """Take the usage of an answer; one without a report is not counted."""
        if usage:
            slug, model = target.persona.slug, model_of(target)
            self._requests.append(OtherRequest(slug, target.thread_id, _PURPOSE, model, at, usage))

    async def stored_with(self, work: Callable[[Connection], T]) -> T:
        """Store the usage in the transaction in which ``work`` stores the summary."""

        def both(connection: Connection) -> T:
            usage_rows.store(connection, self._requests)
            return work(connection)

        try:
            result = await self._store.write(both)
        except DatabaseUnconfirmedError:
            # It may be stored, and must not be counted twice.
            self._requests = []
            raise
        self._requests = []
        return result

    async def stored_alone(self) -> None:
        """Store the usage of requests that have come to nothing; without a working database it is lost."""
        if self._requests:
            with suppress(StorageError):
                await self._store.write(usage_rows.store, self._requests)


@dataclass(frozen=True, slots=True)
class Summarizer:
    """Asks the persona's ``summary_model``, or the model in use; waits ``patience_seconds`` for each of its answers."""

    model: ModelClient
    context: Context
    clock: Clock
    patience_seconds: float = PATIENCE_SECONDS

    def can_summarize(self, target: Target) -> bool:
        """Return whether the model can do it at all: ELIZA cannot."""
        return model_of(target) != ELIZA

    @asynccontextmanager
    async def spending(self) -> AsyncIterator[Spent]:
        """Provide the usage of a summary to be stored with it; in the end the rest of it is stored alone."""
        spent = Spent(self.context.store)
        try:
            yield spent
        finally:
            _, stopped = await run_to_completion(spent.stored_alone())
            if stopped:
                raise asyncio.CancelledError

    async def extended(self, target: Target, task: str, so_far: str, entries: Sequence[str], spent: Spent) -> str:
        """Return the summary ``so_far``, which may be empty, extended by the entries of a transcript, oldest first.

        ``task`` tells the model what to write, and ``spent`` takes the usage of each answer. Entries that do not fit
        its limit at once go in slices, each with the summary of those before.

        Raises:
            ModelError: the model refused, failed, said nothing, or took too long.
        """
        try:
            return await self._extended(target, task, so_far, entries, spent)
        except TimeoutError as error:
            raise ModelError(
                f"{model_of(target)} did not write a summary within {self.patience_seconds:g} s."
            ) from error

    async def _extended(self, target: Target, task: str, so_far: str, entries: Sequence[str], spent: Spent) -> str:
        allowed = await self._budget(target)
        rest = list(entries)
        while rest:
            used = await asyncio.to_thread(self._used, task, so_far)
            room = allowed.room.budget - used
            if room < _SMALLEST_ROOM_TOKENS:
                raise _no_room(model_of(target), so_far, used + _SMALLEST_ROOM_TOKENS, allowed.room.budget)
            part, rest = await asyncio.to_thread(self._next, used, rest, room)
            heading = f"{_SO_FAR}\n\n{so_far}\n\n{_NEXT_PART}" if so_far else _BEGINNING
            messages = (PromptMessage("system", task), PromptMessage("user", f"{heading}\n\n{part.text}"))
            request = ModelRequest(
                model_of(target),
                messages,
                context_tokens=allowed.limit.tokens,
                prompt_tokens=allowed.corrected(part.prompt_tokens),
            )
            async with asyncio.timeout(self.patience_seconds):
                so_far = await self._reply(request, lambda usage: spent.add(target, self.clock.now(), usage))
        return so_far

    async def _budget(self, target: Target) -> Budget:
        """Return the budget of a request to the summary model; the persona's own limit is that of another model."""
        if model_of(target) == target.choice.model:
            return await self.context.budget(target)
        settings = target.persona.settings._replace(context_token_limit=None, max_output_tokens=None)
        persona = target.persona._replace(settings=settings)
        choice = ModelChoice(model_of(target), "from summary_model")
        return await self.context.budget(target._replace(persona=persona, choice=choice))

    def _used(self, task: str, so_far: str) -> int:
        """Return the tokens of a request without its part of the transcript."""
        return sum(map(self.context.counter.count, (task, so_far, _SO_FAR, _NEXT_PART))) + 2 * TOKENS_PER_MESSAGE

    def _next(self, used: int, rest: Sequence[str], room: int) -> tuple[_Part, list[str]]:
        count = self.context.counter.count
        text, later = next_slice(rest, room, count)
        return _Part(text, used + count(text)), later

    async def _reply(self, request: ModelRequest, take_usage: Callable[[Mapping[str, int]], None]) -> str:
        pieces: list[str] = []
        end = ReplyEnd(None)
        async with aclosing(self.model.stream(request)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    pieces.append(event.text)
                elif isinstance(event, ReplyEnd):
                    end = event
                    take_usage(event.usage)
        text = join_surrogates("".join(pieces)).strip()
        ended = outcome(request.model, text, end, None)
        if ended.error is not None:
            # Of a summary that is not whole nothing is kept, as the advice would say.
            raise ModelError(ended.error.problem)
        return text


def _no_room(model: str, so_far: str, needed: int, budget_tokens: int) -> ModelError:
    """Return the error of a summary that leaves no room for more, or of a model that takes next to nothing."""
    if so_far:
        problem = f"The summary so far is too long to be extended: that takes a request of at least {needed:,} "
        problem = f"{problem}tokens, and {model} takes {budget_tokens:,}."
    else:
        problem = f"{model} takes requests of {budget_tokens:,} tokens, too few to write a summary with."
    return ModelError(problem, advice="/settings set summary_model NAME chooses another model for summaries.")


def model_of(target: Target) -> str:
    """Return the model that writes summaries."""
    return target.persona.settings.summary_model or target.choice.model
