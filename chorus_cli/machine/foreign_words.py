"""What libraries write to standard error for their developers: warnings, lines of loggers, tracebacks."""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO, cast

from chorus_cli.core.errors import ChorusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_BEGINS = "Traceback (most recent call last)"


class ForeignWords(io.TextIOBase):
    """Replaces standard error, and notes the first line of each text in a log file; of a traceback only its kind.

    ``own`` is the stream that it replaces, ``None`` if that is closed. ``log_file`` returns the file, or ``None`` if
    nothing may be kept.
    """

    def __init__(self, own: TextIO | None, log_file: Callable[[], Path | None], environment: Mapping[str, str]) -> None:
        self.own = own
        self.is_kept = True
        self._log_file = log_file
        self._environment = environment
        self._in_traceback = False

    def writable(self) -> bool:
        """Return that it can be written."""
        return True

    def write(self, text: str) -> int:
        """Note the first line of a text, if there are words in it; the others may quote the conversation."""
        first_line = next(filter(None, map(str.strip, self._own_lines(text))), "")
        if first_line and self.is_kept:
            # What cannot be kept is no reason to fail, for a library even less.
            with suppress(ChorusError, OSError):
                self._note(first_line)
        return len(text)

    def _own_lines(self, text: str) -> Iterator[str]:
        """Yield the lines of a text; of a traceback, which Python writes line by line, only the kind of its error."""
        for line in text.splitlines():
            if line.startswith(_BEGINS):
                self._in_traceback = True
            elif not self._in_traceback:
                yield line
            elif line and not line.startswith(" "):
                self._in_traceback = False
                yield line.partition(":")[0]

    def _note(self, line: str) -> None:
        from chorus_cli.machine.bug_report import note  # noqa: PLC0415 - libraries rarely have anything to say

        log_file = self._log_file()
        if log_file is not None:
            note(log_file, line, self._environment)


@contextmanager
def noted(log_file: Callable[[], Path | None], environment: Mapping[str, str]) -> Iterator[None]:
    """Have what libraries write to standard error meanwhile noted in a log file."""
    own = sys.stderr
    sys.stderr = cast("TextIO", ForeignWords(own, log_file, environment))
    try:
        yield
    finally:
        sys.stderr = own


@contextmanager
def unnoted() -> Iterator[None]:
    """Have it forgotten meanwhile: it may quote a private chat."""
    words = sys.stderr if isinstance(sys.stderr, ForeignWords) else None
    was_kept = words is not None and words.is_kept
    if words is not None:
        words.is_kept = False
    try:
        yield
    finally:
        if words is not None:
            words.is_kept = was_kept


def own_standard_error() -> TextIO | None:
    """Return the standard error that the user sees; ``None`` if it is closed."""
    return sys.stderr.own if isinstance(sys.stderr, ForeignWords) else sys.stderr
