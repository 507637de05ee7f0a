"""Pygments lexers, in a process that ends when one of them takes too long.

A regular expression can only be interrupted in the main thread, which belongs to the event loop, and in any other it
holds Python's lock. So the chat starts this module as a process (see ``lexing_process``), by its path: it imports
nothing of Chorus.
"""

from __future__ import annotations

import json
import signal
import sys
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

# pygments has no types.
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Iterable

    Token = tuple[object, str]

TAB_SIZE = 4
_MAX_SECONDS = 0.3
"""Processor time for one block."""


class _Lexer(Protocol):
    def get_tokens(self, text: str) -> Iterable[Token]: ...


def tokens_of(language: str, code: str) -> list[Token]:
    """Return the tokens of ``code``, which contains no tabs."""
    return list(_lexer(language).get_tokens(code))


@cache
def _lexer(name: str) -> _Lexer:
    """Return the lexer that rich would use; cached, because an unknown name is searched for in all packages."""
    options: dict[str, bool | int] = {"stripnl": False, "ensurenl": True, "tabsize": TAB_SIZE}
    try:
        return cast("_Lexer", get_lexer_by_name(name, **options))
    except ClassNotFound:
        return cast("_Lexer", get_lexer_by_name("text", **options))


def serve() -> None:
    """Answer requests, lines of JSON, until standard input ends: then the chat has ended too, however it did.

    The default action of the timer's signal ends the process, even within a regular expression.
    """
    _tell("ready")
    for line in sys.stdin:
        language, code = json.loads(line)
        signal.setitimer(signal.ITIMER_VIRTUAL, _MAX_SECONDS)
        tokens = tokens_of(language, code)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        _tell([[str(kind), text] for kind, text in tokens])


def _tell(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve()
