"""Pygments lexers with bounded cost that can resume in the middle of a code block.

Many lexers take quadratic or cubic time on input they cannot match, long runs of blanks above all: a few kilobytes can
take hours. Such code is not lexed. Anything else that takes too long is interrupted, and the rest of the reply's code
is drawn without colours.

A regular expression can only be interrupted in the main thread, which belongs to the event loop, and in any other it
holds Python's lock. So the chat starts this module as a process (see ``lexing_process``), by its path: it imports
nothing of Chorus.

The colours of a line depend on the lines before it (a string over many lines). The part of a block that follows a
printed one is therefore lexed from the stack of states in which the lexer left the printed one.
"""

from __future__ import annotations

import inspect
import json
import re
import signal
import sys
import threading
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

# pygments has no types.
from pygments.lexer import ExtendedRegexLexer, RegexLexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Stack = tuple[str, ...]
    """Names of the lexer's states, the current one last."""

    Change = str | int | Iterable[str] | None
    Rule = tuple[Callable[[str, int], re.Match[str] | None], object, Change]
    Token = tuple[object, str]

_Result = TypeVar("_Result")

TAB_SIZE = 4
ROOT: Stack = ("root",)
_MAX_CHARACTERS = 32_768
_MAX_LINE_CHARACTERS = 4_096
_MAX_BLANKS = 200
_MAX_SECONDS = 0.3
_TOO_COSTLY = re.compile(rf"\s{{{_MAX_BLANKS}}}|[^\n]{{{_MAX_LINE_CHARACTERS}}}")


class _Lexer(Protocol):
    """The methods and attributes of a pygments lexer that are used here."""

    _tokens: Mapping[str, Sequence[Rule]]

    def get_tokens(self, text: str) -> Iterable[Token]: ...

    def get_tokens_unprocessed(self, text: str, stack: Stack = ...) -> Iterable[tuple[int, object, str]]: ...


class Lexing(Protocol):
    """The lexers of one reply; code that is too costly to lex has no tokens.

    If it does not wait (``waits``), code has none either while the lexers are being loaded.
    """

    waits: bool

    def tokens(self, language: str, code: str, stack: Stack) -> Iterable[Token] | None:
        """Return the tokens of ``code``, which contains no tabs, lexed from ``stack`` on."""
        ...

    def points(self, language: str, code: str, stack: Stack) -> Mapping[int, Stack]:
        """Return the lines at which lexing can resume (see `resumption_points`)."""
        ...

    def hurry(self) -> None:
        """Do without lexers that take long: the user has stopped the reply."""
        ...

    def close(self) -> None:
        """Need no more lexers."""
        ...


class _TooLongError(BaseException):
    """Lexing exceeded its time limit; a ``BaseException``, so that no lexer's own handler catches it."""


class LexingLimit:
    """Cost limit for the lexers of one reply; ``seconds`` are processor time for one run over a block."""

    def __init__(self, seconds: float = _MAX_SECONDS) -> None:
        self.waits = True
        self._seconds = seconds
        self._is_exceeded = False

    def run(self, code: str, lex: Callable[[], _Result]) -> _Result | None:
        """Return the result of ``lex`` for ``code``, which contains no tabs; ``None`` if that costs too much."""
        if self._is_exceeded or is_too_costly(code):
            return None
        try:
            return _within(self._seconds, lex)
        except _TooLongError:
            self._is_exceeded = True
            return None

    def tokens(self, language: str, code: str, stack: Stack) -> Iterable[Token] | None:
        """Return the tokens of ``code``; ``None`` if that costs too much."""
        lexer = _lexer(language)
        if stack == ROOT:
            return self.run(code, lambda: list(lexer.get_tokens(code)))
        return self.run(code, lambda: [(kind, text) for _, kind, text in lexer.get_tokens_unprocessed(code, stack)])

    def points(self, language: str, code: str, stack: Stack) -> Mapping[int, Stack]:
        """Return the lines at which lexing can resume (see `resumption_points`)."""
        return resumption_points(language, code, stack, self)

    def hurry(self) -> None:
        """Do nothing: these lexers have their limit."""

    def close(self) -> None:
        """Do nothing: these lexers are loaded once for all replies."""


class BoundedLexer:
    """Lexer ``language``, starting with ``stack``, with the one method that rich calls."""

    def __init__(self, language: str, stack: Stack, lexing: Lexing) -> None:
        self._language = language
        self._stack = stack
        self._lexing = lexing

    def get_tokens(self, code: str) -> Iterable[Token]:
        """Return the tokens of ``code``; a single plain-text kind if lexing it costs too much."""
        tokens = self._lexing.tokens(self._language, code, self._stack)
        return _lexer("text").get_tokens(code) if tokens is None else tokens


