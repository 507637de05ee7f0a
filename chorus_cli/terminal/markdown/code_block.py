"""Draws code, whole or in parts: what of a long fence is on the screen for good need not be looked at again.

The colours of a line depend on what the lexer has seen before (a string over many lines), so a part begins with the
states that the lexer was in when the last one ended.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

# pygments has no types.
from pygments.lexer import ExtendedRegexLexer, RegexLexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from rich.markdown import CodeBlock
from rich.syntax import Syntax

from chorus_cli.terminal.screen.palette import CODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown

    from chorus_cli.terminal.markdown.lexing_limit import LexingLimit

_TAB_SIZE = 4
_AT_THE_BEGINNING: tuple[str, ...] = ("root",)


@dataclass(frozen=True, slots=True)
class CodePart:
    """Which part of a fence: the states of the lexer at its beginning, and whether it has the block's two ends."""

    stack: tuple[str, ...] = _AT_THE_BEGINNING
    is_first: bool = True
    is_last: bool = True

    def unfinished(self) -> CodePart:
        """Return the same part with another one below it."""
        return replace(self, is_last=False)

    def continued(self, stack: tuple[str, ...] | None = None) -> CodePart:
        """Return the part below this one."""
        return CodePart(self.stack if stack is None else stack, is_first=False)


WHOLE = CodePart()


class CodeInParts(CodeBlock):
    """A code block as rich draws it, or a part of one."""

    def __init__(self, lexer_name: str, theme: str, part: CodePart, limit: LexingLimit) -> None:
        super().__init__(lexer_name, theme)
        self._part = part
        self._limit = limit

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> CodeInParts:
        """Return the block for a token, which has its reply's ``limit``, and of a fence in parts the ``part``."""
        name = token.info.partition(" ")[0] or "text"
        return cls(name, markdown.code_theme, token.meta.get("part", WHOLE), token.meta["limit"])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the lines, and an empty one at each end of the block."""
        code = str(self.text)
        lexer = _BoundedLexer(self.lexer_name, self._part.stack, self._limit)
        yield _Code(
            code.rstrip() if self._part.is_last else code.removesuffix("\n"),
            lexer="text",
            theme=CODE,
            word_wrap=True,
            padding=(int(self._part.is_first), 1, int(self._part.is_last), 1),
            tab_size=_TAB_SIZE,
        ).read_by(lexer)


class _Code(Syntax):
    """Code whose lexer is given, not named."""

    _reader: _BoundedLexer | None = None

    def read_by(self, reader: _BoundedLexer) -> _Code:
        self._reader = reader
        return self

    @property
    def lexer(self) -> Any:  # noqa: ANN401 - pygments has no types
        return self._reader


class _BoundedLexer:
    """The one method of a lexer that rich calls; it goes on where another stopped, and gives up what is too much."""

    def __init__(self, name: str, stack: tuple[str, ...], limit: LexingLimit) -> None:
        self._name = name
        self._stack = stack
        self._limit = limit

    def get_tokens(self, code: str) -> Iterable[tuple[Any, str]]:
        """Return the kinds of what ``code`` consists of; all of it is plain text where they would cost too much."""
        lexer = _lexer(self._name)
        found = self._limit.found(code, lambda: list(self._tokens(lexer, code)))
        return _lexer("text").get_tokens(code) if found is None else found

    def _tokens(self, lexer: Any, code: str) -> Iterable[tuple[Any, str]]:  # noqa: ANN401 - pygments has no types
        if self._stack == _AT_THE_BEGINNING:
            return lexer.get_tokens(code)  # type: ignore[no-any-return]
        return ((kind, text) for _, kind, text in lexer.get_tokens_unprocessed(code, self._stack))


def resting_places(
    language: str, code: str, stack: tuple[str, ...], limit: LexingLimit
) -> Mapping[int, tuple[str, ...]]:
    """Return before which lines of ``code`` a lexer can stop, and its states there.

    Not within something that it sees as a whole, such as a comment over many lines. Of a lexer that keeps no states
    nothing is known, nor of code that costs too much; it may stop before any line.
    """
    lexer = _lexer(language or "text")
    expanded = code.expandtabs(_TAB_SIZE)
    places = limit.found(expanded, lambda: _places(lexer, expanded, stack)) if _keeps_states(lexer) else None
    return dict.fromkeys(range(1, 1 + expanded.count("\n")), _AT_THE_BEGINNING) if places is None else places


def _places(lexer: Any, expanded: str, stack: tuple[str, ...]) -> Mapping[int, tuple[str, ...]]:  # noqa: ANN401
    places: dict[int, tuple[str, ...]] = {}
    line, seen = 0, 0
    for position, states in _states(lexer, expanded, stack):
        line, seen = line + expanded.count("\n", seen, position), position
        if expanded.startswith("\n", position - 1):
            places[line] = states
    return places


@cache
def _lexer(name: str) -> Any:  # noqa: ANN401 - pygments has no types
    """Return the lexer that rich would take; one that is not there is searched for in every package, but only once."""
    options: dict[str, bool | int] = {"stripnl": False, "ensurenl": True, "tabsize": _TAB_SIZE}
    try:
        return get_lexer_by_name(name, **options)
    except ClassNotFound:
        return get_lexer_by_name("text", **options)


def _keeps_states(lexer: Any) -> bool:  # noqa: ANN401 - pygments has no types
    return (
        isinstance(lexer, RegexLexer)
        and not isinstance(lexer, ExtendedRegexLexer)
        and "stack" in inspect.signature(lexer.get_tokens_unprocessed).parameters
    )


def _states(lexer: Any, code: str, stack: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:  # noqa: ANN401
    """Walk through ``code`` by the rules that pygments' ``RegexLexer`` documents; yield its states after each step."""
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
                states = [*_AT_THE_BEGINNING]
            position += 1
        yield position, tuple(states)


def _apply(change: str | int | Iterable[str] | None, states: list[str]) -> None:
    """Change the states as a rule says, which never takes the last one away."""
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
