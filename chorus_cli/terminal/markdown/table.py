"""Draws tables of Markdown as rich does, but all of their words: those that are wider than their column are folded.

Where a column would have no room for the widest of characters, there is only one: the cells of a row stand in it one
after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markdown import TableDataElement, TableElement
from rich.style import Style
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import TableRowElement
    from rich.segment import Segment

_ROW_NUMBER = "row"
_TABLE_ENDS = -1
# What rich puts beside each cell, and a wide character with as much as rounding may take from a column.
_BLANKS, _SAFE_WIDTH = 2, 4
_BETWEEN_CELLS = " | "


class FoldedTable(TableElement):
    """A table whose styles tell which row a line belongs to; its two ends and the last row, which may grow, are one."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table in the columns that it has, or in one."""
        if self._is_too_wide(options.max_width):
            self._join_cells()
        for table in super().__rich_console__(console, options):
            assert isinstance(table, Table)  # noqa: S101 - rich's type says less
            for column in table.columns:
                column.overflow = "fold"
            table.style = console.get_style(table.style) + Style(meta={_ROW_NUMBER: _TABLE_ENDS})
            for number, row in enumerate(table.rows[:-1]):
                row.style = Style(meta={_ROW_NUMBER: number})
            yield table

    def _rows(self) -> list[TableRowElement]:
        head = self.header.row if self.header else None
        return [*([head] if head else []), *(self.body.rows if self.body else [])]

    def _is_too_wide(self, width: int) -> bool:
        """Tell whether the table neither fits as it is nor leaves each column the room for a wide character."""
        rows = [row.cells for row in self._rows()]
        if width > _SAFE_WIDTH * len(rows[0]):
            return False
        widest: list[int] = [max(cell.content.cell_len for cell in column) for column in zip(*rows, strict=True)]
        return width < sum(widest) + _BLANKS * len(widest)

    def _join_cells(self) -> None:
        for row in self._rows():
            joined = TableDataElement("left")
            joined.content.append_text(Text(_BETWEEN_CELLS).join(cell.content for cell in row.cells))
            row.cells = [joined]


def row_number(line: list[Segment]) -> int | None:
    """Return which row of a table a line belongs to, ``None`` if it is in no table."""
    metas = (style.meta for _, style, _ in line if style)
    return max((meta[_ROW_NUMBER] for meta in metas if meta), default=None)
