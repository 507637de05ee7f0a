"""The thoughts of a model as dim text above its reply, for users who have set ``show_thoughts``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.text.safe_text import SafeTextStream
from chorus_cli.terminal.screen.dim_row import beginning_of, dim_row
from chorus_cli.terminal.screen.painted_rows import widest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.painted_rows import Row


_TAB_COLUMNS = 4


class PrintedThoughts:
    """Thoughts that stay on the screen, row by row; the last row is open. ``changed`` is called when more have come.

    ``has_printed`` once a row of them stays.
    """

    def __init__(self, screen: Screen, changed: Callable[[], None]) -> None:
        self.has_printed = False
        self._screen = screen
        self._changed = changed
        self._safe = SafeTextStream()
        self._arrived: list[str] = []
        self._open = ""
        self._is_over = True
        self._is_begun = False
        self._has_gap = False

    def feed(self, text: str) -> None:
        """Add a piece of a thought."""
        self._is_over = False
        self._arrived.append(text)
        self._changed()

    def end(self) -> None:
        """Let the last row stay too, because the reply continues or is over."""
        self._is_over = True

    def rows(self, columns: int) -> list[Row]:
        """Return the open row, if there is one."""
        return [dim_row(self._open, columns, colour=self._screen.colour)] if self._open.strip() else []

    def take_settled(self, columns: int) -> list[Row]:
        """Return the rows that stay, since the last call; a blank one divides the last of them from the reply."""
        text = self._safe.feed("".join(self._arrived)) + (self._safe.close() if self._is_over else "")
        self._arrived.clear()
        *lines, last = (self._open + text.expandtabs(_TAB_COLUMNS)).split("\n")
        rows = [row for line in lines for row in _wrapped(line, columns)]
        *begun, self._open = _wrapped(last, columns)
        rows += begun
        if self._is_over:
            rows.append(self._open)
            self._open = ""
        settled = list(self._with_gaps(rows))
        self.has_printed = self.has_printed or bool(settled)
        return [dim_row(row, columns, colour=self._screen.colour) for row in settled]

    def _with_gaps(self, rows: list[str]) -> Iterator[str]:
        """Yield the rows with one blank row between paragraphs, and one behind the end."""
        for row in rows:
            if not row.strip():
                self._has_gap = self._is_begun
                continue
            if self._has_gap:
                yield ""
            yield row
            self._is_begun, self._has_gap = True, False
        if self._is_over and self._is_begun:
            yield ""
            self._is_begun = self._has_gap = False


def _wrapped(line: str, columns: int) -> list[str]:
    """Return the rows of a line, which certainly fit; they end at blanks, if there are any in them."""
    rows, start = [], 0
    while widest(head := line[start : start + columns + 1]) > columns:
        row = beginning_of(head, columns) or head[:1]
        blank = head.rfind(" ", 1, len(row) + 1)
        rows.append(head[:blank] if blank > 0 else row)
        start += len(rows[-1])
        while line.startswith(" ", start):
            start += 1
    return [*rows, head]
