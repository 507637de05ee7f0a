"""The dim lines of a reply: below it the model's latest thoughts or the seconds of silence, in it the tools it used."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chorus_cli.core.text.safe_text import SafeTextStream, safe_line
from chorus_cli.models.rules.events import Asking, ToolStarted, WaitOver
from chorus_cli.terminal.screen.dim_row import beginning_of, dim_row, dots, end_of
from chorus_cli.terminal.screen.painted_rows import widest
from chorus_cli.terminal.screen.progress import Wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from chorus_cli.models.rules.events import ToolUsed
    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.painted_rows import Row

_LATEST_CHARACTERS = 500
_THOUGHT_SECONDS = 0.25
_PATIENCE_SECONDS = 3.0
_QUICK_ANSWER_SECONDS = 0.3
PREPARING = Wait("preparing the request", 1.0)
WAITING = Wait("waiting for the other reply", 1.0, ", press Ctrl-C to take your message back")


class Thinking:
    """The newest thoughts since the last piece of the reply, in one row; ``changed`` is called when that is another.

    Words that move are hard to read, and each row is bytes on the line, so it changes only some times a second.
    """

    has_printed = False
    """Nothing of it stays."""

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
        """Return a row with the latest thoughts that fit; no row without thoughts."""
        if self._shown is None:
            return []
        told = f"thinking {dots(unicode=self._screen.unicode)} "
        words = end_of(self._shown, columns - widest(told))
        # A word that would begin in its middle is left out.
        whole = words if len(words) == len(self._shown) else words.partition(" ")[2] or words
        return [dim_row(told + whole, columns, colour=self._screen.colour)]

    def take_settled(self, _columns: int) -> list[Row]:
        """Return no row: none of them stays."""
        return []

    def _show(self) -> None:
        self._frame, self._shown_at = None, asyncio.get_running_loop().time()
        self._shown = " ".join(self._latest.split())
        self._changed()


class Silence:
    """The time since the last piece of the reply; ``monotonic`` returns the time in seconds."""

    def __init__(self, screen: Screen, monotonic: Callable[[], float]) -> None:
        self._screen = screen
        self._monotonic = monotonic
        self._begun: float | None = None

    def __bool__(self) -> bool:
        return self._begun is not None

    def begin(self) -> None:
        """Count from now on: a piece has arrived, and another is expected."""
        self._begun = self._monotonic()

    def end(self) -> None:
        """Stop counting: something else is shown, or the reply is complete."""
        self._begun = None

    def rows(self, columns: int) -> list[Row]:
        """Return a row with the seconds of silence; no row during the first seconds."""
        seconds = 0.0 if self._begun is None else self._monotonic() - self._begun
        if seconds < _PATIENCE_SECONDS:
            return []
        told = f"waiting for more {dots(unicode=self._screen.unicode)} {seconds:.0f} s"
        return [dim_row(told, columns, colour=self._screen.colour)]


def wait_after(event: WaitOver | Asking | ToolStarted) -> Wait:
    """Return the line of progress after an event of the turn."""
    match event:
        case WaitOver():
            return PREPARING
        case Asking(model):
            return Wait(f"waiting for {safe_line(model)}", _QUICK_ANSWER_SECONDS)
        case ToolStarted(call):
            return Wait(safe_line(call), _QUICK_ANSWER_SECONDS)


def tool_line(used: ToolUsed, columns: int, *, unicode: bool) -> str:
    """Return a call and its outcome in one row, made safe: the outcome has half of it at least, the call the rest."""
    call, outcome = safe_line(used.call), f": {safe_line(used.outcome)}"
    outcome = _shortened(outcome, max(columns // 2, columns - widest(call)), unicode=unicode)
    return _shortened(call, columns - widest(outcome), unicode=unicode) + outcome


def _shortened(text: str, columns: int, *, unicode: bool) -> str:
    if widest(text) <= columns:
        return text
    end = dots(unicode=unicode)
    return beginning_of(text, columns - widest(end)) + end
