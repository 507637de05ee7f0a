"""The terminal's keyboard while the chat is working: Ctrl-C and Ctrl-Z act at once, other keys wait to be read."""

from __future__ import annotations

import asyncio
import math
import os
import select
import signal
import sys
import termios
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

AtRest = Callable[[], AbstractContextManager[None]]

# Errors raised by a terminal that is closed, or that belongs to another process group now.
HANG_UPS: tuple[type[Exception], ...] = (OSError, termios.error)
_MAX_EARLY_BYTES = 65_536
_AT_ONCE_SECONDS = 0.5


class Foreground:
    """The piece of work that Ctrl-C stops; at the prompt there is no work, and Ctrl-C is a key.

    ``take_key`` removes Ctrl-C from the keys that the prompt left unread, and returns whether it was among them.
    ``is_stopped`` says whether Ctrl-C was pressed during the last piece of work.
    When a signal has ended the run, ``typed_ahead`` has the keys that were typed for the next prompt.
    """

    def __init__(self, suspendable: Callable[[], AbstractContextManager[None]], take_key: Callable[[], bool]) -> None:
        self.typed_ahead = ""
        self.is_stopped = False
        self._suspendable = suspendable
        self._take_key = take_key
        self._work: asyncio.Task[object] | None = None
        self._stopped_at = -math.inf

    async def carry_out(self, work: Coroutine[None, None, bool]) -> bool:
        """Do ``work`` and return its result, false if Ctrl-C stopped it; other keys meanwhile wait to be read."""
        task = asyncio.create_task(self._stoppable(work))
        with _modes(_unechoed), self._suspendable():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                task.cancel()
                await asyncio.wait({task})
                # The keys are read now: later, in the shell's terminal modes, an unfinished line could not be read.
                self.typed_ahead = typed_early()
                raise
        return False if task.cancelled() else task.result()

    def stop(self) -> None:
        """Stop the work; if there is none now, stop the work that begins within half a second."""
        if self._work is not None:
            self.is_stopped = True
            self._work.cancel()
        else:
            self._stopped_at = time.monotonic()

    async def _stoppable(self, work: Coroutine[None, None, bool]) -> bool:
        """Do ``work``, which can be stopped only once it has begun: before that, the message would be lost."""
        self._work = task = asyncio.current_task()
        # Ctrl-C may have come since Enter, as a key or a signal. From here on a signal finds the work.
        was_signal = time.monotonic() - self._stopped_at < _AT_ONCE_SECONDS
        self._stopped_at = -math.inf
        self.is_stopped = self._take_key() or was_signal
        if self.is_stopped and task is not None:
            # If the work has ended by then, this stops nothing.
            asyncio.get_running_loop().call_soon(task.cancel)
        try:
            return await work
        finally:
            self._work = None


@contextmanager
def typing_ahead() -> Iterator[None]:
    """Own the terminal: nothing is echoed, pastes are marked, and the kernel keeps keys until a prompt reads them."""
    with _modes(_unechoed, drops_keys=True):
        _mark_pastes("h")
        try:
            yield
        finally:
            _mark_pastes("l")


@contextmanager
def pastes_unmarked() -> Iterator[None]:
    """Turn bracketed paste off while another program has the terminal: an editor, or the shell after Ctrl-Z."""
    _mark_pastes("l")
    try:
        yield
    finally:
        _mark_pastes("h")


def can_mark_pastes() -> bool:
    """Return whether bracketed paste can be turned on: standard output is a terminal that obeys escape sequences."""
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def _modes(change: Callable[[list[Any]], None], *, drops_keys: bool = False) -> Iterator[None]:
    """Change the modes of a terminal. With ``drops_keys``, an error drops unread keys, which a shell might run."""
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        changed = [*before]
        change(changed)
        # A process that has lost its terminal may read the modes, but not change them.
        termios.tcsetattr(descriptor, termios.TCSANOW, changed)
    except (AttributeError, ValueError, OSError, termios.error):
        yield
        return
    when = termios.TCSANOW
    try:
        yield
    except BaseException:
        when = termios.TCSAFLUSH if drops_keys else when
        raise
    finally:
        # A terminal that was closed meanwhile needs no restoring.
        with suppress(termios.error):
            termios.tcsetattr(descriptor, when, before)


def _unechoed(modes: list[Any]) -> None:
    # Enter must reach the prompt as a carriage return; a line feed is Ctrl-J.
    modes[0] &= ~termios.ICRNL
    # With ISIG, Ctrl-C stops the reply. With NOFLSH, Ctrl-C does not drop the keys typed ahead.
    modes[3] = modes[3] & ~(termios.ECHO | termios.ICANON) | termios.ISIG | termios.NOFLSH


def _plain(modes: list[Any]) -> None:
    modes[0] |= termios.ICRNL
    modes[3] = modes[3] & ~termios.NOFLSH | termios.ECHO | termios.ICANON


def suspendable(
    take_down: Callable[[], None], at_rest: AtRest, feed: Callable[[str], None] | None = None
) -> AbstractContextManager[None]:
    """Let Ctrl-Z suspend the program within ``at_rest``; ``feed`` gets unread keys, so that the shell gets none."""

    def suspend() -> None:
        take_down()
        with nullcontext() if feed is None else _shell_typing(feed):
            stop(os.getpid(), at_rest)

    return suspended_by(suspend)


@contextmanager
def suspended_by(suspend: Callable[[], None]) -> Iterator[None]:
    """Call ``suspend`` when the signal of Ctrl-Z arrives, unless the program ignores this signal."""
    if signal.getsignal(signal.SIGTSTP) is signal.SIG_IGN:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTSTP, suspend)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTSTP)


def stop(process_id: int, at_rest: AtRest) -> None:
    """Stop this process, or its group if ``process_id`` is 0, as Ctrl-Z does by default; return when continued."""
    with at_rest():
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(process_id, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)


def typed_early() -> str:
    """Return the keys that wait in the terminal, with Enter and Ctrl-D as the prompt reads them."""
    return _waiting_keys().replace("\n", "\r").replace("\0", "\x04")


def _waiting_keys() -> str:
    try:
        descriptor = sys.stdin.fileno()
        ready, _, _ = select.select([descriptor], [], [], 0)
        data = os.read(descriptor, _MAX_EARLY_BYTES) if ready else b""
    except (AttributeError, ValueError, OSError):
        return ""
    return data.decode(errors="replace")


@contextmanager
def _shell_typing(feed: Callable[[str], None]) -> Iterator[None]:
    feed(_waiting_keys())
    with _modes(_plain), pastes_unmarked():
        yield


def _mark_pastes(switch: str) -> None:
    if can_mark_pastes():
        with suppress(OSError):
            os.write(sys.stdout.fileno(), f"\x1b[?2004{switch}".encode())
