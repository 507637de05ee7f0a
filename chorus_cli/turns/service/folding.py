"""Folds the oldest turns of a conversation into its summary, and asks the model that writes the summary.

A fold extends the summary by turns that the summary does not cover yet. The fold is an operation of the journal, so it
can be undone. It is stored only if the context has not changed meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rules.view import ContextSnapshot, RequestStart, Summary, usable, without_eliza
from chorus_cli.context.service.context import Context
from chorus_cli.core.errors import ChorusError, CommandError, MessageRefusedError, ModelError, StorageError
from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.core.text.phrases import cut_in_the_middle
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Fold
from chorus_cli.log.rules.messages import Message, expanded, runs
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.machine.notifier import run_to_completion, to_its_end
from chorus_cli.machine.ports import Clock
from chorus_cli.models import rows as usage_rows
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE, Budget
from chorus_cli.models.rules.choice import ELIZA, ModelChoice
from chorus_cli.models.rules.costs import OtherRequest
from chorus_cli.models.rules.events import ARRIVED, Lengths, ModelClient, ReplyEnd, TextDelta, outcome
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.personas.rules.persona import Target
from chorus_cli.storage.port import Connection
from chorus_cli.turns.rules import due, entries_of, foldable, next_slice, task

PATIENCE_SECONDS = 30.0

_BEGINNING = "The conversation:"
_SO_FAR = "Summary of the conversation so far:"
_NEXT_PART = "The next part of the conversation, which the summary has to take in:"
_SMALLEST_ROOM_TOKENS = 100


@dataclass(frozen=True, slots=True)
class Summarizer:
    """Asks the persona's ``summary_model``, or else the model in use; waits ``patience_seconds`` for each answer.

    ``purpose`` names the text that the model writes.
    """

    model: ModelClient
    context: Context
    clock: Clock
    patience_seconds: float = PATIENCE_SECONDS
    purpose: str = "summary"

    async def extended(self, target: Target, task: str, so_far: str, entries: Sequence[str]) -> str:
        """Return the summary ``so_far``, which may be empty, extended by the entries of a transcript, oldest first.

        If the entries do not fit one request, the model gets slices, each with the summary of the slices before.
        """
        allowed, model = await self.budget(target), model_of(target)
        rest = list(entries)
        while rest:
            fixed = (task, so_far, _SO_FAR, _NEXT_PART)
            used = await asyncio.to_thread(lambda texts: sum(map(self.context.counter.count, texts)), fixed)
            used += 2 * TOKENS_PER_MESSAGE
            room = allowed.room.budget - used
            if room < _SMALLEST_ROOM_TOKENS:
                raise too_small(model, allowed.room.budget)
            part, tokens, rest = await asyncio.to_thread(self._next, rest, room)
            heading = f"{_SO_FAR}\n\n{so_far}\n\n{_NEXT_PART}" if so_far else _BEGINNING
            messages = (PromptMessage("system", task), PromptMessage("user", f"{heading}\n\n{part}"))
            prompt_tokens = allowed.corrected(used + tokens)
            request = ModelRequest(model, messages, context_tokens=allowed.limit.tokens, prompt_tokens=prompt_tokens)
            so_far = await self.reply(target, request)
        return so_far

    async def budget(self, target: Target) -> Budget:
        """Return the budget of a request to the summary model; the persona's limits do not apply to another model."""
        if model_of(target) == target.choice.model:
            return await self.context.budget(target)
        settings = target.persona.settings._replace(context_token_limit=None, max_output_tokens=None)
        persona = target.persona._replace(settings=settings)
        choice = ModelChoice(model_of(target), "from summary_model")
        return await self.context.budget(target._replace(persona=persona, choice=choice))

    def _next(self, entries: Sequence[str], room: int) -> tuple[str, int, list[str]]:
        count = self.context.counter.count
        text, left = next_slice(entries, room, count)
        return text, count(text), left

    async def reply(self, target: Target, request: ModelRequest) -> str:
        """Return the answer to a request; its usage is stored even if the answer is of no use."""
        pieces: list[str] = []
        end, lengths = ReplyEnd(None), Lengths()
        try:
            async with asyncio.timeout(self.patience_seconds), aclosing(self.model.stream(request)) as events:
                async for event in events:
                    lengths.take(event)
                    if isinstance(event, TextDelta):
                        pieces.append(event.text)
                    elif isinstance(event, ReplyEnd):
                        end = event
        except TimeoutError as error:
            late = f"{request.model} did not write a {self.purpose} within {self.patience_seconds:g} s."
            raise ModelError(late) from error
        except ModelError as error:
            raise _not_kept(error) from error
        finally:
            await to_its_end(self._spend(target, end.usage))
        text = join_surrogates("".join(pieces)).strip()
        ended = outcome(request, text, end, None)
        if ended.error is not None:
            raise _not_kept(ended.error)
        return text

    async def _spend(self, target: Target, usage: Mapping[str, int]) -> None:
        """Store the usage of an answer if the provider has reported any; if storing fails, the usage is lost."""
        now, model = self.clock.now(), model_of(target)
        spent = OtherRequest(target.persona.slug, target.thread_id, self.purpose, model, now, usage)
        with suppress(StorageError):
            if usage:
                await self.context.store.write(usage_rows.store, [spent])


