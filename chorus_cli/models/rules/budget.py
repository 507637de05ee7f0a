"""Tokens: the size of a message, the limit of a model, the budget of a request, and the correction of estimates."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from chorus_cli.attachments.rules.tokens import attachment_tokens
from chorus_cli.log.rules.messages import Message, Role, sent_content

SMALLEST_FACTOR, LARGEST_FACTOR = 0.8, 2.0
_FEWEST_TOKENS = 100
_LEAST_PLAUSIBLE = 0.5
_WEIGHT = 0.3
_ROUNDING = 0.005


@dataclass(frozen=True, slots=True)
class Calibration:
    """The factor that corrects estimates, and the share by which the last corrected estimate was too high."""

    factor: float = 1.0
    error: float | None = None


def learned_calibration(before: Calibration, estimated_tokens: int, reported_tokens: int) -> Calibration:
    """Update the factor, a moving average, unless the estimate is small or the report seems to lack cached tokens."""
    if estimated_tokens < _FEWEST_TOKENS or reported_tokens < _LEAST_PLAUSIBLE * estimated_tokens:
        return before
    ratio = min(max(reported_tokens / estimated_tokens, SMALLEST_FACTOR), LARGEST_FACTOR)
    weight = 1.0 if before.error is None else _WEIGHT
    factor = before.factor + weight * (ratio - before.factor)
    return Calibration(factor, before.factor * estimated_tokens / reported_tokens - 1)


def calibrations_differ(one: Calibration, other: Calibration) -> bool:
    """Return whether the factors or the errors differ by more than 0.005, or only one calibration has an error."""
    if abs(one.factor - other.factor) > _ROUNDING or (one.error is None) != (other.error is None):
        return True
    return abs((one.error or 0) - (other.error or 0)) > _ROUNDING


def written_calibration(calibration: Calibration) -> str:
    """Write a calibration as JSON."""
    return json.dumps({"factor": round(calibration.factor, 4), "error": calibration.error})


def read_calibration(text: str | None) -> Calibration:
    """Read a calibration from JSON; if the text is missing or invalid, return one that corrects nothing."""
    with suppress(ValueError, KeyError, TypeError):
        found = json.loads(text or "")
        factor, error = float(found["factor"]), found["error"]
        if SMALLEST_FACTOR <= factor <= LARGEST_FACTOR:
            return Calibration(factor, None if error is None else float(error))
    return Calibration()


TOKENS_PER_MESSAGE = 4
_MARK_TOKENS = 8
LEAD_TOKENS = _MARK_TOKENS + TOKENS_PER_MESSAGE
"""The tokens of the lead, a line that is sent in the user's name if the first message is not the user's."""

FULLEST_SHARE = 7 / 8
"""A request that takes at most this share of its budget leaves room for the next turn."""

_BACKGROUND_FOLD_SHARE, _UNDONE_SHARE = 0.7, 0.95
_SUMMARY_SHARE, _LONGEST_SUMMARY_TOKENS = 1 / 8, 2_000


@dataclass(frozen=True, slots=True)
class Limit:
    """The context length of a model in tokens, and the source of this figure; ``is_assumed`` if the figure is a guess.

    ``relative`` names the similar model whose length is assumed, if any.
    """

    tokens: int
    source: str
    is_assumed: bool = field(default=False, compare=False)
    relative: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Room:
    """The budget of a request, and ``half``, the target size if a request must shrink; both in estimated tokens."""

    budget: int
    half: int


@dataclass(frozen=True, slots=True)
class Budget:
    """The model's limit, the number of tokens that a request may use, and the correction of estimates."""

    limit: Limit
    tokens: int
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def room(self) -> Room:
        """The budget and, as ``half``, the smaller of the budget and half the limit; both in estimated tokens."""
        factor = self.calibration.factor
        return Room(int(self.tokens / factor), int(min(self.limit.tokens // 2, self.tokens) / factor))

    @property
    def summary_room(self) -> int:
        """The most tokens that a summary may have."""
        return min(_LONGEST_SUMMARY_TOKENS, int(self.limit.tokens * _SUMMARY_SHARE))

    @property
    def background_fold_tokens(self) -> int:
        """The size of a request in tokens above which a fold starts in the background."""
        return int(min(_BACKGROUND_FOLD_SHARE * self.limit.tokens, FULLEST_SHARE * self.tokens))

    def corrected(self, estimated_tokens: int) -> int:
        """Return the tokens that the provider is expected to count."""
        return math.ceil(estimated_tokens * self.calibration.factor)

    def corrected_parts(self, estimated_tokens: Sequence[int]) -> Sequence[int]:
        """Return the tokens that the provider should count for each part, rounded so that the sum is right."""
        through = [self.corrected(tokens) for tokens in accumulate(estimated_tokens, initial=0)]
        return [after - before for before, after in pairwise(through)]


def budget(
    limit: Limit,
    usage_threshold: float,
    max_output_tokens: int | None,
    calibration: Calibration,
    *,
    fold_is_undone: bool = False,
) -> Budget:
    """Return a budget: a share of the limit (95 % or more after an undone fold), reduced if the reply needs room."""
    share = max(usage_threshold, _UNDONE_SHARE) if fold_is_undone else usage_threshold
    tokens = max(0, min(int(share * limit.tokens), limit.tokens - (max_output_tokens or 0)))
    return Budget(limit, tokens, calibration)


@dataclass(frozen=True, slots=True)
class Meter:
    """The tokens of the next request, the model's limit, and the tokens that a request may have."""

    tokens: int
    limit: int
    budget: int

    @property
    def usage(self) -> float:
        """The share of the limit that the request takes."""
        return self.tokens / self.limit

    @property
    def is_full(self) -> bool:
        """Whether the request takes its whole budget."""
        return self.tokens >= self.budget


def tokens_of(message: Message) -> int:
    """Return the tokens that a stored message adds to a request; its ``token_count`` must be known."""
    mark = _MARK_TOKENS if message.status.broke_off else 0
    return (message.token_count or 0) + TOKENS_PER_MESSAGE + mark


def total_tokens(rows: Sequence[Message]) -> int:
    """Return the tokens of all messages, and of the lead if the first message is not the user's."""
    return (LEAD_TOKENS if needs_lead(rows) else 0) + sum(map(tokens_of, rows))


def own_tokens(message: Message, count: Callable[[str], int], model: str = "") -> int:
    """Count a message's tokens: preamble, content, tool calls, and attachments, whose tokens depend on ``model``."""
    texts = sum(map(count, filter(None, (message.preamble, sent_content(message), message.tool_calls))))
    return texts + attachment_tokens(message.attachments, model) if message.attachments else texts


def needs_lead(rows: Sequence[Message]) -> bool:
    """Return whether the first message is not the user's; some models require that the user speaks first."""
    return bool(rows) and rows[0].role is not Role.USER
