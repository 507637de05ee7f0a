"""How full a request is: what the line at the bottom of the screen shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meter:
    """The tokens of the next request, the model's limit, and the most that a request may take of it."""

    tokens: int
    limit: int
    budget: int

    @property
    def usage(self) -> float:
        """The share of the limit that is taken."""
        return self.tokens / self.limit

    @property
    def is_full(self) -> bool:
        """Whether the request takes all that it may."""
        return self.tokens >= self.budget
