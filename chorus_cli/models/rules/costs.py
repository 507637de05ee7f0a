"""Computes the costs of replies and other requests from the providers' token counts and the prices per token."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.text.phrases import dollars, enumerated

PricesOf = Callable[[str], "Prices | None"]

CACHED, WRITTEN, THOUGHT = "cached_tokens", "cache_write_tokens", "reasoning_tokens"
"""Keys in a usage: prompt tokens that a cache served, prompt tokens that a cache stored, and tokens of thoughts."""

_WARNING_SHARE = 0.8


class Prices(NamedTuple):
    """Prices in USD per token; ``cached`` and ``written`` are for prompt tokens that a cache served or stored."""

    prompt: float
    completion: float
    cached: float
    written: float


FREE = Prices(0, 0, 0, 0)


class TokenUse(NamedTuple):
    """Numbers of tokens. ``prompt`` includes ``cached`` and ``written``, and ``completion`` includes ``thought``."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    written: int = 0
    thought: int = 0

    def cost(self, prices: Prices) -> float:
        """Return the cost in USD."""
        plain = max(0, self.prompt - self.cached - self.written)
        counts = (plain, self.completion, self.cached, self.written)
        return sum(count * price for count, price in zip(counts, prices, strict=True))


_NO_TOKENS = TokenUse()


class OtherRequest(NamedTuple):
    """A request whose answer is not a message but a summary or a list of facts; the answer arrived ``at`` this time."""

    persona: str
    thread_id: int
    purpose: str
    model: str
    at: datetime
    usage: Mapping[str, int]


class ModelUse(NamedTuple):
    """Tokens of one ``model`` (empty if unknown) in one thread and minute; ``summaries`` counts each `OtherRequest`."""

    persona: str
    thread_id: int
    model: str
    at: datetime
    replies: int
    tokens: TokenUse
    summaries: int = 0


@dataclass(frozen=True, slots=True)
class CostLine:
    """A line of a cost report. ``cost`` is in USD, ``None`` if unknown. ``unpriced`` lists models without a price."""

    key: str
    replies: int = 0
    tokens: TokenUse = _NO_TOKENS
    cost: float | None = None
    unpriced: tuple[str, ...] = ()
    summaries: int = 0

    @property
    def cost_text(self) -> str:
        """The cost as a text; a plus sign means that models without a known price are left out."""
        return "unknown" if self.cost is None else f"{dollars(self.cost)}{'+' if self.unpriced else ''}"

    def as_json(self) -> dict[str, JsonValue]:
        """Return the line as a JSON object."""
        return {
            "key": self.key,
            "replies": self.replies,
            "summaries": self.summaries,
            "prompt_tokens": self.tokens.prompt,
            CACHED: self.tokens.cached,
            WRITTEN: self.tokens.written,
            "completion_tokens": self.tokens.completion,
            THOUGHT: self.tokens.thought,
            "cost_usd": self.cost,
            "unpriced_models": list(self.unpriced),
        }


def cost_lines(uses: Iterable[ModelUse], prices: PricesOf, key: Callable[[ModelUse], str]) -> list[CostLine]:
    """Group ``uses`` by ``key``, and return a line for each group, sorted by key."""
    groups: defaultdict[str, list[ModelUse]] = defaultdict(list)
    for use in uses:
        groups[key(use)].append(use)
    return [total(groups[named], prices, named) for named in sorted(groups)]


def total(uses: Iterable[ModelUse], prices: PricesOf, key: str = "total") -> CostLine:
    """Return one line with the sums over all ``uses``."""
    listed = [(use, prices(use.model)) for use in uses]
    costs = [use.tokens.cost(price) for use, price in listed if price]
    return CostLine(
        key,
        sum(use.replies for use, _ in listed),
        TokenUse(*map(sum, zip(*(use.tokens for use, _ in listed), strict=True))),
        sum(costs, 0.0) if costs or not listed else None,
        tuple(dict.fromkeys(use.model for use, price in listed if not price)),
        sum(use.summaries for use, _ in listed),
    )


class DaySpending(NamedTuple):
    """The known cost of one day's requests, and the budget for a day, both in USD."""

    spent: float
    budget: float

    @property
    def is_near(self) -> bool:
        """Whether at least 80 % of the budget is spent."""
        return self.spent >= _WARNING_SHARE * self.budget

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent."""
        return self.spent >= self.budget

    @property
    def sentence(self) -> str:
        """A sentence for the user about the state of the budget."""
        share = f"{self.spent / self.budget:.0%}"
        return f"Today's requests have cost {dollars(self.spent)}, {share} of your budget of {dollars(self.budget)}."


def without_price(line: CostLine) -> str:
    """Return a sentence that names the models without a known price; empty if there are none."""
    named = [model or "an unnamed model" for model in line.unpriced]
    return f"The price of {enumerated(named)} is not known." if named else ""
