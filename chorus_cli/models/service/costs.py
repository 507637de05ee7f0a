"""Computes the costs of replies and other requests from the stored usage and the prices of models."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, time
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.time.timestamps import local
from chorus_cli.log.rows import thread_rows
from chorus_cli.models import rows as usage_rows
from chorus_cli.models.rules.costs import FREE, CostLine, DaySpending, ModelUse, Prices, TokenUse, cost_lines, total

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.machine.ports import Clock
    from chorus_cli.storage.store import Store


class Grouping(StrEnum):
    """How a cost report groups the costs into lines."""

    DAY = "day"
    PERSONA = "persona"
    MODEL = "model"
    THREAD = "thread"


class CostReport(NamedTuple):
    """Costs after ``since`` (``None`` for all costs); ``summaries`` sums up all requests but those for replies."""

    grouping: Grouping
    since: datetime | None
    lines: tuple[CostLine, ...]
    total: CostLine
    summaries: CostLine

    def as_json(self) -> dict[str, JsonValue]:
        """Return the report as a JSON object."""
        return {
            "by": self.grouping.value,
            "since": self.since.isoformat() if self.since else None,
            "lines": [line.as_json() for line in self.lines],
            "total": self.total.as_json(),
            "summaries": self.summaries.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Costs:
    """Computes costs; ``prices``, which may read a file, returns a model's prices, or ``None`` if they are unknown."""

    store: Store
    clock: Clock
    prices: Callable[[str], Prices | None]
    _warned_on: set[date] = field(default_factory=set)

    async def report(self, grouping: Grouping, since: datetime | None, persona: str | None = None) -> CostReport:
        """Return the costs of all personas or, if given, of one ``persona``."""
        uses = await self.store.read(usage_rows.uses, since, persona)
        numbers: dict[int, int] = {}
        for slug in {use.persona for use in uses} if grouping is Grouping.THREAD else ():
            numbers |= await self.store.read(thread_rows.numbers, slug)

        keys: dict[Grouping, Callable[[ModelUse], str]] = {
            Grouping.DAY: lambda use: f"{local(use.at):%Y-%m-%d}",
            Grouping.PERSONA: lambda use: use.persona,
            Grouping.MODEL: lambda use: use.model or "unnamed",
            Grouping.THREAD: lambda use: f"{use.persona} #{numbers.get(use.thread_id, use.thread_id)}",
        }

        def computed() -> CostReport:
            lines = tuple(cost_lines(uses, self.prices, keys[grouping]))
            summaries = total((use for use in uses if use.summaries), self.prices, "summaries")
            return CostReport(grouping, since, lines, total(uses, self.prices), summaries)

        return await asyncio.to_thread(computed)

    async def today(self) -> CostLine:
        """Return the cost of the requests of all personas since local midnight."""
        midnight = datetime.combine(local(self.clock.now()).date(), time()).astimezone()
        uses = await self.store.read(usage_rows.uses, midnight)
        return await asyncio.to_thread(total, uses, self.prices)

    async def spending(self, budget: float | None, model: str) -> DaySpending | None:
        """Return today's spending and the daily ``budget``, in USD; ``None`` for a model that is free, or no budget."""
        if budget is None or await asyncio.to_thread(self.prices, model) == FREE:
            return None
        return DaySpending((await self.today()).cost or 0.0, budget)

    async def expected(self, model: str, tokens: TokenUse) -> float | None:
        """Return the expected cost of a request in USD, or ``None`` if the prices of the model are unknown."""
        prices = await asyncio.to_thread(self.prices, model)
        return tokens.cost(prices) if prices else None

    async def of_last_reply(self, thread_id: int) -> float | None:
        """Return the cost in USD of a thread's newest turn that has usage, or ``None`` if the cost is unknown."""
        uses = await self.store.read(usage_rows.uses_of_last_turn, thread_id)
        return (await asyncio.to_thread(total, uses, self.prices)).cost if uses else None

    def warning(self, spending: DaySpending) -> str:
        """Return a sentence if the budget is nearly spent, at most once a day; else an empty text."""
        today = self.clock.now().date()
        if not spending.is_near or today in self._warned_on:
            return ""
        self._warned_on.add(today)
        return spending.sentence
