"""Keeps conversations within their model's limit: their oldest turns are folded into a summary, and never forgotten.

A fold extends the summary by the turns that are new to it and is an operation of the journal, so that it can be taken
back. It is stored only if the context is still what it was made of.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.context import folding
from chorus_cli.core.context.assembly import usable
from chorus_cli.core.context.summary import Summary
from chorus_cli.core.context.tokens import total_tokens
from chorus_cli.core.errors import MessageRefusedError
from chorus_cli.core.log.operations import Kind, fold_is_undone
from chorus_cli.core.log.runs import runs
from chorus_cli.core.sessions.slices import transcript
from chorus_cli.core.text.cutting import cut_in_the_middle
from chorus_cli.services.cancellation import run_to_completion
from chorus_cli.services.folding.summarizer import model_of
from chorus_cli.storage.sqlite.context import summary_rows
from chorus_cli.storage.sqlite.context.rows import context_rows, view_of
from chorus_cli.storage.sqlite.log import operation_rows
from chorus_cli.storage.sqlite.log.operation_rows import NewOperation

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.core.context.budget import Budget
    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.core.context.view import View
    from chorus_cli.core.log.messages import Message
    from chorus_cli.ports import Clock
    from chorus_cli.services.context.context import Context
    from chorus_cli.services.folding.summarizer import Summarizer
    from chorus_cli.storage.sqlite.store import Connection

_LEAST_GAIN = 1 / 8
"""The share of the limit that a fold has to bring before it has to be."""

_MOST_OWN_WORDS = 4
_LONGEST_SUMMARY = 2
"""How many times as long as it was asked to be a summary may be, before its middle is left out."""


@dataclass(frozen=True, slots=True)
class Fold:
    """What a fold is made of: a view, how many more of its messages the summary is to stand for, and the budget."""

    view: View
    messages: tuple[Message, ...]
    allowed: Budget

    @property
    def message_ids(self) -> list[int]:
        """The messages that the new summary stands for."""
        return [row.id for row in self.view.messages[: self.view.folded_number + len(self.messages)]]


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A summary about to be stored; ``model`` is ``None`` for the user's own words."""

    content: str
    token_count: int
    model: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Compacted:
    """What came of a wish to fold: ``messages`` are new to the summary, which ``extends`` another or is the first.

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
        return self.is_possible(target) and await self._planned(target) is not None

    async def fold(self, target: Target) -> Summary | None:
        """Fold as many of the oldest turns as bring the next request to about half of the limit, if it is time.

        Return ``None`` if it is not, there is nothing to fold, or the context has changed meanwhile.

        Raises:
            ModelError: the summary could not be written; the one before stands.
            StorageError: it could not be stored.
        """
        async with self._lock(target):
            # Whoever had the lock before may have made room.
            fold = await self._planned(target)
            return await self._carried_out(target, fold, "", automatic=True) if fold else None

    async def fold_all(self, target: Target, focus: str) -> Compacted:
        """Fold everything but the last two turns, at the user's wish.

        Raises:
            ModelError: the summary could not be written; the one before stands.
            StorageError: it could not be stored.
        """
        async with self._lock(target):
            view, operations = await self._context.standing(target, self._clock.now())
            messages = tuple(row for group in folding.foldable(view.verbatim) for row in group)
            if not usable(messages):
                return Compacted(None, 0, extends=False)
            fold = Fold(view, messages, await self._context.budget(target, operations))
            summary = await self._carried_out(target, fold, focus, automatic=False)
            return Compacted(summary, len(usable(messages)), extends=view.summary is not None)

    async def reword(self, target: Target, view: View, content: str) -> Summary | None:
        """Store the user's own words as the summary of what it stands for now; ``None`` if that has changed.

        Raises:
            MessageRefusedError: they would take more than a quarter of every request.
        """
        allowed = await self._context.budget(target)
        count = await asyncio.to_thread(self._context.counter.count, content)
        most = allowed.room.budget // _MOST_OWN_WORDS
        if count > most:
            raise MessageRefusedError(
                f"The summary has ~{count:,} tokens, which every request would have to carry; it may have {most:,}."
            )
        new = NewSummary(content, count, None, self._clock.now())
        return await self._context.store.write(_stored, target, Fold(view, (), allowed), new, automatic=False)

    def _lock(self, target: Target) -> asyncio.Lock:
        return self._locks.setdefault(target.thread_id, asyncio.Lock())

    async def _planned(self, target: Target) -> Fold | None:
        """Return what to fold if it is time: before a request is too large, when that brings much, and when it is."""
        view, operations = await self._context.standing(target, self._clock.now())
        allowed = await self._context.budget(target, operations)
        foundation = await self._context.foundation(target.persona)
        spoken_tokens = total_tokens(usable(view.verbatim))
        tokens = allowed.corrected(foundation.with_summary(view.summary).tokens + spoken_tokens)
        if tokens <= (allowed.tokens if fold_is_undone(operations) else allowed.aside_tokens):
            return None
        planned_tokens = foundation.tokens + allowed.summary_room + spoken_tokens
        messages = folding.chosen(folding.foldable(view.verbatim), planned_tokens, allowed.room.half)
        gain = allowed.corrected(total_tokens(usable(messages)))
        if not messages or (tokens <= allowed.tokens and gain < _LEAST_GAIN * allowed.limit.tokens):
            return None
        return Fold(view, tuple(messages), allowed)

    async def _carried_out(self, target: Target, fold: Fold, focus: str, *, automatic: bool) -> Summary | None:
        """Have the summary written, and store it to its end, even if whoever waits for it is stopped meanwhile."""
        task = folding.task(fold.allowed.summary_room, focus)
        entries = transcript(usable(fold.messages), target.persona.name)
        so_far = fold.view.summary.content if fold.view.summary else ""
        written = await self._summarizer.extended(target, task, so_far, entries)
        new = await asyncio.to_thread(self._measured, target, written, fold.allowed.summary_room * _LONGEST_SUMMARY)
        stored, stopped = await run_to_completion(
            self._context.store.write(_stored, target, fold, new, automatic=automatic)
        )
        # Whoever asked for it and stopped it too late is told what was done.
        if stopped and (automatic or stored is None):
            raise asyncio.CancelledError
        return stored

    def _measured(self, target: Target, text: str, longest_tokens: int) -> NewSummary:
        count = self._context.counter.count
        content = cut_in_the_middle(text, count(text), longest_tokens, count)
        return NewSummary(content, count(content), model_of(target), self._clock.now())


def _stored(connection: Connection, target: Target, fold: Fold, new: NewSummary, *, automatic: bool) -> Summary | None:
    """Store a fold if the context is still the one that it was made of: the same boundary, summary and messages."""
    slug, thread_id = target.persona.slug, target.thread_id
    ids = fold.message_ids
    present = view_of(context_rows(connection, slug, thread_id, fold.view.cutoff), thread_id)
    same = present.base == fold.view.base and _operation_id(present.summary) == _operation_id(fold.view.summary)
    if not same or [row.id for row in present.messages[: len(ids)]] != ids:
        return None
    operation = operation_rows.introduce(
        connection,
        NewOperation(
            slug,
            Kind.COMPACT,
            new.created_at,
            thread_id=thread_id,
            folds=runs(ids),
            automatic=automatic,
            rewords=not fold.messages,
        ),
    )
    base_id = present.base.id if present.base else None
    summary = Summary(
        operation.id, base_id, operation.folds, new.content, new.token_count, new.model, operation.created_at
    )
    summary_rows.store(connection, slug, thread_id, summary)
    return summary


def _operation_id(summary: Summary | None) -> int:
    return summary.operation_id if summary else 0
