"""The look of Markdown drawn with rich. Tables keep all their words, and HTML is shown as text.

``LOOK`` and ``code_between_rules`` change three things in rich's own drawing: code begins in the first column, so that
it can be copied; the numbers of a list have a dot; a table has one empty line above and below it.

A table breaks words that are wider than their column. If a column might be too narrow for a wide character, the cells
of each row are joined.

Only three colours of the terminal's palette are used: red, blue and magenta can be read on dark and on light
backgrounds. Cyan, yellow, white, bright colours and RGB colours may be faint on one of the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from markdown_it.token import Token

# pygments has no types.
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String  # type: ignore[import-untyped]
from pygments.token import Token as Kind
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import (
    CodeBlock,
    ListItem,
    Markdown,
    MarkdownContext,
    MarkdownElement,
    Paragraph,
    TableDataElement,
    TableElement,
    TableRowElement,
)
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text, TextType
from rich.theme import Theme

from chorus_cli.core.text.safe_text import safe_line
from chorus_cli.terminal.markdown.blocks import OWN_ADDRESS
from chorus_cli.terminal.markdown.lexing import TAB_SIZE, LexingProcess

MARKDOWN = Theme(
    {
        "markdown.code": "magenta",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.list": "none",
        "markdown.item.number": "bold",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold blue underline",
        "markdown.h3": "bold blue",
        "markdown.h4": "italic blue",
        "markdown.link": "blue",
        "markdown.link_url": "underline blue",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "markdown.code_rule": "dim",
        "markdown.speech": "blue",
    }
)

CODE = ANSISyntaxTheme(
    {
        kind: Style.parse(style)
        for style, kinds in {
            "dim italic": (Comment,),
            "bold blue": (Keyword, Operator.Word),
            "bold": (Name.Function, Name.Class, Generic.Heading, Generic.Subheading, Generic.Prompt, Generic.Strong),
            "blue": (Name.Tag, Name.Builtin, Name.Exception, Generic.Inserted),
            "magenta": (Name.Attribute, Name.Decorator, Number, String),
            "red": (Generic.Deleted, Generic.Error),
            "italic": (Generic.Emph,),
        }.items()
        for kind in kinds
    }
)

# A column of this width has room for a wide character and for rich's padding, however rich rounds widths.
_SAFE_WIDTH = 4
_BETWEEN_CELLS = " | "


_RULE = "─"
_SPEECH = re.compile(r'"[^"]+"|“[^“”]+”|„[^„“”]+[“”]|«[^«»]+»|»[^«»]+«')


def code_between_rules(
    code: Syntax, language: str, width: int, *, begins: bool = True, ends: bool = True
) -> RenderResult:
    """Draw code without padding between two rules; the upper rule names the language.

    The rules take half the width, so that they fit on terminals that draw them twice as wide or become narrower.
    """
    columns = max(1, width // 2)
    if begins:
        head = Text(f"{_RULE * 2} {safe_line(language[:columns])} " if language else "", "markdown.code_rule")
        head.truncate(columns)
        yield head.append(_RULE * (columns - head.cell_len))
    yield code
    if ends:
        yield Text(_RULE * columns, "markdown.code_rule")


class _Dotted(int):
    """A number that rich draws with a dot behind it."""

    def __format__(self, _: str) -> str:
        return f"{int(self)}."


class _Item(ListItem):
    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        return super().render_number(console, options, _Dotted(number), last_number)


class EdgelessTable(TableElement):
    """A table without rich's edges, which are empty lines."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                part.show_edge = False
            yield part


class SpokenParagraph(Paragraph):
    """A paragraph whose words in quotation marks are tinted, for a persona with a character card."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.highlight_regex(_SPEECH, "markdown.speech")
        yield from super().__rich_console__(console, options)


LOOK: dict[str, type[MarkdownElement]] = {"list_item_open": _Item, "table_open": EdgelessTable}


class PartialCodeBlock(CodeBlock):
    """A code block, or a part of a code block; the ``meta`` of its token says which part."""

    def __init__(self, language: str, theme: str, meta: Mapping[str, Any]) -> None:
        super().__init__(language or "text", theme)
        self._language = language
        self._meta = meta

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> PartialCodeBlock:
        """Create a block from the language and the ``meta`` of a token."""
        return cls("".join(token.info.split()[:1]), markdown.code_theme, token.meta)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the code, with a rule above its first part and below its last part."""
        code, is_first, is_last = str(self.text), not self._meta.get("goes_on"), not self._meta.get("cut_off")
        shown = _Code(code.rstrip() if is_last else code.removesuffix("\n"), self.lexer_name, self._meta["lexing"])
        yield from code_between_rules(shown, self._language, options.max_width, begins=is_first, ends=is_last)


class _Code(Syntax):
    """Code that is its own lexer: all that rich calls is ``get_tokens``."""

    def __init__(self, code: str, language: str, lexing: LexingProcess) -> None:
        super().__init__(code, lexer="text", theme=CODE, word_wrap=True, tab_size=TAB_SIZE)
        self._language = language
        self._lexing = lexing

    @property
    def lexer(self) -> _Code:
        return self

    def get_tokens(self, code: str) -> Iterable[tuple[object, str]]:
        """Return the tokens of ``code``; a single token of plain text if the code gets no colours."""
        tokens = self._lexing.tokens(self._language, code)
        return [(Kind.Text, code)] if tokens is None else tokens


class FoldedTable(EdgelessTable):
    """A table that breaks words that are wider than their column."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table in its own columns, or in a single column if they are too narrow."""
        rows = list(self.body.rows) if self.body else []
        if self.header and self.header.row:
            rows.insert(0, self.header.row)
        if options.max_width <= _SAFE_WIDTH * len(rows[0].cells):
            _join_cells(rows)
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    column.overflow = "fold"
            yield part


def _join_cells(rows: Iterable[TableRowElement]) -> None:
    for row in rows:
        joined = TableDataElement("left")
        joined.content.append_text(Text(_BETWEEN_CELLS).join(cell.content for cell in row.cells))
        row.cells = [joined]


class _HtmlAsText(Paragraph):
    def on_text(self, context: MarkdownContext, text: TextType) -> None:
        super().on_text(context, text.rstrip("\n") if isinstance(text, str) else text)


class ReplyMarkdown(Markdown):
    """Markdown in the style of a reply."""

    inlines = Markdown.inlines | {OWN_ADDRESS}
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        **LOOK,
        "fence": PartialCodeBlock,
        "code_block": PartialCodeBlock,
        "html_block": _HtmlAsText,
        "table_open": FoldedTable,
    }


class SceneBreak(MarkdownElement):
    """A thematic break in the words of a character: three asterisks, as in a printed story."""

    new_line = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("* * *", justify="center")
        yield Text()


class SpokenMarkdown(ReplyMarkdown):
    """Markdown in the style of a character's words."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **ReplyMarkdown.elements,
        "paragraph_open": SpokenParagraph,
        "hr": SceneBreak,
    }
