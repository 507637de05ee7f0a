"""Folds: when and how the oldest turns of a conversation become part of its summary.

A fold extends the summary by the turns that are new to it and is an operation of the journal, so that it can be taken
back. It is stored only if the context has not changed meanwhile.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rules import folding
from chorus_cli.context.rules.plan import usable
from chorus_cli.context.rules.view import Summary
from chorus_cli.core.errors import ChorusError, MessageRefusedError, ModelError, StorageError
from chorus_cli.core.text.phrases import cut_in_the_middle
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Fold
from chorus_cli.log.rules.messages import expanded, runs
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.turns.folding.summarizer import model_of
from chorus_cli.turns.rules import entries_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from chorus_cli.context.rules.plan import ContextSnapshot
    from chorus_cli.context.service.context import Context
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.storage.store import Connection, Store
    from chorus_cli.turns.folding.summarizer import Summarizer

_SMALLEST_SHARE = 4
"""A summary in the user's own words takes at most one in so many tokens of a request."""

_LONGEST_SUMMARY = 2
"""How many times as long as asked for a summary may be before its middle is left out."""


@dataclass(frozen=True, slots=True)
class PlannedFold:
    """A fold of ``messages``, the oldest of a snapshot that its summary does not stand for yet."""

    snapshot: ContextSnapshot
    messages: tuple[Message, ...]

    @property
    def message_ids(self) -> list[int]:
        """The messages that the new summary stands for."""
        view = self.snapshot.view
        return [row.id for row in view.messages[: view.folded_number + len(self.messages)]]


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A summary about to be stored; ``model`` is ``None`` for the user's own words."""

    content: str
    token_count: int
    model: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Compacted:
    """The outcome of a fold on request: ``messages`` are new to the summary, which ``extends`` another or is the first.

    The summary is ``None`` if there was nothing to fold, or the context was changed meanwhile.
    """

    summary: Summary | None
    messages: int
    extends: bool


class Folding:
    """Folds threads, one at a time each."""

    def __init__(self, context: Context, summarizer: Summarizer, clock: Clock) -> None:
        self._context = context
        self._summarizer = summarizer
        self._clock = clock
        self._locks: dict[int, asyncio.Lock] = {}

    def is_possible(self, target: Target) -> bool:
        """Return whether there is a model that writes summaries."""
        return self._summarizer.can_summarize(target)

    async def is_due(self, target: Target) -> bool:
        """Return whether it is time to fold, and there is something to be folded and a model for it."""
        return self.is_possible(target) and bool(folding.due(await self._snapshot(target)))

    async def fold(self, target: Target) -> Summary | None:
        """Fold as many of the oldest turns as bring the next request to about half of the limit, if it is time.

        Return ``None`` if it is not, there is nothing to fold, or the context has changed meanwhile.
        """
        async with self._lock(target):
            # The fold that held the lock before may have made room.
            snapshot = await self._snapshot(target)
            messages = folding.due(snapshot)
            return await self._carried_out(PlannedFold(snapshot, messages), "", automatic=True) if messages else None

    async def fold_all(self, target: Target, focus: str) -> Compacted:
        """Fold everything but the last two turns, on request."""
        async with self._lock(target):
            snapshot = await self._snapshot(target)
            messages = tuple(row for group in folding.foldable(snapshot.view.unfolded) for row in group)
            if not usable(messages):
                return Compacted(None, 0, extends=False)
            summary = await self._carried_out(PlannedFold(snapshot, messages), focus, automatic=False)
            return Compacted(summary, len(usable(messages)), extends=snapshot.view.summary is not None)

    async def reword(self, snapshot: ContextSnapshot, content: str) -> Summary | None:
        """Store the user's own words as the summary; ``None`` if the context has changed meanwhile.

        Raises:
            MessageRefusedError: they would take more than a quarter of every request.
        """
        count = await asyncio.to_thread(self._context.counter.count, content)
        most = snapshot.budget.room.budget // _SMALLEST_SHARE
        if count > most:
            raise MessageRefusedError(
                f"The summary has ~{count:,} tokens, which every request would have to carry; it may have {most:,}."
            )
        new = NewSummary(content, count, None, self._clock.now())
        return await self._context.store.write(self._stored, PlannedFold(snapshot, ()), new, automatic=False)

    def _lock(self, target: Target) -> asyncio.Lock:
        return self._locks.setdefault(target.thread_id, asyncio.Lock())

    async def _snapshot(self, target: Target) -> ContextSnapshot:
        return await self._context.snapshot(target, self._clock.now())

    async def _carried_out(self, fold: PlannedFold, focus: str, *, automatic: bool) -> Summary | None:
        """Have the summary written, and store it even if the caller is cancelled meanwhile."""
        target, view, budget = fold.snapshot.target, fold.snapshot.view, fold.snapshot.budget
        task = folding.task(budget.summary_room, focus)
        entries = entries_of(usable(fold.messages), target.persona.name)
        so_far = view.summary.content if view.summary else ""
        async with self._summarizer.spending() as spent:
            written = await self._summarizer.extended(target, task, so_far, entries, spent)
            new = await asyncio.to_thread(self._measured, target, written, budget.summary_room * _LONGEST_SUMMARY)
            storing = spent.stored_with(lambda c: self._stored(c, fold, new, automatic=automatic))
            stored, stopped = await run_to_completion(storing)
        # A user who stopped the fold too late is told that it was done.
        if stopped and (automatic or stored is None):
            raise asyncio.CancelledError
        return stored

    def _measured(self, target: Target, text: str, longest_tokens: int) -> NewSummary:
        count = self._context.counter.count
        content = cut_in_the_middle(text, count(text), longest_tokens, count)
        return NewSummary(content, count(content), model_of(target), self._clock.now())

    def _stored(self, connection: Connection, fold: PlannedFold, new: NewSummary, *, automatic: bool) -> Summary | None:
        """Store a fold if the boundary, the summary and the messages are still those that it was made of."""
        known, target, ids = fold.snapshot.view, fold.snapshot.target, fold.message_ids
        present = self._context.read_since(connection, fold.snapshot.request_settings, known.cutoff).view
        is_same = present.boundary == known.boundary and _fold_id(present.summary) == _fold_id(known.summary)
        if not is_same or [row.id for row in present.messages[: len(ids)]] != ids:
            return None
        slug, thread_id = target.persona.slug, target.thread_id
        act = Fold(runs(ids), rewords=not fold.messages)
        operation = operation_rows.introduce(
            connection, NewOperation(slug, act, new.created_at, thread_id, automatic=automatic)
        )
        summary = Summary(
            operation.id,
            present.boundary_id,
            act.folded,
            new.content,
            new.token_count,
            new.model,
            operation.created_at,
            operation.number,
        )
        snapshot_rows.store(connection, slug, thread_id, summary)
        return summary


