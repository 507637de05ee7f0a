"""What a persona sees now: the view of a thread, and the request that it makes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from chorus_cli.core import view as views
from chorus_cli.core.assembly import Foundation, system_text
from chorus_cli.core.budget import Budget, budget
from chorus_cli.core.errors import StorageError
from chorus_cli.storage import message_log
from chorus_cli.storage.context_rows import context_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.core.budget import Limit
    from chorus_cli.core.messages import Message
    from chorus_cli.core.persona import Persona
    from chorus_cli.core.view import View
    from chorus_cli.ports import TokenCounter
    from chorus_cli.services.place import Place
    from chorus_cli.storage.context_rows import ContextRows
    from chorus_cli.storage.database import Store
    from chorus_cli.storage.message_log import LeftOut


@dataclass(frozen=True, slots=True)
class Context:
    """Reads what is in context and measures it."""

    store: Store
    counter: TokenCounter
    limit_of: Callable[[str], Limit]
    dollars_per_input_token: Callable[[str], float | None]
    _foundations: dict[tuple[str, str], Foundation] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def seen(self, place: Place, now: datetime) -> View:
        """Return the view at ``now``, every message of it counted."""
        since = views.cutoff(now, place.persona.settings.context_hours)
        rows = await self.store.read(context_rows, place.persona.slug, place.thread_id, since)
        return await self.view(place, rows, since)

    async def view(self, place: Place, rows: ContextRows, since: datetime) -> View:
        """Return the view that rows of the store make, every message of it counted."""
        view = views.view(place.thread_id, rows.messages, rows.operations, since)
        return replace(view, messages=await self.counted(view.messages))

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

    async def budget(self, place: Place) -> Budget:
        """Return how large a request to the model of ``place`` may be."""
        chosen = place.persona.settings
        limit = await asyncio.to_thread(self.limit_of, place.choice.model)
        if chosen.context_token_limit is not None:
            limit = replace(limit, tokens=chosen.context_token_limit, source="context_token_limit")
        return budget(limit, chosen.context_usage_threshold, chosen.max_output_tokens)

    async def input_price(self, model: str) -> float | None:
        """Return what a token of input costs in US dollars, ``None`` where nobody knows."""
        return await asyncio.to_thread(self.dollars_per_input_token, model)

    async def left_out(self, place: Place, view: View) -> Mapping[str, LeftOut]:
        """Return what the view does not reach, by reason."""
        return await self.store.read(message_log.left_out, place.thread_id, view.base, view.cutoff)

    async def counted(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Count the messages that were put in without a count, and store what was found."""
        unknown = [row for row in messages if row.token_count is None]
        if not unknown:
            return tuple(messages)
        counts = await asyncio.to_thread(self._counts, unknown)
        with suppress(StorageError):
            # It only saves the next counting; a view must not fail for it.
            await self.store.write(message_log.store_token_counts, counts)
        return tuple(replace(row, token_count=counts.get(row.id, row.token_count)) for row in messages)

    def _counts(self, messages: Sequence[Message]) -> dict[int, int]:
        count = self.counter.count
        return {row.id: count(row.preamble) + count(row.content) for row in messages}
