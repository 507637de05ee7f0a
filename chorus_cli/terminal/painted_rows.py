"""The rows at the end of the screen that may still change, painted over until they are settled."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# One frame appears at once where the terminal knows synchronized output; others ignore it.
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_WRAP_OFF, _WRAP_ON = "\x1b[?7l", "\x1b[?7h"


@dataclass(frozen=True, slots=True)
class Row:
    """What stands in one row: with its styles as the terminal gets it, without them, and its width in columns."""

    text: str
    plain: str
    width: int

    def fits(self, columns: int) -> bool:
        """Whether it stays in its row on any terminal, however wide that takes its characters to be."""
        return widest(self.plain) <= columns


class PaintedRows:
    """The end of the screen; between two calls the cursor is at the beginning of the line below.

    Settled rows may scroll away and are written once. Open ones are cut off at the edge, not wrapped, so that their
    number is known whatever the terminal takes for the width of a character.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._open: list[Row] = []
        self._columns = 0

    def show(self, settled: Sequence[Row], unsettled: Sequence[Row], columns: int, lines: int) -> None:
        """Write ``settled`` rows in place of what was open, and the ``unsettled`` ones below, in one go."""
        # One row is the cursor's: what is higher than the screen could not be painted over.
        fitting = unsettled[max(0, len(unsettled) - (lines - 1)) :]
        # In another width than they were painted for, only rows that settle may stay as they are.
        kept = self._kept(settled, fitting if columns == self._columns else [])
        frame = self._erasure(kept, columns, lines) + _lines(settled[kept:])
        below = fitting[max(0, kept - len(settled)) :]
        if below:
            frame += _WRAP_OFF + _lines(below) + _WRAP_ON
        self._open, self._columns = list(fitting), columns
        if frame:
            self._write(_BEGIN + frame + _END)

    def _kept(self, settled: Sequence[Row], unsettled: Sequence[Row]) -> int:
        """Return how many rows stand there already as they shall; one that was cut off at the edge does not."""
        new = [*settled, *unsettled]
        same = takewhile(
            lambda number: (
                self._open[number] == new[number] and (number >= len(settled) or new[number].fits(self._columns))
            ),
            range(min(len(self._open), len(new))),
        )
        return sum(1 for _ in same)

    def _erasure(self, kept: int, columns: int, lines: int) -> str:
        """Return what takes the cursor up below the kept rows and erases the rest.

        A terminal that has become narrower has broken the rows that were wider.
        """
        height = sum(max(1, -(-row.width // columns)) for row in self._open[kept:])
        height = min(height, lines - 1)
        return f"\r\x1b[{height}A\x1b[J" if height else ""


def widest(text: str) -> int:
    """Return how many columns ``text`` takes at most, whatever terminals think of its characters."""
    return len(text) if text.isascii() else len(text) + sum(not character.isascii() for character in text)


def _lines(rows: Sequence[Row]) -> str:
    return "".join(f"{row.text}\n" for row in rows)
