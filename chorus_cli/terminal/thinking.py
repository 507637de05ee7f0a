"""What is shown of a model's thinking: one dim line, gone when the reply comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.safe_text import SafeTextStream
from chorus_cli.terminal.painted_rows import Row, widest

if TYPE_CHECKING:
    from collections.abc import Callable

_DIM, _END = "\x1b[2m", "\x1b[0m"
_LATEST_CHARACTERS = 500


class Thinking:
    """The thoughts that came since the last piece of the reply; ``monotonic`` tells the time in seconds."""

    def __init__(self, monotonic: Callable[[], float], *, colour: bool) -> None:
        self._monotonic = monotonic
        self._colour = colour
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
        told = f"thinking … {self._monotonic() - self._begun:.0f} s"
        words = _end_of(" ".join(self._latest.split()), columns - widest(told) - 2)
        line = f"{told}  {words}" if words else told
        return [Row(f"{_DIM}{line}{_END}" if self._colour else line, line, widest(line))]


def _end_of(text: str, columns: int) -> str:
    """Return as much of the end of ``text`` as surely has room."""
    start = len(text)
    while start and columns >= widest(text[start - 1]):
        start -= 1
        columns -= widest(text[start])
    return text[start:]
