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
    """What stands in one row: with its styles as the terminal gets it, without them, and its width in columns.

    ``table_mark`` is what it counts for in a table, ``None`` where it has none; see ``markdown.already_printed``.
    """

    text: str
    plain: str
    width: int
    table_mark: str | None = None

    def fits(self, columns: int) -> bool:
        """Whether nothing of it is cut off on any terminal, however wide that takes its characters to be."""
        return widest(self.plain.rstrip()) <= columns

    def height(self, columns: int) -> int:
        """Return how many rows it takes where it is broken at so many columns."""
        if self.width <= columns:
            return 1
        if self.plain.isascii():
            return -(-self.width // columns)
        # rich is there already, for it has drawn the row.
        from rich.cells import cell_len  # noqa: PLC0415

        height, room = 1, columns
        for width in map(cell_len, self.plain):
            height, room = (height, room - width) if width <= room else (height + 1, columns - width)
        return height


class PaintedRows:
    """The end of the screen; between two calls the cursor is at the beginning of the line below.

    Settled rows may scroll away and are written once. Open ones are cut off at the edge, not wrapped, so that their
    number is known whatever the terminal takes for the width of a character. A terminal that ``breaks_rows`` shows the
    rows that are wider than itself in several when it becomes narrower; others cut them off.
    """

    def __init__(self, write: Callable[[str], None], *, breaks_rows: bool = True) -> None:
        self._write = write
        self._breaks_rows = breaks_rows
        self._open: list[Row] = []
        self._columns = 0
        self._rows_above = 0

    def let_go(self, columns: int, lines: int) -> list[Row]:
        """Return the open rows that the window's new size has moved to where they cannot be painted over.

        They stay as they are. A terminal that breaks rows may scroll others away although there is room at its end, so
        only as many as were written are surely there.
        """
        room = self._rows_above = min(self._rows_above, lines - 1)
        first = len(self._open)
        while first and (height := self._height(self._open[first - 1 : first], columns)) <= room:
            first -= 1
            room -= height
        gone, self._open = self._open[:first], self._open[first:]
        return gone

    def show(self, settled: Sequence[Row], unsettled: Sequence[Row], columns: int, lines: int) -> None:
        """Write ``settled`` rows in place of what was open, and the ``unsettled`` ones below, in one go."""
        # One row is the cursor's: what is higher than the screen could not be painted over.
        fitting = unsettled[max(0, len(unsettled) - (lines - 1)) :]
        kept = self._kept(settled, fitting)
        height = min(self._height(self._open[kept:], columns), lines - 1)
        frame = _erasure(height) + _lines(settled[kept:])
        below = fitting[max(0, kept - len(settled)) :]
        if below:
            frame += _WRAP_OFF + _lines(below) + _WRAP_ON
        written = len(settled[kept:]) + len(below)
        self._rows_above = min(max(0, self._rows_above - height) + written, lines - 1)
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

    def _height(self, rows: Sequence[Row], columns: int) -> int:
        return sum(row.height(columns) if self._breaks_rows else 1 for row in rows)


def widest(text: str) -> int:
    """Return how many columns ``text`` takes at most, whatever terminals think of its characters."""
    return len(text) if text.isascii() else len(text) + sum(not character.isascii() for character in text)


def _erasure(height: int) -> str:
    """Return what takes the cursor up so many rows and erases all below.

    The first row is erased by itself: tmux takes erasing from the very top of the screen for clearing it, and keeps a
    copy of what it showed in its history.
    """
    return f"\r\x1b[{height}A\x1b[K\x1b[B\x1b[J\x1b[A" if height else ""


def _lines(rows: Sequence[Row]) -> str:
    return "".join(f"{row.text}\n" for row in rows)
