"""Rows that are painted over until they are settled, and the line of progress, which is drawn without rich."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import NamedTuple

from chorus_cli.terminal.screen.output import Screen, widest

# Synchronized output: a whole frame appears at once; terminals that do not know these sequences ignore them.
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_WRAP_OFF, _WRAP_ON = "\x1b[?7l", "\x1b[?7h"
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
_WIDE = "WF"
_SIGNS, _PLAIN_SIGNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
_FRAME_SECONDS = 1 / 8


class Row(NamedTuple):
    """A row, ``width`` columns wide: ``text`` may have escape sequences, ``plain`` has none."""

    text: str
    plain: str
    width: int

    def fits(self, columns: int) -> bool:
        """Return whether the row fits on any terminal, however wide it draws ambiguous characters."""
        return widest(self.plain.rstrip()) <= columns


class PaintedRows:
    """The rows at the end of the screen; between two calls the cursor is at the beginning of the line below them.

    Settled rows are written once and may scroll away. Open rows are cut off at the edge instead of wrapped, so that
    their number is known even if the terminal measures characters differently. After a change of the terminal's size,
    open rows that the cursor cannot reach stay as they are.
    """

    def __init__(self, write: Callable[[str], None], *, breaks_rows: bool = True) -> None:
        self._write = write
        self._breaks_rows = breaks_rows
        self._open: list[Row] = []
        self._columns = 0
        self._rows_above = 0

    def show(self, settled: Sequence[Row], unsettled: Sequence[Row], columns: int, lines: int) -> None:
        """Replace the open rows by the ``settled`` ones and, below them, the ``unsettled`` ones, in one frame."""
        # The cursor can go up over rows that were written. If the terminal is narrower now, some may be out of reach.
        reach = min(self._rows_above, lines - 1)
        while self._height(self._open, columns) > reach:
            self._open.pop(0)
        # One row is for the cursor. Rows above the screen could not be painted over.
        fitting = unsettled[max(0, len(unsettled) - (lines - 1)) :]
        kept = self._kept(settled, fitting)
        height = self._height(self._open[kept:], columns)
        frame = _erasure(height) + _lines(settled[kept:])
        below = fitting[max(0, kept - len(settled)) :]
        if below:
            frame += _WRAP_OFF + _lines(below) + _WRAP_ON
        written = len(settled[kept:]) + len(below)
        self._rows_above = min(reach - height + written, lines - 1)
        self._open, self._columns = list(fitting), columns
        if frame:
            self._write(_BEGIN + frame + _END)

    def _kept(self, settled: Sequence[Row], unsettled: Sequence[Row]) -> int:
        """Return how many rows, from the first on, are shown already. A settled row that was cut off does not count."""
        number = 0
        for number, (shown, new) in enumerate(zip(self._open, [*settled, *unsettled], strict=False), 1):
            if shown != new or (number <= len(settled) and not new.fits(self._columns)):
                return number - 1
        return number

    def _height(self, rows: Sequence[Row], columns: int) -> int:
        return sum(max(1, -(-row.width // columns)) if self._breaks_rows else 1 for row in rows)


class Wait(NamedTuple):
    """A wait, whose ``label`` is shown after ``silent_seconds``, with the ``hint`` if there is room."""

    label: str
    silent_seconds: float
    hint: str = ""


class Progress:
    """The progress line of a screen, painted by a background task above the rows that ``below`` returns."""

    def __init__(
        self,
        screen: Screen,
        monotonic: Callable[[], float] = time.monotonic,
        size: Callable[[], os.terminal_size] = shutil.get_terminal_size,
        below: Callable[[int], list[Row]] = lambda _columns: [],
    ) -> None:
        self._screen = screen
        self._monotonic = monotonic
        self._size = size
        self._below = below
        self._line: list[Row] = []
        self._rows = PaintedRows(screen.write, breaks_rows=screen.breaks_rows)
        self._wait: Wait | None = None
        self._painting: asyncio.Task[None] | None = None

    def begin(self, wait: Wait) -> None:
        """Show ``wait`` instead of any other, counting from now on."""
        self.end()
        if self._screen.guard.allows_sequences:
            self._wait = wait
            self._screen.painted.append(self._take_down)
            self._painting = asyncio.create_task(self._paint(wait))

    def end(self) -> None:
        """Erase the line, because the wait is over; a second call does nothing."""
        painting, self._painting, self._wait = self._painting, None, None
        if painting is None:
            return
        self._screen.painted.remove(self._take_down)
        if not painting.cancel() and not painting.cancelled():
            # This only marks the error as retrieved; erasing raises it again.
            painting.exception()
        self._take_down()

    @property
    def is_shown(self) -> bool:
        """Whether there is a wait, which then owns the end of the screen."""
        return self._painting is not None

    def refresh(self) -> None:
        """Paint the rows below the line again, because they have changed."""
        if self.is_shown:
            self._show([*self._line, *self._below(self._size().columns)])

    @contextmanager
    def of(self, wait: Wait) -> Iterator[None]:
        """Show ``wait`` during the block."""
        self.begin(wait)
        try:
            yield
        finally:
            self.end()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Erase the line during the block, for example for an editor; then count from zero again."""
        wait = self._wait
        self.end()
        try:
            yield
        finally:
            if wait is not None:
                self.begin(wait)

    def _take_down(self) -> None:
        self._line = []
        self._show([])

    async def _paint(self, wait: Wait) -> None:
        begun = self._monotonic()
        self.refresh()
        await asyncio.sleep(wait.silent_seconds)
        for sign in cycle(_SIGNS if self._screen.unicode else _PLAIN_SIGNS):
            self._line = [self._row(f"{sign} {wait.label}", self._monotonic() - begun, wait.hint)]
            self.refresh()
            await asyncio.sleep(_FRAME_SECONDS)

    def _row(self, told: str, seconds: float, hint: str) -> Row:
        columns = self._size().columns
        counted = f" {dots(unicode=self._screen.unicode)} {seconds:.0f} s"
        line = beginning_of(told, columns - widest(counted)) + counted
        line += hint if widest(line + hint) <= columns else ""
        return dim_row(line, columns, colour=self._screen.colour)

    def _show(self, rows: Sequence[Row]) -> None:
        self._rows.show([], rows, *self._size())


def _erasure(height: int) -> str:
    # The first row is erased alone: if erasing began at the very top, tmux would keep a copy of the screen.
    return f"\r\x1b[{height}A\x1b[K\x1b[B\x1b[J\x1b[A" if height else ""


def _lines(rows: Sequence[Row]) -> str:
    return "".join(f"{row.text}\n" for row in rows)


def dim_row(words: str, columns: int, *, colour: bool) -> Row:
    """Return a row with the beginning of ``words`` that fits, dim if ``colour`` allows styles."""
    fitting = beginning_of(words, columns)
    width = sum(2 if unicodedata.east_asian_width(character) in _WIDE else 1 for character in fitting)
    return Row(f"{_DIM}{fitting}{_PLAIN}" if colour else fitting, fitting, width)


def dots(*, unicode: bool) -> str:
    """Return an ellipsis."""
    return "…" if unicode else "..."


def beginning_of(text: str, columns: int) -> str:
    """Return the longest beginning of ``text`` that fits on any terminal."""
    return end_of(text[::-1], columns)[::-1]


def end_of(text: str, columns: int) -> str:
    """Return the longest end of ``text`` that fits on any terminal."""
    if text.isascii():
        return text[max(0, len(text) - max(0, columns)) :]
    start = len(text)
    while start and columns >= widest(text[start - 1]):
        start -= 1
        columns -= widest(text[start])
    return text[start:]
