"""Code blocks as rich elements, whole or in parts: the printed part of a long fence is not lexed again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.markdown import CodeBlock
from rich.syntax import Syntax

from chorus_cli.terminal.markdown.lexing import ROOT, TAB_SIZE, BoundedLexer
from chorus_cli.terminal.screen.palette import CODE

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown

    from chorus_cli.terminal.markdown.lexing import Lexing, Stack


@dataclass(frozen=True, slots=True)
class CodePart:
    """Part of a fence: the lexer's stack at its start, and whether it is the block's first and last part."""

    stack: Stack = ROOT
    is_first: bool = True
    is_last: bool = True

    def unfinished(self) -> CodePart:
        """Return the same part, but not the last."""
        return replace(self, is_last=False)

    def continued(self, stack: Stack | None = None) -> CodePart:
        """Return the part that follows."""
        return CodePart(self.stack if stack is None else stack, is_first=False)


WHOLE = CodePart()


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
            BoundedLexer(self.lexer_name, self._part.stack, self._lexing),
            (int(self._part.is_first), 1, int(self._part.is_last), 1),
        )


class _Code(Syntax):
    """Code with a lexer object instead of a lexer's name."""

    def __init__(self, code: str, lexer: BoundedLexer, padding: tuple[int, int, int, int]) -> None:
        super().__init__(code, lexer="text", theme=CODE, word_wrap=True, padding=padding, tab_size=TAB_SIZE)
        self._bounded = lexer

    @property
    def lexer(self) -> BoundedLexer:
        return self._bounded