def is_too_costly(code: str) -> bool:
    """Return whether no lexer may look at ``code``."""
    return len(code) > _MAX_CHARACTERS or _TOO_COSTLY.search(code) is not None


def resumption_points(language: str, code: str, stack: Stack, limit: LexingLimit) -> Mapping[int, Stack]:
    """Return the numbers of the lines of ``code`` at which lexing can resume, each with the stack there.

    No such line is inside a token, for example a comment over many lines. If the lexer keeps no states, or lexing the
    code costs too much, lexing can resume at any line.
    """
    lexer = _lexer(language or "text")
    expanded = code.expandtabs(TAB_SIZE)
    points = limit.run(expanded, lambda: _points(lexer, expanded, stack)) if _keeps_states(lexer) else None
    return anywhere(code) if points is None else points


def anywhere(code: str) -> Mapping[int, Stack]:
    """Return all lines of ``code``, each with the stack of a beginning."""
    return dict.fromkeys(range(1, 1 + code.count("\n")), ROOT)


def _points(lexer: _Lexer, expanded: str, stack: Stack) -> Mapping[int, Stack]:
    points: dict[int, Stack] = {}
    line, seen = 0, 0
    for position, states in _states(lexer, expanded, stack):
        line, seen = line + expanded.count("\n", seen, position), position
        if expanded.startswith("\n", position - 1):
            points[line] = states
    return points


@cache
def _lexer(name: str) -> _Lexer:
    """Return the lexer that rich would use; cached, because an unknown name is searched for in all packages."""
    options: dict[str, bool | int] = {"stripnl": False, "ensurenl": True, "tabsize": TAB_SIZE}
    try:
        return cast("_Lexer", get_lexer_by_name(name, **options))
    except ClassNotFound:
        return cast("_Lexer", get_lexer_by_name("text", **options))


def _keeps_states(lexer: _Lexer) -> bool:
    return (
        isinstance(lexer, RegexLexer)
        and not isinstance(lexer, ExtendedRegexLexer)
        and "stack" in inspect.signature(lexer.get_tokens_unprocessed).parameters
    )


def _states(lexer: _Lexer, code: str, stack: Stack) -> Iterator[tuple[int, Stack]]:
    """Apply the documented rules of ``RegexLexer`` to ``code``; yield position and stack after each step."""
    rules, states, position = lexer._tokens, list(stack), 0  # noqa: SLF001 - the compiled rules have no public name
    while position < len(code):
        for matched, _, change in rules[states[-1]]:
            match = matched(code, position)
            if match:
                position = match.end()
                _apply(change, states)
                break
        else:
            if code[position] == "\n":
                states = [*ROOT]
            position += 1
        yield position, tuple(states)


def _apply(change: Change, states: list[str]) -> None:
    """Change the stack as a rule says; the bottom state always stays."""
    match change:
        case None:
            return
        case int():
            del states[max(1, len(states) + change) :]
        case str():
            _apply((change,), states)
        case _:
            for name in change:
                if name == "#pop":
                    del states[max(1, len(states) - 1) :]
                else:
                    states.append(states[-1] if name == "#push" else name)


def _within(seconds: float, work: Callable[[], _Result]) -> _Result:
    """Do ``work`` within so many seconds of processor time.

    The signal interrupts even a running regular expression. Signals reach only the main thread, which runs the event
    loop; in other threads work is not limited, because it blocks nothing.

    Raises:
        _TooLongError: the time is over.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    signal.signal(signal.SIGVTALRM, _stop)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        return work()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        # The default action would end the program if the signal arrived late.
        signal.signal(signal.SIGVTALRM, _ignore)


def _stop(*_: object) -> None:
    raise _TooLongError


def _ignore(*_: object) -> None:
    return


def serve() -> None:
    """Answer requests, lines of JSON, until standard input ends: then the chat has ended too, however it did."""
    limit = LexingLimit()
    _tell("ready")
    for line in sys.stdin:
        kind, language, code, stack = json.loads(line)
        if kind == "points":
            _tell(list(limit.points(language, code, tuple(stack)).items()))
        else:
            tokens = limit.tokens(language, code, tuple(stack))
            _tell(None if tokens is None else [[str(token), text] for token, text in tokens])


def _tell(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve()
