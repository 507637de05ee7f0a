"""Who owns the keyboard while a reply is painted: nobody reads it, and what is typed waits for the prompt."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def typing_ahead() -> Iterator[None]:
    """Turn off echo and line editing, but not Ctrl-C; the kernel keeps the keys until the next prompt reads them."""
    try:
        # Not every Python has it, and without a terminal there is nothing to set.
        import termios  # noqa: PLC0415

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (ImportError, AttributeError, ValueError, OSError, termios.error):
        yield
        return
    quiet = [*before]
    quiet[3] = before[3] & ~(termios.ECHO | termios.ICANON) | termios.ISIG
    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
