"""What is shown when a reply has begun and no more of it comes: one dim line, gone with the next word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.terminal.screen.dim_row import dim_row, dots

if TYPE_CHECKING:
    from collections.abc import Callable

    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.painted_rows import Row

_PATIENCE_SECONDS = 3.0


class Silence:
    """The time since the last piece of the reply; ``monotonic`` tells it in seconds."""

    def __init__(self, screen: Screen, monotonic: Callable[[], float]) -> None:
        self._screen = screen
        self._monotonic = monotonic
        self._begun: float | None = None

    def __bool__(self) -> bool:
        return self._begun is not None

    def begin(self) -> None:
        """Count from now on: a piece has come, and another one is awaited."""
        self._begun = self._monotonic()

    def end(self) -> None:
        """Show nothing any more: something else is shown, or the reply is over."""
        self._begun = None

    def rows(self, columns: int) -> list[Row]:
        """Return how long nothing has come; nothing while that is not long."""
        seconds = 0.0 if self._begun is None else self._monotonic() - self._begun
        if seconds < _PATIENCE_SECONDS:
            return []
        told = f"waiting for more {dots(unicode=self._screen.unicode)} {seconds:.0f} s"
        return [dim_row(told, columns, colour=self._screen.colour)]
