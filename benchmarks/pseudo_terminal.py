"""A program at a terminal of its own, as a person would start it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

_ROWS, _COLUMNS = 24, 80
_PATIENCE_SECONDS = 30.0
_READ_BYTES = 65536
_CONTROL_SEQUENCE = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_=>]")


class PseudoTerminal:
    """A running program, what it has shown so far, and a keyboard."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start ``command`` in a terminal of 24 rows and 80 columns."""
        # Nothing answers when prompt_toolkit asks where the cursor is.
        hooks = {**environment, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            _become(command, hooks)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self._shown = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the program if it still runs."""
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self._process, 0)
        os.close(self._terminal)

    @property
    def process_id(self) -> int:
        """The program's process."""
        return self._process

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._terminal, keys)

    def wait_for(self, text: bytes) -> None:
        """Return as soon as ``text`` is shown after the text of the last wait; control sequences do not count.

        Raises:
            RuntimeError: the program ended or fell silent without showing it.
        """
        while text not in (visible := _CONTROL_SEQUENCE.sub(b"", self._shown)):
            piece = self._read()
            if not piece:
                raise RuntimeError(f"{text!r} never appeared, only {self._shown!r}.")
            self._shown += piece
        self._shown = visible.partition(text)[2]

    def seconds_to_show(self, key: bytes, before: bytes = b"") -> float:
        """Press the keys ``before`` and then ``key``, and return how long it takes until ``key`` is shown.

        Raises:
            RuntimeError: it never is.
        """
        begun = time.perf_counter()
        self.type(before + key)
        self.wait_for(key)
        return time.perf_counter() - begun

    def wait_for_prompt(self, sign: bytes) -> None:
        """Return as soon as a prompt with ``sign`` is there and shows the key that is then typed, a ``Z``.

        Raises:
            RuntimeError: the prompt never came, or never took the key.
        """
        self.wait_for(sign)
        self.seconds_to_show(b"Z")

    def wait_for_end(self) -> None:
        """Read until the program has ended, or has been silent for long."""
        while self._read():
            pass

    def _read(self) -> bytes:
        """Return the next output; empty if the program has ended or is silent for too long."""
        readable, _, _ = select.select([self._terminal], [], [], _PATIENCE_SECONDS)
        try:
            return os.read(self._terminal, _READ_BYTES) if readable else b""
        except OSError:
            return b""  # so Linux says that nobody is at the other end


def seconds_to_prompt(command: Sequence[str], environment: Mapping[str, str], sign: bytes) -> float:
    """Return how long ``command`` takes from its start until its prompt shows a key that was typed there.

    The program is left by Ctrl-D.

    Raises:
        RuntimeError: the prompt never came, or never took the key.
    """
    begun = time.perf_counter()
    with PseudoTerminal(command, environment) as terminal:
        terminal.wait_for_prompt(sign)
        taken = time.perf_counter() - begun
        terminal.type(b"\x7f\x04")
        terminal.wait_for_end()
    return taken


def _become(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Turn this process, a fork, into ``command``; even after an error it must not continue as a second benchmark."""
    try:
        os.execve(command[0], list(command), dict(environment))  # noqa: S606 - a shell would be measured too
    finally:
        os._exit(127)