def _not_kept(error: ModelError) -> ModelError:
    """Return an error that does not say that the text is kept, because an incomplete summary is not."""
    problem, _, advice = str(error).partition(ARRIVED)
    return ModelError(problem.strip(), advice=advice.strip())


def too_small(model: str, budget_tokens: int) -> ModelError:
    """Return the error for a model whose requests have no room for any part of the conversation."""
    problem = f"{model} takes requests of {budget_tokens:,} tokens, which are too few for this."
    return ModelError(problem, advice="/set summary_model NAME chooses another model for summaries and facts.")


def model_of(target: Target) -> str:
    """Return the model that writes the summaries of a target's thread, and distils it."""
    return target.persona.settings.summary_model or target.choice.model


def can_summarize(target: Target) -> bool:
    """Return whether the model for summaries can write them; ELIZA cannot."""
    return model_of(target) != ELIZA


_SMALLEST_SHARE = 4
"""A summary in the user's own words may have at most the tokens of a request divided by this number."""

_LONGEST_SUMMARY = 2
"""If a summary is longer than this number times the length asked for, its middle is left out."""


@dataclass(slots=True)
class Folding:
    """Folds threads, one fold at a time in each. After a failure, automatic folds wait a few turns in all processes.

    ``tell`` takes notices; without it, nothing is folded in the background. ``in_focus`` returns the thread in which
    the user reads them.
    """

    context: Context
    summarizer: Summarizer
    tell: Callable[[str], None] | None = None
    in_focus: Callable[[], int] = lambda: 0
    _told: dict[int, set[str]] = field(default_factory=dict, init=False)
    _locks: dict[int, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock), init=False)
    _background: dict[int, asyncio.Task[None]] = field(default_factory=dict, init=False)

    async def fold_all(self, target: Target, focus: str) -> tuple[Summary, int]:
        """Fold everything but the last two turns, on request; return the summary and the number of messages folded."""
        if not can_summarize(target):
            raise CommandError("ELIZA cannot summarise. Choose another model with /model or /set summary_model NAME.")
        async with self._locks[target.thread_id]:
            snapshot = await self._snapshot(target)
            messages = tuple(row for group in foldable(snapshot.view.unfolded) for row in group)
            if not (number := len(without_eliza(usable(messages)))):
                raise CommandError("Not enough messages to compact: the last two turns always stay word for word.")
            summary = await self._carried_out(snapshot, messages, focus, automatic=False)
        if summary is None:
            raise CommandError("Nothing was summarised: the context changed in the meantime. Try again.")
        return summary, number

    async def reword(self, snapshot: ContextSnapshot, content: str) -> Summary | None:
        """Store the user's own words as the summary; ``None`` if the context has changed meanwhile."""
        count = await asyncio.to_thread(self.context.counter.count, content)
        most = snapshot.budget.room.budget // _SMALLEST_SHARE
        if count > most:
            raise MessageRefusedError(
                f"The summary has ~{count:,} tokens; it may have at most {most:,}, because every request contains it."
            )
        new = Summary(0, None, (), content, count, None, self.summarizer.clock.now())
        return await self.context.store.write(self._stored, snapshot, (), new, automatic=False)

    async def is_worth_trying(self, target: Target) -> bool:
        """Return whether a fold may help: a model can write it, no fold failed lately, and it is time for one."""
        may_fold = can_summarize(target) and not await self._is_resting(target)
        return may_fold and bool(due(await self._snapshot(target)))

    async def at_once(self, target: Target) -> str:
        """Fold now, unless a background fold has just made room or failed; return a notice, or an empty text."""
        running = self._background.get(target.thread_id)
        if running is not None:
            await asyncio.wait({running})
        return "" if await self._is_resting(target) else await self._folded(target)

    def begin_in_background(self, target: Target) -> None:
        """Fold in the background if it is time, unless a fold is running already."""
        if self.tell is None or target.thread_id in self._background:
            return
        task = asyncio.create_task(self._fold_in_background(target, self.tell))
        self._background[target.thread_id] = task
        task.add_done_callback(lambda _: self._background.pop(target.thread_id))

    def news(self, target: Target, shortfalls: Mapping[str, str]) -> list[str]:
        """Return the sentences of ``shortfalls`` whose subjects were not among the shortfalls of the last request."""
        told, self._told[target.thread_id] = self._told.get(target.thread_id, ()), {*shortfalls}
        return [sentence for subject, sentence in shortfalls.items() if subject not in told]

    async def close(self) -> None:
        """Cancel folds in the background, and wait until they have ended."""
        running = [*self._background.values()]
        for each in running:
            each.cancel()
        if running:
            await run_to_completion(asyncio.wait(running))

    async def _fold_in_background(self, target: Target, tell: Callable[[str], None]) -> None:
        # The next turn meets the same error and reports it.
        with suppress(ChorusError):
            if await self.is_worth_trying(target) and (notice := await self._folded(target)):
                is_here = self.in_focus() in {0, target.thread_id}
                tell(notice if is_here else f"In {target.thread_label('')}: {notice}")

    async def _folded(self, target: Target) -> str:
        """If it is time, fold the oldest turns, so that a request takes about half of the limit; return a notice."""
        try:
            async with self._locks[target.thread_id]:
                # The fold that held the lock before may have made room.
                snapshot = await self._snapshot(target)
                messages = due(snapshot)
                summary = await self._carried_out(snapshot, messages, "", automatic=True) if messages else None
        except (ModelError, StorageError) as error:
            # If the failure cannot be stored, the next turn tries again.
            with suppress(StorageError):
                await self.context.store.write(snapshot_rows.store_failure, target.thread_id)
            failed = "Chorus could not summarise the older part of the conversation"
            return f"{failed}: {error} Chorus will try again later."
        if summary is None:
            return ""
        number = len(expanded(summary.stands_for))
        return (
            f"The model now gets a summary of the oldest {number:,} messages. /context summary shows it; "
            f"/context undo {summary.number} brings them back."
        )

    async def _is_resting(self, target: Target) -> bool:
        return await self.context.store.read(snapshot_rows.is_resting, target.thread_id)

    async def _snapshot(self, target: Target) -> ContextSnapshot:
        return await self.context.snapshot(target, self.summarizer.clock.now())

    async def _carried_out(
        self, snapshot: ContextSnapshot, messages: tuple[Message, ...], focus: str, *, automatic: bool
    ) -> Summary | None:
        """Have the oldest messages summarised, and store the fold; ``None`` if the context has changed meanwhile."""
        target, view, room = snapshot.request_settings.target, snapshot.view, snapshot.budget.summary_room
        entries = entries_of(without_eliza(usable(messages)), target.persona.speakers)
        if not entries:
            return None
        so_far = view.summary.content if view.summary else ""
        written = await self.summarizer.extended(target, task(room, focus), so_far, entries)
        new = await asyncio.to_thread(self._measured, target, written, room * _LONGEST_SUMMARY)
        storing = self.context.store.write(self._stored, snapshot, messages, new, automatic=automatic)
        stored, stopped = await run_to_completion(storing)
        # If the user stopped the fold too late, the command says that it was done.
        if stopped and (automatic or stored is None):
            raise asyncio.CancelledError
        return stored

    def _measured(self, target: Target, text: str, longest_tokens: int) -> Summary:
        count = self.context.counter.count
        content = cut_in_the_middle(text, count(text), longest_tokens, count)
        return Summary(0, None, (), content, count(content), model_of(target), self.summarizer.clock.now())

    def _stored(
        self,
        connection: Connection,
        snapshot: ContextSnapshot,
        messages: tuple[Message, ...],
        new: Summary,
        *,
        automatic: bool,
    ) -> Summary | None:
        """Store a fold if the boundary, the summary and the messages are still the same as in ``snapshot``."""
        known, target = snapshot.view, snapshot.request_settings.target
        ids = [row.id for row in known.messages[: known.folded_number + len(messages)]]
        present = self.context.read(connection, snapshot.request_settings, RequestStart(known.cutoff)).view
        is_same = (present.boundary, present.summary) == (known.boundary, known.summary)
        if not is_same or [row.id for row in present.messages[: len(ids)]] != ids:
            return None
        slug, thread_id = target.persona.slug, target.thread_id
        act = Fold(runs(ids), rewords=not messages)
        made = NewOperation(slug, act, new.created_at, thread_id, automatic=automatic)
        operation = operation_rows.introduce(connection, made)
        summary = replace(
            new,
            operation_id=operation.id,
            boundary_id=present.boundary_id,
            stands_for=act.folded,
            number=operation.number,
        )
        snapshot_rows.store(connection, slug, thread_id, summary)
        return summary
