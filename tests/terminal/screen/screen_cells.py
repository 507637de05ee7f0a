"""The cells of a pseudo-terminal's screen, row by row, with everything that a picture of it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pyte

Row = list[Any]  # the cells of a row, as pyte has them
_DIM, _BLINKING = 2, 5
_COLOURS = frozenset({38, 48})
_PARAMETERS_OF_A_COLOUR = {2: 3, 5: 1}


class ScrollingScreen(pyte.HistoryScreen):
    """A screen with a scrollback through which nobody pages, as pyte would have it looked up with each attribute."""

    __getattribute__ = pyte.Screen.__getattribute__


class DimScreen(ScrollingScreen):
    """A screen that knows dim text, which pyte ignores: it is kept as blinking, which nothing of ours is."""

    def select_graphic_rendition(self, *attributes: int, **options: Any) -> None:
        super().select_graphic_rendition(*_with_blinking(iter(attributes)), **options)


def rows_of(screen: pyte.HistoryScreen) -> list[Row]:
    """Return the rows above and on ``screen``, down to the last in use; the cell with the cursor is a reversed one."""
    lines = [*screen.history.top, *(screen.buffer[number] for number in range(screen.lines))]
    rows = [[line[column] for column in range(screen.columns)] for line in lines]
    if not screen.cursor.hidden:
        row, column = cursor_row(screen), min(screen.cursor.x, screen.columns - 1)
        rows[row][column] = rows[row][column]._replace(reverse=True)
    while rows and all(cell == screen.default_char for cell in rows[-1]):
        rows.pop()
    return rows


def cursor_row(screen: pyte.HistoryScreen) -> int:
    return len(screen.history.top) + screen.cursor.y


def cells_in_use(row: Mapping[int, Any], columns: int) -> Row:
    """Return the cells of a row of a screen as far as anything was written."""
    return [row[column] for column in range(min(columns, max(row, default=-1) + 1))]


def text_of(row: Sequence[Any]) -> str:
    return "".join(cell.data for cell in row).rstrip()


def _with_blinking(attributes: Iterator[int]) -> Iterator[int]:
    """Replace dim by blinking; a 2 inside of a colour means something else."""
    for attribute in attributes:
        yield _BLINKING if attribute == _DIM else attribute
        if attribute in _COLOURS:
            kind = next(attributes)
            yield kind
            yield from islice(attributes, _PARAMETERS_OF_A_COLOUR[kind])
