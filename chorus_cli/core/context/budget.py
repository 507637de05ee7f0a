"""How large a request may be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from chorus_cli.core.context.calibration import Calibration

if TYPE_CHECKING:
    from collections.abc import Sequence

TOKENS_PER_MESSAGE = 4

FULLEST_SHARE = 7 / 8
"""How much of what it may have a request takes where the next one is to have room too."""

_ASIDE_SHARE = 0.7
_UNDONE_SHARE = 0.95
_SUMMARY_SHARE = 1 / 8
_LONGEST_SUMMARY_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class Limit:
    """How many tokens a model takes in all, and who says so."""

    tokens: int
    source: str


@dataclass(frozen=True, slots=True)
class Room:
    """What a request may have, in tokens as they are estimated here: at most ``budget``, and ``half`` after a fold."""

    budget: int
    half: int


@dataclass(frozen=True, slots=True)
class Budget:
    """The model's limit, the part of it that a request may use, and what an estimate is to be multiplied with."""

    limit: Limit
    tokens: int
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def room(self) -> Room:
        """The same in tokens as they are estimated."""
        return Room(self._estimated(self.tokens), self._estimated(min(self.limit.tokens // 2, self.tokens)))

    @property
    def summary_room(self) -> int:
        """How many tokens a summary of the older part may have."""
        return min(_LONGEST_SUMMARY_TOKENS, int(self.limit.tokens * _SUMMARY_SHARE))

    @property
    def aside_tokens(self) -> int:
        """From how many tokens on the older part is folded behind the talk, before it has to be."""
        return int(min(_ASIDE_SHARE * self.limit.tokens, FULLEST_SHARE * self.tokens))

    def corrected(self, estimated_tokens: int) -> int:
        """Return what the provider is expected to count."""
        return math.ceil(estimated_tokens * self.calibration.factor)

    def corrected_parts(self, estimated_tokens: Sequence[int]) -> Sequence[int]:
        """Return what the provider is expected to count of each part; together it is what it counts of the whole."""
        through = [self.corrected(tokens) for tokens in accumulate(estimated_tokens, initial=0)]
        return [after - before for before, after in pairwise(through)]

    def _estimated(self, tokens: int) -> int:
        return int(tokens / self.calibration.factor)


def budget(
    limit: Limit, usage_threshold: float, max_output_tokens: int | None, calibration: Calibration | None = None
) -> Budget:
    """Leave room for the reply: a request takes at most the threshold's share, and never what the reply may need."""
    tokens = max(0, min(int(usage_threshold * limit.tokens), limit.tokens - (max_output_tokens or 0)))
    return Budget(limit, tokens, calibration or Calibration())


def stretched(allowed: Budget, max_output_tokens: int | None) -> Budget:
    """Return what a request may have after a fold was taken back: nearly the whole limit, before there is another."""
    most = min(int(_UNDONE_SHARE * allowed.limit.tokens), allowed.limit.tokens - (max_output_tokens or 0))
    return Budget(allowed.limit, max(allowed.tokens, most), allowed.calibration)
