"""Lexers in a process of their own, which is killed if it does not answer in time: later code has no colours.

Many lexers take quadratic or cubic time on input they cannot match, long runs of blanks above all: a few kilobytes can
take hours. Such code is not lexed at all.

The process starts with the first code of a reply, without the keys in the environment, and ends with the reply; if the
chat is killed, its standard input ends, and so does it.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

# pygments has no types.
from pygments.token import string_to_tokentype  # type: ignore[import-untyped]

from chorus_cli.machine.environment import without_secrets
from chorus_cli.terminal.markdown import lexing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chorus_cli.terminal.markdown.lexing import Token

_PATIENCE_SECONDS = 1.0
"""The process itself stops after 0.3 seconds of processor time; this is for a machine that gives it none."""

_HURRY_SECONDS = 0.05

_PIECE_BYTES = 65_536
_WITHOUT_COLOURS = ("", "text")
_MAX_CHARACTERS = 32_768
_TOO_COSTLY = re.compile(r"\s{200}|[^\n]{4096}")


class Lexing(Protocol):
    """The lexers of one reply.

    If it does not wait (``waits``), code has no tokens while the lexers are being loaded.
    """

    waits: bool

    def tokens(self, language: str, code: str) -> Iterable[Token] | None:
        """Return the tokens of ``code``, which contains no tabs; ``None`` if lexing it costs too much."""
        ...

    def hurry(self) -> None:
        """Do without lexers that take long: the user has stopped the reply."""
        ...

    def close(self) -> None:
        """Need no more lexers."""
        ...


class NoAnswerError(Exception):
    """The process did not answer in time, or has ended."""


class LexingProcess:
    """The lexers of one reply, used by one thread at a time; a lexer that does not answer is the last that is asked.

    The process takes a moment to start. If ``waits`` is false, code has no colours until then, because it is drawn
    again soon.
    """

    def __init__(self, seconds: float = _PATIENCE_SECONDS) -> None:
        self.waits = True
        self._seconds = seconds
        self._pipes: Pipes | None = None
        self._is_ready = False
        self._is_over = False

    @property
    def pid(self) -> int | None:
        """The number of the process, ``None`` if there is none."""
        return None if self._pipes is None else self._pipes.pid

    def tokens(self, language: str, code: str) -> Iterable[Token] | None:
        """Return the tokens of ``code``; ``None`` if that costs too much or the process is not ready."""
        found = None if is_too_costly(code) else self._answer(language, code)
        return None if found is None else [(_kind(kind), text) for kind, text in found]

    def hurry(self) -> None:
        """Answer within 0.05 s from now on, also what another thread is waiting for: the user has stopped the reply."""
        self.waits, self._seconds = False, _HURRY_SECONDS

    def close(self) -> None:
        """End the process; code has no colours after that."""
        self._is_over = True
        if self._pipes is not None:
            self._pipes.close()
            self._pipes = None

    def _answer(self, language: str, code: str) -> list[Any] | None:
        if self._is_over or language in _WITHOUT_COLOURS:
            return None
        try:
            pipes = self._pipes = self._pipes or Pipes()
            if not (self._is_ready or self.waits or pipes.has_line()):
                return None
            if not self._is_ready:
                self._line(pipes)
                self._is_ready = True
            pipes.write(json.dumps([language, code]).encode() + b"\n", self._seconds)
            return cast("list[Any] | None", json.loads(self._line(pipes)))
        except (NoAnswerError, OSError, ValueError):
            self.close()
            return None

    def _line(self, pipes: Pipes) -> bytes:
        """Read a line from the process; `hurry` cuts a wait short that has begun."""
        began = time.monotonic()
        while not pipes.has_line(_HURRY_SECONDS):
            if time.monotonic() - began > self._seconds:
                raise NoAnswerError
        return pipes.line(self._seconds)


def is_too_costly(code: str) -> bool:
    """Return whether no lexer may look at ``code``."""
    return len(code) > _MAX_CHARACTERS or _TOO_COSTLY.search(code) is not None


class Pipes:
    """The process that serves `lexing`, and its pipes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a module of Chorus, without a shell
            # A file in the current folder is not imported in place of a module.
            [sys.executable, "-P", lexing.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=without_secrets(os.environ),
            # Ctrl-C is for the chat.
            start_new_session=True,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise ValueError("The process must have pipes.")
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def write(self, line: bytes, seconds: float) -> None:
        """Write a line within so many seconds.

        Raises:
            NoAnswerError: the process does not take it in time.
            OSError: the process has ended.
        """
        deadline = time.monotonic() + seconds
        while line:
            _, ready, _ = select.select([], [self._stdin], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise NoAnswerError
            line = line[os.write(self._stdin.fileno(), line) :]

    def line(self, seconds: float) -> bytes:
        """Read a line within so many seconds.

        Raises:
            NoAnswerError: none comes in time, or none at all.
        """
        deadline, line = time.monotonic() + seconds, b""
        while not line.endswith(b"\n"):
            has_more = self.has_line(max(0.0, deadline - time.monotonic()))
            piece = os.read(self._stdout.fileno(), _PIECE_BYTES) if has_more else b""
            if not piece:
                raise NoAnswerError
            line += piece
        return line

    def has_line(self, seconds: float = 0.0) -> bool:
        """Return whether something can be read within so many seconds."""
        return bool(select.select([self._stdout], [], [], seconds)[0])

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        self._stdin.close()
        self._stdout.close()


@cache
def _kind(name: str) -> object:
    """Return the kind of a token by its name."""
    return cast("object", string_to_tokentype(name.removeprefix("Token").removeprefix(".")))
