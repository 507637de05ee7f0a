"""A figure beside its reference, and the table of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Pair = tuple[float, float]
"""What was measured and its reference, one right after the other, both in seconds."""

_MILLISECONDS = 1000
_HEADINGS = ("what", "measured", "reference", "measured", "ratio", "by pairs", "goal", "")


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value, its reference, and the largest good ratio of the two.

    ``pair_ratio`` is the median of the ratios of the single pairs, in which a temporary slowdown of the whole machine
    cancels out.
    """

    name: str
    value: float
    reference: str
    reference_value: float
    unit: str
    pair_ratio: float
    goal: float

    @property
    def ratio(self) -> float:
        """The value divided by the reference."""
        return self.value / self.reference_value

    @property
    def is_met(self) -> bool:
        """Whether the ratio is within the goal."""
        return self.ratio <= self.goal

    def as_json(self) -> dict[str, object]:
        """Return the figure as a JSON object."""
        return {**asdict(self), "ratio": self.ratio, "is_met": self.is_met}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A comparison that could not be made here."""

    name: str
    reason: str

    def as_json(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return {"name": self.name, "skipped": self.reason}


def figure(name: str, reference: str, pairs: Sequence[Pair], goal: float) -> Figure:
    """Return the medians of pairs of times, in milliseconds."""
    return Figure(
        name=name,
        value=median(measured for measured, _ in pairs) * _MILLISECONDS,
        reference=reference,
        reference_value=median(compared for _, compared in pairs) * _MILLISECONDS,
        unit="ms",
        pair_ratio=median(measured / compared for measured, compared in pairs),
        goal=goal,
    )


def table(figures: Iterable[Figure | Skipped]) -> str:
    """Return the figures as lines of aligned columns, headings first, and then what was skipped."""
    found = list(figures)
    rows = [_HEADINGS, *(_cells(shown) for shown in found if isinstance(shown, Figure))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    skipped = [f"{each.name}: skipped, {each.reason}" for each in found if isinstance(each, Skipped)]
    return "\n".join([*(_line(row, widths) for row in rows), *skipped])


def _cells(shown: Figure) -> tuple[str, ...]:
    return (
        shown.name,
        f"{shown.value:.2f} {shown.unit}",
        shown.reference,
        f"{shown.reference_value:.2f} {shown.unit}",
        f"{shown.ratio:.2f}",
        f"{shown.pair_ratio:.2f}",
        f"≤ {shown.goal:g}",
        "met" if shown.is_met else "MISSED",
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
