"""Who owns the keyboard while a reply is painted: nobody reads it, and what is typed waits for the prompt."""

from __future__ import annotations

import os
import select
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


_MOST_EARLY_BYTES = 65_536


@contextmanager
def typing_ahead(*, for_nobody_else: bool = False) -> Iterator[None]:
    """Turn off echo and line editing, but not Ctrl-C; the kernel keeps the keys until the next prompt reads them.

    When a signal or an error ends it, what is typed ``for_nobody_else`` is dropped: a shell might run it.
    """
    try:
        # Not every Python has it, and without a terminal there is nothing to set.
        import termios  # noqa: PLC0415

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (ImportError, AttributeError, ValueError, OSError, termios.error):
        yield
        return
    quiet = [*before]
    # The Enter key must reach the prompt as itself, not as the line feed that Ctrl-J is.
    quiet[0] = before[0] & ~termios.ICRNL
    # Ctrl-C stops the reply; what was typed ahead stays.
    quiet[3] = before[3] & ~(termios.ECHO | termios.ICANON) | termios.ISIG | termios.NOFLSH
    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    _mark_pastes("h")
    when = termios.TCSANOW
    try:
        yield
    except BaseException:
        when = termios.TCSAFLUSH if for_nobody_else else when
        raise
    finally:
        # A window that was closed meanwhile needs no restoring.
        with suppress(termios.error):
            termios.tcsetattr(descriptor, when, before)
        _mark_pastes("l")


def typed_early() -> str:
    """Return what was typed before line editing was turned off: until then the terminal made a line feed of Enter."""
    try:
        descriptor = sys.stdin.fileno()
        ready, _, _ = select.select([descriptor], [], [], 0)
        data = os.read(descriptor, _MOST_EARLY_BYTES) if ready else b""
    except (AttributeError, ValueError, OSError):
        return ""
    return data.decode(errors="replace").replace("\n", "\r")


def _mark_pastes(switch: str) -> None:
    """Have the terminal mark what is pasted (``h``), as the prompt does while it is there, or no longer (``l``)."""
    if sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        with suppress(OSError):
            os.write(sys.stdout.fileno(), f"\x1b[?2004{switch}".encode())
