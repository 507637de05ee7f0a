"""Runs the lexers of pygments in a process. If it answers too late, it is killed, and later code has no colours.

Many lexers take quadratic or cubic time on text that they cannot match, above all on long runs of blanks; code with
such runs is not lexed. A thread would not do: a regular expression holds the global interpreter lock, and a signal can
interrupt it only in the main thread, where the event loop runs. The process runs this module by its path, without the
API keys of the environment. It starts with the first code of a reply and ends with the reply.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import BinaryIO, NamedTuple, cast

# pygments has no types.
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import string_to_tokentype  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

Token = tuple[object, str]

TAB_SIZE = 4
_MAX_SECONDS = 0.3  # of processor time for one block
_PATIENCE_SECONDS = 1.0  # of real time: the process must start, and a busy machine may give it no processor time

_WITHOUT_COLOURS = ("", "text")
_MAX_CHARACTERS = 32_768
_TOO_COSTLY = re.compile(r"\s{200}|[^\n]{4096}")


class Served(NamedTuple):
    """The process with the lexers, and the pipe to it. Each line in the pipe is a request or an answer."""

    process: subprocess.Popen[bytes]
    pipe: BinaryIO

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        with suppress(OSError):
            self.pipe.close()


class LexingProcess:
    """The lexers of one reply, for one worker thread at a time. After an answer that is late, no code is lexed."""

    def __init__(self, seconds: float = _PATIENCE_SECONDS) -> None:
        self.served: Served | None = None
        self._seconds = seconds
        self._is_over = False

    def tokens(self, language: str, code: str) -> Iterable[Token] | None:
        """Return the tokens of ``code``, which must contain no tabs; ``None`` if it is to have no colours."""
        return None if is_too_costly(code) else self.answer(language, code)

    def answer(self, language: str, code: str) -> Iterable[Token] | None:
        """Return the tokens of ``code``, even if costly; ``None`` for plain text, or once the process is closed."""
        if self._is_over or language in _WITHOUT_COLOURS:
            return None
        try:
            self.served = self.served or _started(self._seconds)
            pipe = self.served.pipe
            pipe.write(json.dumps([language, code]).encode() + b"\n")
            pipe.flush()
            return [(_kind(kind), text) for kind, text in json.loads(pipe.readline())]
        except (OSError, ValueError):
            self.close()
            return None

    def close(self) -> None:
        """End the process; code has no colours after that."""
        self._is_over = True
        if self.served is not None:
            self.served.end()
            self.served = None


def _started(seconds: float) -> Served:
    """Start the process; an answer that takes longer than ``seconds`` raises an ``OSError``."""
    from chorus_cli.machine.environment import without_secrets

    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(seconds)
        process = subprocess.Popen(  # noqa: S603 - a module of Chorus, without a shell
            # With -P, no file in the current folder is imported in place of a module.
            [sys.executable, "-P", __file__],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            env=without_secrets(os.environ),
            # In a session of its own, the process does not receive Ctrl-C.
            start_new_session=True,
        )
        return Served(process, cast("BinaryIO", ours.makefile("rwb")))


def is_too_costly(code: str) -> bool:
    """Return whether ``code`` is not lexed because of its length, its long lines or long runs of blanks."""
    return len(code) > _MAX_CHARACTERS or _TOO_COSTLY.search(code) is not None


@cache
def _kind(name: str) -> object:
    return cast("object", string_to_tokentype(name.removeprefix("Token").removeprefix(".")))


def tokens_of(language: str, code: str) -> list[Token]:
    """Return the tokens of ``code``, which contains no tabs."""
    return list(_lexer(language)(code))


@cache
def _lexer(name: str) -> Callable[[str], Iterable[Token]]:
    """Return the lexer that rich would use; cached, because an unknown name is searched for in all packages."""
    try:
        lexer = get_lexer_by_name(name, stripnl=False, ensurenl=True, tabsize=TAB_SIZE)
    except ClassNotFound:
        return _lexer("text")
    return cast("Callable[[str], Iterable[Token]]", lexer.get_tokens)


def serve() -> None:
    """Answer lines of JSON until standard input ends; a timer ends the process even within a regular expression."""
    for line in sys.stdin:
        language, code = json.loads(line)
        signal.setitimer(signal.ITIMER_VIRTUAL, _MAX_SECONDS)
        tokens = tokens_of(language, code)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        sys.stdout.write(json.dumps([[str(kind), text] for kind, text in tokens]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
