"""Everything that reaches the user's eyes goes through here, and through the guard."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, TextIO

from chorus_cli.core.errors import OutputError
from chorus_cli.core.text.safe_text import safe_text
from chorus_cli.terminal.screen.guard import TerminalGuard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DIM = "\x1b[2m"
_RED = "\x1b[31m"
_END = "\x1b[0m"


class Screen:
    """One of the process's output streams, made safe.

    ``colour`` says whether styles may be used, ``unicode`` whether every character can be shown;
    ``breaks_rows`` says what becomes of wide rows in a window that is made narrower: they are broken, or else cut off.
    ``painted`` are ways to take down what stands at the end for a while; whoever painted it does so again. What cannot
    be shown on an ``optional`` one is dropped: nobody reads it, and the answer matters more.
    """

    def __init__(self, stream: TextIO, environment: Mapping[str, str] = os.environ, *, optional: bool = False) -> None:
        self._optional = optional
        terminal = stream.isatty() and environment.get("TERM") != "dumb"
        self.is_terminal = stream.isatty()
        self.colour = terminal and not environment.get("NO_COLOR")
        self.breaks_rows = _breaks_rows(environment)
        self.guard = TerminalGuard(stream, allow_sequences=terminal)
        self.unicode = self.guard.encoding.lower().startswith("utf")
        self.painted: list[Callable[[], None]] = []

    def write(self, text: str) -> None:
        """Show text that is safe already, as it is, at once; a terminal that is gone shows nothing and harms nobody.

        Raises:
            BrokenPipeError: whoever read the output has enough.
            OutputError: the output takes no more.
        """
        try:
            self.guard.write(text)
            self.guard.flush()
        except BrokenPipeError:
            if not self._optional:
                raise
        except OSError as error:
            if error.errno != errno.EIO and not self._optional:
                raise OutputError(f"The output cannot be written: {error.strerror}.") from error

    def line(self, text: str) -> None:
        """Show a paragraph by whomever."""
        self.take_down()
        self.write(safe_text(text) + "\n")

    def paragraph(self, text: str) -> None:
        """Show sentences, broken between words."""
        self.take_down()
        self.write(self._wrapped(safe_text(text)) + "\n")

    def notice(self, text: str) -> None:
        """Show a sentence beside the conversation."""
        self._styled(_DIM, text)

    def error(self, text: str) -> None:
        """Show what went wrong."""
        self._styled(_RED, text)

    def take_down(self) -> None:
        """Take away what is painted at the end for a while, so that something else may be written there."""
        for take_down in self.painted:
            take_down()

    def _styled(self, style: str, text: str) -> None:
        self.take_down()
        safe = self._wrapped(safe_text(text))
        self.write(f"{style}{safe}{_END}\n" if self.colour else f"{safe}\n")

    def _wrapped(self, text: str) -> str:
        """Break a sentence between words where the terminal would break it anywhere."""
        if not self.is_terminal:
            return text
        width = shutil.get_terminal_size().columns
        return "\n".join(
            textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in text.splitlines()
        )


def standard_output() -> Screen:
    """Return the screen for answers; a closed stdout swallows them, so that a reply is stored whole all the same."""
    return Screen(sys.stdout or _nowhere())


def refuse_closed_output() -> None:
    """Do nothing where stdout is open.

    Raises:
        OutputError: it is closed, so that nobody sees an answer.
    """
    if sys.stdout is None:
        raise OutputError("The output cannot be written: it is closed.")


def standard_error() -> Screen:
    """Return the screen for everything that is not the answer."""
    return Screen(sys.stderr or _nowhere(), optional=True)


def _breaks_rows(environment: Mapping[str, str]) -> bool:
    """Whether a terminal that becomes narrower breaks the rows that are wider; old ones are known to cut them off."""
    if environment.get("TMUX"):
        return True
    return not (
        environment.get("XTERM_VERSION") or environment.get("STY") or environment.get("TERM", "").startswith("linux")
    )


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - it lives as long as the process
