"""Rows at the end of the screen that are painted over until they are settled, such as dim words of progress."""

from __future__ import annotations

import unicodedata
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Synchronized output: the frame appears at once; terminals that do not know it ignore it.
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_WRAP_OFF, _WRAP_ON = "\x1b[?7l", "\x1b[?7h"
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
_WIDE = "WF"


class Row(NamedTuple):
    """One row: its text with escape sequences, its plain text, and its width in columns.

    ``table_mark`` replaces its words in `markdown.stream.words_of`; ``None`` outside tables.
    """

    text: str
    plain: str
    width: int
    table_mark: str | None = None

    def fits(self, columns: int) -> bool:
        """Return whether the row fits on any terminal, however wide it draws ambiguous characters."""
        return widest(self.plain.rstrip()) <= columns

    def height(self, columns: int) -> int:
        """Return how many rows it takes when wrapped at so many columns."""
        if self.width <= columns:
            return 1
        if self.plain.isascii():
            return -(-self.width // columns)
        from rich.cells import cell_len  # noqa: PLC0415 - rich is loaded already: it has drawn the row

        height, room = 1, columns
        for width in map(cell_len, self.plain):
            height, room = (height, room - width) if width <= room else (height + 1, columns - width)
        return height


class PaintedRows:
    """The end of the screen; between two calls the cursor is at the beginning of the line below.

    Settled rows may scroll away and are written once. Open ones are cut off at the edge, not wrapped, so that their
    number is known even if the terminal measures characters differently. A terminal that ``breaks_rows`` wraps wide
    rows when it becomes narrower; others cut them off.
    """

    def __init__(self, write: Callable[[str], None], *, breaks_rows: bool = True) -> None:
        self._write = write
        self._breaks_rows = breaks_rows
        self._open: list[Row] = []
        self._columns = 0
        self._rows_above = 0

    def let_go(self, columns: int, lines: int) -> list[Row]:
        """Return, and forget, the open rows that a new window size has moved out of reach of the cursor.

        They stay as they are. A terminal that wraps rows may scroll rows away although it has room at its end, so only
        as many rows as were written are certainly reachable.
        """
        room = self._rows_above = min(self._rows_above, lines - 1)
        first = len(self._open)
        while first and (height := self._height(self._open[first - 1 : first], columns)) <= room:
            first -= 1
            room -= height
        gone, self._open = self._open[:first], self._open[first:]
        return gone

    def show(self, settled: Sequence[Row], unsettled: Sequence[Row], columns: int, lines: int) -> None:
        """Replace the open rows by the ``settled`` ones and, below them, the ``unsettled`` ones, in one frame."""
        # One row is the cursor's; rows above the screen could not be painted over.
        fitting = unsettled[max(0, len(unsettled) - (lines - 1)) :]
        kept = self._kept(settled, fitting)
        height = min(self._height(self._open[kept:], columns), lines - 1)
        request_settings = _erasure(height) + _lines(settled[kept:])
        below = fitting[max(0, kept - len(settled)) :]
        if below:
            request_settings += _WRAP_OFF + _lines(below) + _WRAP_ON
        written = len(settled[kept:]) + len(below)
        self._rows_above = min(max(0, self._rows_above - height) + written, lines - 1)
        self._open, self._columns = list(fitting), columns
        if request_settings:
            self._write(_BEGIN + request_settings + _END)

    def _kept(self, settled: Sequence[Row], unsettled: Sequence[Row]) -> int:
        """Return how many rows are on the screen already; settled rows that were cut off at the edge do not count."""
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
    """Return the most columns that ``text`` takes on any terminal."""
    return len(text) if text.isascii() else len(text) + sum(not character.isascii() for character in text)


def _erasure(height: int) -> str:
    """Return the sequences that move the cursor up so many rows and erase everything below.

    The first row is erased by itself: tmux takes erasing from the very top of the screen for clearing it, and keeps a
    copy of what it showed in its history.
    """
    return f"\r\x1b[{height}A\x1b[K\x1b[B\x1b[J\x1b[A" if height else ""


def _lines(rows: Sequence[Row]) -> str:
    return "".join(f"{row.text}\n" for row in rows)


def dim_row(words: str, columns: int, *, colour: bool) -> Row:
    """Return a row with the beginning of ``words`` that fits, dim if ``colour`` allows styles."""
    fitting = beginning_of(words, columns)
    width = sum(2 if unicodedata.east_asian_width(character) in _WIDE else 1 for character in fitting)
    return Row(f"{_DIM}{fitting}{_PLAIN}" if colour else fitting, fitting, width)


def dots(*, unicode: bool) -> str:
    """Return the ellipsis before the elapsed seconds."""
    return "…" if unicode else "..."


def beginning_of(text: str, columns: int) -> str:
    """Return the longest beginning of ``text`` that certainly fits."""
    return end_of(text[::-1], columns)[::-1]


def end_of(text: str, columns: int) -> str:
    """Return the longest end of ``text`` that certainly fits."""
    if text.isascii():
        return text[max(0, len(text) - max(0, columns)) :]
    start = len(text)
    while start and columns >= widest(text[start - 1]):
        start -= 1
        columns -= widest(text[start])
    return text[start:]
