"""What a persona sees now: the view of a thread, and the request that it makes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from chorus_cli.core.context import calibration
from chorus_cli.core.context.assembly import Foundation, assemble, system_text
from chorus_cli.core.context.budget import Budget, budget, stretched
from chorus_cli.core.context.tokens import text_tokens, total_tokens
from chorus_cli.core.context.view import cutoff
from chorus_cli.core.errors import StorageError
from chorus_cli.core.log.operations import fold_is_undone
from chorus_cli.services.context.held_beginnings import HeldBeginnings
from chorus_cli.services.context.held_cutoffs import HeldCutoffs
from chorus_cli.storage.sqlite import meta_rows
from chorus_cli.storage.sqlite.context import summary_rows
from chorus_cli.storage.sqlite.context.rows import context_rows, view_of
from chorus_cli.storage.sqlite.log import message_rows, operation_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from chorus_cli.core.context.assembly import Prompt
    from chorus_cli.core.context.budget import Limit, Room
    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.core.context.view import View
    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.log.operations import Operation
    from chorus_cli.core.personas.persona import Persona
    from chorus_cli.ports import TokenCounter
    from chorus_cli.storage.sqlite.context.rows import ContextRows
    from chorus_cli.storage.sqlite.store import Connection, Store


@dataclass(frozen=True, slots=True)
class Context:
    """Reads what is in context and measures it."""

    store: Store
    counter: TokenCounter
    limit_of: Callable[[str], Limit]
    dollars_per_input_token: Callable[[str], float | None]
    held: HeldCutoffs = field(default_factory=HeldCutoffs)
    beginnings: HeldBeginnings = field(default_factory=HeldBeginnings)
    _foundations: dict[tuple[str, str], Foundation] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def seen(self, target: Target, now: datetime) -> View:
        """Return the view that a request made at ``now`` would have, every message of it counted."""
        return (await self.standing(target, now))[0]

    async def standing(self, target: Target, now: datetime) -> tuple[View, Sequence[Operation]]:
        """Return that view with the operations that it was computed from."""
        rows = await self.store.read(self.rows, target, now)
        return await self.view(target, rows), rows.operations

    def hold(self, connection: Connection, target: Target, since: datetime, now: datetime) -> None:
        """Keep the beginning of a request that is being made for those that follow it."""
        newest = operation_rows.newest_id(connection, target.persona.slug, target.thread_id)
        self.held.hold(target, since, now, newest)

    def since_before(self, target: Target, last_spoken: datetime | None) -> datetime | None:
        """Return where the window of the last request began, as far as that is known; ``None`` if there was none."""
        if last_spoken is None:
            return None
        return self.held.last(target) or cutoff(last_spoken, target.persona.settings.context_hours)

    def rows(self, connection: Connection, target: Target, now: datetime) -> ContextRows:
        """Return what the view of a request made at ``now`` is computed from, as is all that is shown of it."""
        newest = operation_rows.newest_id(connection, target.persona.slug, target.thread_id)
        since = self.held.cutoff(target, now, newest)
        return context_rows(connection, target.persona.slug, target.thread_id, since)

    async def view(self, target: Target, rows: ContextRows) -> View:
        """Return the view that rows of the store make, every message of it counted."""
        view = view_of(rows, target.thread_id)
        summary = view.summary
        if summary is not None and summary.token_count is None:
            tokens = await asyncio.to_thread(self.counter.count, summary.content)
            summary = replace(summary, token_count=tokens)
            with suppress(StorageError):
                await self.store.write(summary_rows.store_token_count, summary.operation_id, tokens)
        return replace(view, messages=await self.counted(view.messages), summary=summary)

    async def assembled(
        self, target: Target, foundation: Foundation, messages: Sequence[Message], room: Room
    ) -> Prompt:
        """Build a request of messages that are counted; what is too large is cut in a thread."""
        begins_at = self.beginnings.first(target)
        if foundation.tokens + total_tokens(messages) <= room.budget:
            return assemble(foundation, messages, room, self.counter.count, begins_at)
        return await asyncio.to_thread(assemble, foundation, messages, room, self.counter.count, begins_at)

    async def foundation(self, persona: Persona) -> Foundation:
        """Return the system message of a persona, measured; the last one is remembered, for documents may be long."""
        prompt = persona.settings.system_prompt
        text = system_text(prompt, persona.documents)
        known = self._foundations.get((prompt, text))
        if known is not None:
            return known
        prompt_tokens, all_tokens = await asyncio.to_thread(lambda: tuple(map(self.counter.count, (prompt, text))))
        measured = Foundation(text, prompt_tokens, max(0, all_tokens - prompt_tokens))
        self._foundations.clear()
        self._foundations[prompt, text] = measured
        return measured

    async def budget(self, target: Target, operations: Sequence[Operation] = ()) -> Budget:
        """Return how large a request to the model of ``place`` may be; ``operations`` say if a fold was taken back."""
        chosen = target.persona.settings
        limit = await asyncio.to_thread(self.limit_of, target.choice.model)
        if chosen.context_token_limit is not None:
            limit = replace(limit, tokens=chosen.context_token_limit, source="context_token_limit")
        text = await self.store.read(meta_rows.value, meta_rows.calibration_key(target.choice.model))
        allowed = budget(limit, chosen.context_usage_threshold, chosen.max_output_tokens, calibration.read(text))
        return self.budget_after(target, allowed, operations)

    def budget_after(self, target: Target, allowed: Budget, operations: Sequence[Operation]) -> Budget:
        """Return a budget as the operations leave it: a fold that was taken back lets requests be longer."""
        output = target.persona.settings.max_output_tokens
        return stretched(allowed, output) if fold_is_undone(operations) else allowed

    async def learn(self, model: str, estimated_tokens: int, reported_tokens: int) -> None:
        """Remember how far the estimate of a request was off."""
        key = meta_rows.calibration_key(model)
        # What cannot be stored now, the next report says again.
        with suppress(StorageError):
            before = calibration.read(await self.store.read(meta_rows.value, key))
            after = calibration.learned(before, estimated_tokens, reported_tokens)
            if calibration.differ(before, after):
                await self.store.write(meta_rows.store, key, calibration.written(after))

    async def input_price(self, model: str) -> float | None:
        """Return what a token of input costs in US dollars, ``None`` where nobody knows."""
        return await asyncio.to_thread(self.dollars_per_input_token, model)

    async def counted(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Count the messages that were put in without a count, and store what was found."""
        unknown = [row for row in messages if row.token_count is None]
        if not unknown:
            return tuple(messages)
        counts = await asyncio.to_thread(self._counts, unknown)
        with suppress(StorageError):
            # It only saves the next counting; a view must not fail for it.
            await self.store.write(message_rows.store_token_counts, counts)
        return tuple(row._replace(token_count=counts.get(row.id, row.token_count)) for row in messages)

    def _counts(self, messages: Sequence[Message]) -> dict[int, int]:
        return {row.id: text_tokens(row, self.counter.count) for row in messages}
