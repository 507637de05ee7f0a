"""The dim lines beside a reply: the model's thoughts, the seconds of silence, and the tools that were used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from chorus_cli.core.text.phrases import enumerated
from chorus_cli.core.text.safe_text import SafeTextStream, safe_line
from chorus_cli.models.rules.events import Asking, Connecting, ToolStarted, ToolUsed
from chorus_cli.terminal.screen.output import Screen, widest
from chorus_cli.terminal.screen.painted_rows import Row, Wait, beginning_of, dim_row, dots, end_of

_LATEST_CHARACTERS = 500
_THOUGHT_SECONDS = 0.25
_PATIENCE_SECONDS = 3.0
_TAB_COLUMNS = 4
PREPARING = Wait("preparing the request", 1.0)
WAITING = Wait("waiting for the other reply", 1.0, ", press Ctrl-C to cancel your message")


def waited_for(event: Asking | ToolStarted | Connecting) -> str:
    """Return a phrase for the work until the next event."""
    match event:
        case Asking(model):
            return f"waiting for {model}"
        case Connecting(servers):
            return f"connecting to {enumerated(servers)}"
        case ToolStarted(call):
            return call


class Thinking:
    """The newest thoughts since the last piece of the reply, in one row that changes at most four times a second."""

    has_printed = False

    def __init__(self, screen: Screen, changed: Callable[[], None]) -> None:
        self._screen = screen
        self._changed = changed
        self._safe = SafeTextStream()
        self._latest = ""
        self._shown: str | None = None
        self._shown_at = 0.0
        self._frame: asyncio.TimerHandle | None = None

    def feed(self, text: str) -> None:
        """Add a piece of a thought."""
        self._latest = (self._latest + self._safe.feed(text))[-_LATEST_CHARACTERS:]
        if self._frame is None:
            loop = asyncio.get_running_loop()
            self._frame = loop.call_at(max(loop.time(), self._shown_at + _THOUGHT_SECONDS), self._show)

    def end(self) -> None:
        """Forget the thoughts, because the reply continues or is over."""
        self._shown, self._latest, self._safe = None, "", SafeTextStream()
        if self._frame is not None:
            self._frame.cancel()
            self._frame = None

    def rows(self, columns: int) -> list[Row]:
        """Return one row with the newest thoughts that fit; no row if there are no thoughts."""
        if self._shown is None:
            return []
        told = f"thinking {dots(unicode=self._screen.unicode)} "
        words = end_of(self._shown, columns - widest(told))
        # A word whose beginning does not fit is left out.
        whole = words if len(words) == len(self._shown) else words.partition(" ")[2] or words
        return [dim_row(told + whole, columns, colour=self._screen.colour)]

    def take_settled(self, _columns: int) -> list[Row]:
        """Return no rows, because these thoughts do not stay on the screen."""
        return []

    def _show(self) -> None:
        self._frame, self._shown_at = None, asyncio.get_running_loop().time()
        self._shown = " ".join(self._latest.split())
        self._changed()


class PrintedThoughts:
    """Thoughts that stay on the screen; only the last row may still grow. ``changed`` is called when more arrive."""

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
        """Return the rows settled since the last call. A blank row separates the last thought from the reply."""
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


def silence_rows(seconds: float, columns: int, screen: Screen) -> list[Row]:
    """Return a row with the seconds since the last piece of the reply; no row in the first three seconds."""
    if seconds < _PATIENCE_SECONDS:
        return []
    told = f"waiting for more {dots(unicode=screen.unicode)} {seconds:.0f} s"
    return [dim_row(told, columns, colour=screen.colour)]


def tool_line(used: ToolUsed, columns: int, *, unicode: bool) -> str:
    """Return a call and its outcome as one safe row. A long outcome gets half the row, or more after a short call."""
    call, outcome = safe_line(used.call), f": {safe_line(used.outcome)}"
    outcome = _shortened(outcome, max(columns // 2, columns - widest(call)), unicode=unicode)
    return _shortened(call, columns - widest(outcome), unicode=unicode) + outcome


def _shortened(text: str, columns: int, *, unicode: bool) -> str:
    if widest(text) <= columns:
        return text
    end = dots(unicode=unicode)
    return beginning_of(text, columns - widest(end)) + end


def _wrapped(line: str, columns: int) -> list[str]:
    """Return a line in rows that fit on any terminal; rows end at blanks, where there are any."""
    rows, start = [], 0
    while widest(head := line[start : start + columns + 1]) > columns:
        row = beginning_of(head, columns) or head[:1]
        blank = head.rfind(" ", 1, len(row) + 1)
        rows.append(head[:blank] if blank > 0 else row)
        start += len(rows[-1])
        while line.startswith(" ", start):
            start += 1
    return [*rows, head]
