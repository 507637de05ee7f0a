"""Bounds on what colours of code may cost, for a lexer that has begun to look does not come back before it is done.

Many lexers need the square or the cube of the length of what puzzles them, blanks above all: a few kilobytes are
enough to hold up a chat for good. Such code is not looked at. What else takes too long is given up while it is looked
at, and with it the colours of all further code of the reply.
"""

from __future__ import annotations

import re
import signal
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Found = TypeVar("_Found")

_MOST_CHARACTERS = 32_768
_LONGEST_LINE = 4_096
_LONGEST_BLANK = 200
_MOST_SECONDS = 0.5
_TOO_MUCH = re.compile(rf"\s{{{_LONGEST_BLANK}}}|[^\n]{{{_LONGEST_LINE}}}")


class _TooLongError(BaseException):
    """Work has taken its time; no lexer that catches exceptions of its own may catch this one."""


class LexingLimit:
    """What the lexers of one reply may cost; ``seconds`` are those of the processor, for one look at a block."""

    def __init__(self, seconds: float = _MOST_SECONDS) -> None:
        self._seconds = seconds
        self._is_exceeded = False

    def found(self, code: str, look: Callable[[], _Found]) -> _Found | None:
        """Return what ``look`` finds out about ``code``, whose tabs are blanks; ``None`` where that costs too much."""
        if self._is_exceeded or len(code) > _MOST_CHARACTERS or _TOO_MUCH.search(code):
            return None
        try:
            return _within(self._seconds, look)
        except _TooLongError:
            self._is_exceeded = True
            return None


def _within(seconds: float, work: Callable[[], _Found]) -> _Found:
    """Do ``work``, but no longer than so many seconds of the processor's time.

    A signal reaches also what is in the middle of a regular expression. It comes to the main thread alone, in which
    the event loop runs; elsewhere nothing is held up.

    Raises:
        _TooLongError: it took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    signal.signal(signal.SIGVTALRM, _stop)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        return work()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        # Not the default, which would end the program if the signal came late.
        signal.signal(signal.SIGVTALRM, _ignore)


def _stop(*_: object) -> None:
    raise _TooLongError


def _ignore(*_: object) -> None:
    return
