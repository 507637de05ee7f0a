"""What is shown of a model's thinking: one dim line, gone when the reply comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.text.safe_text import SafeTextStream
from chorus_cli.terminal.screen.dim_row import dim_row, dots, end_of
from chorus_cli.terminal.screen.painted_rows import widest

if TYPE_CHECKING:
    from collections.abc import Callable

    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.painted_rows import Row

_LATEST_CHARACTERS = 500


class Thinking:
    """The thoughts that came since the last piece of the reply; ``monotonic`` tells the time in seconds."""

    def __init__(self, screen: Screen, monotonic: Callable[[], float]) -> None:
        self._screen = screen
        self._monotonic = monotonic
        self._safe = SafeTextStream()
        self._latest = ""
        self._begun: float | None = None

    def __bool__(self) -> bool:
        return self._begun is not None

    def feed(self, text: str) -> None:
        """Take in a thought."""
        if self._begun is None:
            self._begun = self._monotonic()
        self._latest = (self._latest + self._safe.feed(text))[-_LATEST_CHARACTERS:]

    def end(self) -> None:
        """Forget the thoughts, for the reply goes on."""
        self._begun, self._latest = None, ""

    def rows(self, columns: int) -> list[Row]:
        """Return how long it has lasted and as much as there is room for of the latest thoughts; nothing if none."""
        if self._begun is None:
            return []
        told = f"thinking {dots(unicode=self._screen.unicode)} {self._monotonic() - self._begun:.0f} s"
        words = end_of(" ".join(self._latest.split()), columns - widest(told) - 2)
        return [dim_row(f"{told}  {words}" if words else told, columns, colour=self._screen.colour)]
