"""Costs of replies and of summaries: tokens as providers report them, priced per token."""

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
"""Names in a usage for what the provider's cache served and stored of the prompt, and for the thoughts in a reply."""

_WARNING_SHARE = 0.8


class Prices(NamedTuple):
    """Prices of a model in USD per token: of prompt, reply, and prompt that the cache served or stored."""

    prompt: float
    completion: float
    cached: float
    written: float


class TokenUse(NamedTuple):
    """Numbers of tokens; ``cached`` and ``written`` are parts of the ``prompt``, ``thought`` of the ``completion``."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    written: int = 0
    thought: int = 0

    def cost(self, prices: Prices) -> float:
        """Return the price in USD."""
        plain = max(0, self.prompt - self.cached - self.written)
        counts = (plain, self.completion, self.cached, self.written)
        return sum(count * price for count, price in zip(counts, prices, strict=True))


_NO_TOKENS = TokenUse()


class OtherRequest(NamedTuple):
    """A request to a model whose answer, which came ``at`` that time, is no message."""

    persona: str
    thread_id: int
    purpose: str
    model: str
    at: datetime
    usage: Mapping[str, int]


class ModelUse(NamedTuple):
    """The tokens of replies or summaries by one model, empty if unnamed, in one thread and one minute."""

    persona: str
    thread_id: int
    model: str
    at: datetime
    replies: int
    tokens: TokenUse
    summaries: int = 0


@dataclass(frozen=True, slots=True)
class CostLine:
    """The cost in USD, if known, of replies and ``summaries``; ``unpriced`` names the models without a price."""

    key: str
    replies: int = 0
    tokens: TokenUse = _NO_TOKENS
    cost: float | None = None
    unpriced: tuple[str, ...] = ()
    summaries: int = 0

    @property
    def cost_text(self) -> str:
        """The cost for people: a sum that lacks models without a price is marked by a plus sign."""
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
    """Return a line for each key, in the order of the keys."""
    groups: defaultdict[str, list[ModelUse]] = defaultdict(list)
    for use in uses:
        groups[key(use)].append(use)
    return [total(groups[named], prices, named) for named in sorted(groups)]


def total(uses: Iterable[ModelUse], prices: PricesOf, key: str = "total") -> CostLine:
    """Return one line of all replies and summaries."""
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
    """The cost of the replies, and of summaries if there are any, of a day and its budget, in USD."""

    spent: float
    budget: float
    has_summaries: bool = False

    @classmethod
    def of(cls, line: CostLine, budget: float) -> DaySpending:
        """Return the spending of a day beside a budget; a model without a known price adds nothing."""
        return cls(line.cost or 0.0, budget, has_summaries=bool(line.summaries))

    @property
    def is_near(self) -> bool:
        """Whether 80 % of the budget are spent."""
        return self.spent >= _WARNING_SHARE * self.budget

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent."""
        return self.spent >= self.budget

    @property
    def sentence(self) -> str:
        """The state of the budget for the user."""
        share, counted = f"{self.spent / self.budget:.0%}", "replies and summaries" if self.has_summaries else "replies"
        spent, budget = dollars(self.spent), dollars(self.budget)
        return f"The {counted} of today have cost {spent}, {share} of your budget of {budget}."


def without_price(line: CostLine) -> str:
    """Name the models without a known price, in a sentence; empty if there are none."""
    named = [model or "an unnamed model" for model in line.unpriced]
    return f"No price is known of {enumerated(named)}." if named else ""
