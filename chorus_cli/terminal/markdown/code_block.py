"""Code blocks as rich elements, whole or in parts: the printed part of a long fence is not lexed again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

# pygments has no types.
from pygments.token import Token as Kind  # type: ignore[import-untyped]
from rich.markdown import CodeBlock
from rich.syntax import Syntax

from chorus_cli.terminal.markdown.lexing import TAB_SIZE
from chorus_cli.terminal.screen.palette import CODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown

    from chorus_cli.terminal.markdown import lexing as lexers
    from chorus_cli.terminal.markdown.lexing_process import Lexing


@dataclass(frozen=True, slots=True)
class CodePart:
    """Part of a fence: whether it is the block's first and last part."""

    is_first: bool = True
    is_last: bool = True


WHOLE = CodePart()
LAST = CodePart(is_first=False)


class PartialCodeBlock(CodeBlock):
    """A code block as rich draws it, or a part of one."""

    def __init__(self, lexer_name: str, theme: str, part: CodePart, lexing: Lexing) -> None:
        super().__init__(lexer_name, theme)
        self._part = part
        self._lexing = lexing

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> PartialCodeBlock:
        """Return the block for ``token``, whose ``meta`` holds the reply's ``lexing`` and the ``part`` of a fence."""
        name = token.info.partition(" ")[0] or "text"
        return cls(name, markdown.code_theme, token.meta.get("part", WHOLE), token.meta["lexing"])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the lines, with an empty one above and below the block."""
        code = str(self.text)
        yield _Code(
            code.rstrip() if self._part.is_last else code.removesuffix("\n"),
            self.lexer_name,
            self._lexing,
            (int(self._part.is_first), 1, int(self._part.is_last), 1),
        )


class _Code(Syntax):
    """Code that is its own lexer: rich asks one for its tokens alone."""

    def __init__(self, code: str, language: str, lexing: Lexing, padding: tuple[int, int, int, int]) -> None:
        super().__init__(code, lexer="text", theme=CODE, word_wrap=True, padding=padding, tab_size=TAB_SIZE)
        self._language = language
        self._lexing = lexing

    @property
    def lexer(self) -> _Code:
        return self

    def get_tokens(self, code: str) -> Iterable[lexers.Token]:
        """Return the tokens of ``code``; a single one of plain text if lexing it costs too much."""
        tokens = self._lexing.tokens(self._language, code)
        return [(Kind.Text, code)] if tokens is None else tokens
