"""A progress line: a spinner, a label and the elapsed seconds, erased without a trace.

It does without rich, whose import is one of the things to wait for.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.terminal.screen.painted_rows import PaintedRows, beginning_of, dim_row, dots, widest

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.painted_rows import Row

_SIGNS, _PLAIN_SIGNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
_FRAME_SECONDS = 1 / 8


class Wait(NamedTuple):
    """Label of a wait, shown after ``silent_seconds``, with the ``hint`` if there is room."""

    label: str
    silent_seconds: float
    hint: str = ""


class Progress:
    """The progress line of a screen, painted by a background task; none without escape sequences.

    ``below`` returns temporary rows for so many columns; during a wait they are painted below the line.
    """

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
            self._start(wait)

    def end(self) -> None:
        """Erase the line, because the wait is over; a second call does nothing."""
        self._wait = None
        self._stop()

    @property
    def is_shown(self) -> bool:
        """Whether there is a wait, and the end of the screen belongs to it."""
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
        self._stop()
        try:
            yield
        finally:
            if self._wait is not None:
                self._start(self._wait)

    def _start(self, wait: Wait) -> None:
        self._screen.painted.append(self._take_down)
        self._painting = asyncio.create_task(self._paint(wait))

    def _stop(self) -> None:
        painting, self._painting = self._painting, None
        if painting is None:
            return
        self._screen.painted.remove(self._take_down)
        if not painting.cancel() and not painting.cancelled():
            # Erasing raises the same error again; this only marks it as retrieved.
            painting.exception()
        self._take_down()

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
        """Return the line, cut to the width: the hint goes first, the seconds stay."""
        columns = self._size().columns
        counted = f" {dots(unicode=self._screen.unicode)} {seconds:.0f} s"
        line = beginning_of(told, columns - widest(counted)) + counted
        line += hint if widest(line + hint) <= columns else ""
        return dim_row(line, columns, colour=self._screen.colour)

    def _show(self, rows: Sequence[Row]) -> None:
        columns, lines = self._size()
        self._rows.let_go(columns, lines)
        self._rows.show([], rows, columns, lines)