def _fold_id(summary: Summary | None) -> int:
    return summary.operation_id if summary else 0


_FAILED = "a failed fold"


class FoldSchedule:
    """Decides when to fold; a failure is told once, and tried again a few turns later by any process.

    ``tell`` takes notices of folds in the background; without it there are none. ``told`` are the subjects of the
    notices given already, by the thread.
    """

    def __init__(
        self,
        store: Store,
        folding: Folding,
        report_bug: Callable[[Exception], object],
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._folding = folding
        self._report_bug = report_bug
        self._tell = tell
        self.has_background = tell is not None
        self.told: dict[int, set[str]] = {}
        self._background: dict[int, asyncio.Task[None]] = {}

    def forget_crowded(self, target: Target) -> None:
        """Forget the notices of crowded requests, because the request of this turn is none."""
        self._told_of(target).intersection_update({_FAILED})

    async def is_worth_trying(self, target: Target) -> bool:
        """Return whether a fold may help: there is something to fold, a model, and the last try is a while ago."""
        return not await self._is_resting(target) and await self._folding.is_due(target)

    async def at_once(self, target: Target) -> str:
        """Fold now, unless a background fold has just made room or failed; return a notice for the user."""
        running = self._background.get(target.thread_id)
        if running is not None:
            await asyncio.wait({running})
        return "" if await self._is_resting(target) else await self._folded(target)

    def begin_in_background(self, target: Target) -> None:
        """Fold in the background if it is time, unless a fold is running already."""
        running = self._background.get(target.thread_id)
        if self._tell is None or (running is not None and not running.done()):
            return
        self._background[target.thread_id] = asyncio.create_task(self._fold_in_background(target, self._tell))

    def news(self, target: Target, shortfalls: Mapping[str, str]) -> list[str]:
        """Return the warnings, by their subjects, that the previous request did not have."""
        told = self._told_of(target)
        new = [sentence for subject, sentence in shortfalls.items() if subject not in told]
        self.told[target.thread_id] = {*shortfalls, *(told & {_FAILED})}
        return new

    async def close(self) -> None:
        """Cancel running folds; the summaries before them stay."""
        tasks = {task for task in self._background.values() if not task.done()}
        for task in tasks:
            task.cancel()
        if tasks:
            await run_to_completion(asyncio.wait(tasks))

    async def _fold_in_background(self, target: Target, tell: Callable[[str], None]) -> None:
        try:
            if not await self.is_worth_trying(target):
                return
            notice = await self._folded(target)
        except ChorusError:
            # The next turn meets the same error and tells it.
            return
        except Exception as error:  # noqa: BLE001 - nothing awaits this task, and the chat goes on without it
            self._report_bug(error)
            return
        if notice:
            tell(notice)

    async def _folded(self, target: Target) -> str:
        try:
            summary = await self._folding.fold(target)
        except (ModelError, StorageError) as error:
            return await self._failed(target, error)
        if summary is None:
            return ""
        self._told_of(target).clear()
        return folded_text(summary)

    async def _failed(self, target: Target, error: ChorusError) -> str:
        # A failure that cannot be stored now is met again by the next turn.
        with suppress(StorageError):
            await self._store.write(snapshot_rows.store_failure, target.thread_id)
        if _FAILED in self._told_of(target):
            return ""
        self._told_of(target).add(_FAILED)
        return f"The older part of the conversation could not be summarised: {error} It is tried again by itself."

    async def _is_resting(self, target: Target) -> bool:
        return await self._store.read(snapshot_rows.is_resting, target.thread_id)

    def _told_of(self, target: Target) -> set[str]:
        """Return the subjects of the notices given already in a thread."""
        return self.told.setdefault(target.thread_id, set())


def folded_text(summary: Summary) -> str:
    """Return the notice of a fold: how many messages, how to read the summary, how to undo it."""
    number = len(expanded(summary.stands_for))
    return (
        f"The oldest {number:,} messages in context are summarised now. /context summary shows how; "
        f"/context undo {summary.number} takes it back."
    )
