"""Who owns the keyboard while a reply is painted: nobody reads it, and what is typed waits for the prompt."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prompt_toolkit.key_binding.key_processor import KeyPress


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
        quiet = [*before]
        # The Enter key must reach the prompt as itself, not as the line feed that Ctrl-J is.
        quiet[0] = before[0] & ~termios.ICRNL
        # Ctrl-C stops the reply; what was typed ahead stays.
        quiet[3] = before[3] & ~(termios.ECHO | termios.ICANON) | termios.ISIG | termios.NOFLSH
        # Whoever has lost the terminal may ask how it is set, but not set it.
        termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    except (ImportError, AttributeError, ValueError, OSError, termios.error):
        yield
        return
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


def hang_ups() -> tuple[type[Exception], ...]:
    """Return the kinds of errors that a terminal which is gone, or belongs to somebody else now, answers with."""
    try:
        # Not every Python has it.
        import termios  # noqa: PLC0415
    except ImportError:
        return (OSError,)
    return OSError, termios.error


@contextmanager
def suspendable(take_down: Callable[[], None], feed: Callable[[str], None] | None = None) -> Iterator[None]:
    """Have Ctrl-Z hand a sane terminal to the shell, and go on when the shell says so.

    ``take_down`` takes away what is painted for a while, so that the shell does not write into it. Where keys are typed
    ahead, ``feed`` takes them: left where they are, the shell would read them.
    """
    if signal.getsignal(signal.SIGTSTP) is signal.SIG_IGN:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTSTP, _suspend, take_down, feed)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTSTP)


def typed_early() -> str:
    """Return what was typed before line editing was turned off.

    Until then the terminal made a line feed of Enter, and of Ctrl-D the end of a line, which is left as a zero.
    """
    return _waiting_keys().replace("\n", "\r").replace("\0", "\x04")


def presses(keys: str) -> list[KeyPress]:
    """Return the keys that what a terminal sends stands for."""
    # Nearly nobody types before the prompt is there, or when a signal ends the chat.
    from prompt_toolkit.input.vt100_parser import Vt100Parser  # noqa: PLC0415

    pressed: list[KeyPress] = []
    Vt100Parser(pressed.append).feed_and_flush(keys)
    return pressed


def text_of_keys(keys: str) -> str:
    """Return the text that keys make at a prompt: Enter a new line, Backspace one sign less, others nothing."""
    # Nearly nobody types when a signal ends the chat.
    from prompt_toolkit.keys import Keys  # noqa: PLC0415

    text = ""
    for each in presses(keys):
        if each.key in {Keys.ControlM, Keys.ControlJ}:
            text += "\n"
        elif each.key is Keys.ControlH:
            text = text[:-1]
        elif each.key is Keys.BracketedPaste or not isinstance(each.key, Keys):
            text += each.data
    return text


def _waiting_keys() -> str:
    try:
        descriptor = sys.stdin.fileno()
        ready, _, _ = select.select([descriptor], [], [], 0)
        data = os.read(descriptor, _MOST_EARLY_BYTES) if ready else b""
    except (AttributeError, ValueError, OSError):
        return ""
    return data.decode(errors="replace")


def _suspend(take_down: Callable[[], None], feed: Callable[[str], None] | None) -> None:
    """Stop as the signal would have done it, with the terminal in order meanwhile."""
    take_down()
    with nullcontext() if feed is None else _shell_typing(feed):
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)


@contextmanager
def _shell_typing(feed: Callable[[str], None]) -> Iterator[None]:
    """Turn echo and line editing on for a while; what was typed until then is given to ``feed``."""
    import termios  # noqa: PLC0415 - see above

    feed(_waiting_keys())
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    plain = [*before]
    plain[0] = before[0] | termios.ICRNL
    plain[3] = before[3] & ~termios.NOFLSH | termios.ECHO | termios.ICANON
    termios.tcsetattr(descriptor, termios.TCSANOW, plain)
    _mark_pastes("l")
    try:
        yield
    finally:
        # A window that was closed meanwhile needs no restoring.
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
        _mark_pastes("h")


def _mark_pastes(switch: str) -> None:
    """Have the terminal mark what is pasted (``h``), as the prompt does while it is there, or no longer (``l``)."""
    if sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        with suppress(OSError):
            os.write(sys.stdout.fileno(), f"\x1b[?2004{switch}".encode())
