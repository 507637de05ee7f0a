"""The correction of token estimates, learned for each model from the counts that its provider reports."""

from __future__ import annotations

import json
from dataclasses import dataclass

SMALLEST_FACTOR, LARGEST_FACTOR = 0.8, 2.0
_FEWEST_TOKENS = 100
_LEAST_PLAUSIBLE = 0.5
_WEIGHT = 0.3
_ROUNDING = 0.005


@dataclass(frozen=True, slots=True)
class Calibration:
    """The expected count of a provider is ``factor`` times the estimate.

    ``error`` is the relative error of the last expectation, as a share of the reported count; ``None`` before the first
    report.
    """

    factor: float = 1.0
    error: float | None = None


def learned(before: Calibration, estimated_tokens: int, reported_tokens: int) -> Calibration:
    """Take a report into account: the first as it is, each later one by an exponential moving average.

    Small requests say little, and a provider that reports less than half of the estimate leaves out what it had cached.
    """
    if estimated_tokens < _FEWEST_TOKENS or reported_tokens < _LEAST_PLAUSIBLE * estimated_tokens:
        return before
    ratio = min(max(reported_tokens / estimated_tokens, SMALLEST_FACTOR), LARGEST_FACTOR)
    weight = 1.0 if before.error is None else _WEIGHT
    factor = before.factor + weight * (ratio - before.factor)
    return Calibration(factor, before.factor * estimated_tokens / reported_tokens - 1)


def differ(one: Calibration, other: Calibration) -> bool:
    """Return whether two calibrations differ by more than a rounding."""
    if abs(one.factor - other.factor) > _ROUNDING or (one.error is None) != (other.error is None):
        return True
    return abs((one.error or 0) - (other.error or 0)) > _ROUNDING


def written(calibration: Calibration) -> str:
    """Write a calibration as JSON."""
    return json.dumps({"factor": round(calibration.factor, 4), "error": calibration.error})


def read(text: str | None) -> Calibration:
    """Read a calibration back; a text that cannot be read is one before the first report."""
    try:
        found = json.loads(text or "")
        factor, error = float(found["factor"]), found["error"]
        is_sound = SMALLEST_FACTOR <= factor <= LARGEST_FACTOR
        return Calibration(factor, None if error is None else float(error)) if is_sound else Calibration()
    except (ValueError, KeyError, TypeError):
        return Calibration()
