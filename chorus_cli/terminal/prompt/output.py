"""The terminal as the prompt draws on it, so that what was sent stands once and whole in what is scrolled up."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prompt_toolkit.output import DummyOutput, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import is_dumb_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prompt_toolkit.application import Application
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.output import Output

_ENDLESS_ROWS = 10_000_000


class PromptOutput(Vt100_Output):
    """prompt_toolkit's way to draw on ``terminal``, but for what spoils the rows that are scrolled up."""

    def __init__(self, terminal: Vt100_Output) -> None:
        super().__init__(
            terminal.stdout,
            terminal.get_size,
            term=terminal.term,
            default_color_depth=terminal.default_color_depth,
            enable_bell=terminal.enable_bell,
            enable_cpr=terminal.enable_cpr,
        )
        self._is_endless = False

    def erase_down(self) -> None:
        """Erase from the cursor, which is in the first column, to the end of the screen."""
        # From the very first cell, tmux would scroll the rows up instead, and they would stand there twice.
        self.erase_end_of_line()
        self.cursor_forward(1)
        super().erase_down()
        self.cursor_backward(1)

    def get_size(self) -> Size:
        """Return how much can be drawn."""
        size = super().get_size()
        return size._replace(rows=_ENDLESS_ROWS) if self._is_endless else size

    @contextmanager
    def endless(self) -> Iterator[None]:
        """Have no end of rows for a while: what is too many for the window is scrolled up."""
        self._is_endless = True
        try:
            yield
        finally:
            self._is_endless = False


def prompt_output() -> Output:
    """Return what the prompt is drawn on: nothing, where the terminal knows no places on the screen."""
    if is_dumb_terminal():
        return DummyOutput()
    output = create_output(sys.stdout)
    return PromptOutput(output) if isinstance(output, Vt100_Output) else output


def is_too_tall(application: Application[str]) -> bool:
    """Whether what stands at the prompt needs more rows than the window has."""
    size = application.output.get_size()
    return application.layout.container.preferred_height(size.columns, size.rows + 1).preferred > size.rows


def draw_whole(application: Application[str]) -> None:
    """Draw what was sent in place of as much of it as the window could show, and go below it."""
    application.renderer.erase()
    if isinstance(application.output, PromptOutput):
        with application.output.endless():
            application.renderer.render(application, application.layout, is_done=True)
