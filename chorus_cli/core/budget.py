"""How large a request may be."""

from __future__ import annotations

from dataclasses import dataclass

TOKENS_PER_MESSAGE = 4


@dataclass(frozen=True, slots=True)
class Limit:
    """How many tokens a model takes in all, and who says so."""

    tokens: int
    source: str


@dataclass(frozen=True, slots=True)
class Budget:
    """The model's limit, and the part of it that a request may use."""

    limit: Limit
    tokens: int


def budget(limit: Limit, usage_threshold: float, max_output_tokens: int | None) -> Budget:
    """Leave room for the reply: a request takes at most the threshold's share, and never what the reply may need."""
    return Budget(limit, max(0, min(int(usage_threshold * limit.tokens), limit.tokens - (max_output_tokens or 0))))
