"""Draws Markdown into rows with rich. Tables keep all their words, and HTML is shown as text.

``LOOK`` and ``code_between_rules`` change three things in rich's own drawing: code begins in the first column, so that
it can be copied; the numbers of a list have a dot; a table has one empty line above and below it.

A table folds words that are wider than their column. If a column might be too narrow for a wide character, the cells of
each row are joined, and the table has a single column.

Only three colours of the terminal's palette are used: red, blue and magenta can be read on dark and on light
backgrounds. Cyan, yellow, white, bright colours and RGB colours may be faint on one of the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from markdown_it.token import Token

# pygments has no types.
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String  # type: ignore[import-untyped]
from pygments.token import Token as Kind
from rich.console import COLOR_SYSTEMS, Console, ConsoleOptions, RenderResult
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
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text, TextType
from rich.theme import Theme

from chorus_cli.core.text.safe_text import safe_line
from chorus_cli.terminal.markdown.blocks import OWN_ADDRESS, Piece
from chorus_cli.terminal.markdown.lexing import TAB_SIZE, LexingProcess
from chorus_cli.terminal.screen.painted_rows import Row

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
        "markdown.kbd": "reverse",
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

_EMPTY_TEXT = Token("inline", "", 0)
_COMPLETE_ROW = "\0"
_ROW_NUMBER = "row"
_TABLE_ENDS = -1
# The blanks that rich adds to each cell, and the width in which a wide character fits however rich rounds widths.
_CELL_BLANKS, _SAFE_WIDTH = 2, 4
_BETWEEN_CELLS = " | "


_RULE = "─"
_SPEECH = re.compile(r'"[^"]+"|“[^“”]+”|„[^„“”]+[“”]|«[^«»]+»|»[^«»]+«')


def code_between_rules(
    code: Syntax, language: str, width: int, *, begins: bool = True, ends: bool = True
) -> RenderResult:
    """Draw code without padding between two rules; the upper rule names the language.

    The rules take half the width, so that they fit on terminals that draw them twice as wide, and in a narrower window.
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
    """A table without rich's empty lines above and below it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table."""
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                part.show_edge = False
            yield part


class SpokenParagraph(Paragraph):
    """A paragraph whose words in quotation marks are tinted, for a persona with a character card."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the paragraph."""
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
        return cls(token.info.partition(" ")[0], markdown.code_theme, token.meta)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the code, with a rule above its first part and below its last part."""
        code, is_first, is_last = str(self.text), not self._meta.get("goes_on"), not self._meta.get("cut_off")
        shown = _Code(code.rstrip() if is_last else code.removesuffix("\n"), self.lexer_name, self._meta["lexing"])
        yield from code_between_rules(shown, self._language, options.max_width, begins=is_first, ends=is_last)


class _Code(Syntax):
    """Code that is its own lexer, because rich asks a lexer only for tokens."""

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
    """A table that folds its cells, and numbers all its rows but the last, which may still grow."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table in its own columns, or in a single column if they are too narrow."""
        if self._is_too_wide(options.max_width):
            self._join_cells()
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                _fold(part, console)
            yield part

    def _rows(self) -> list[TableRowElement]:
        head = self.header.row if self.header else None
        return [*([head] if head else []), *(self.body.rows if self.body else [])]

    def _is_too_wide(self, width: int) -> bool:
        """Return whether the table does not fit, and a column might be too narrow for a wide character."""
        rows = [row.cells for row in self._rows()]
        if width > _SAFE_WIDTH * len(rows[0]):
            return False
        widest: list[int] = [max(cell.content.cell_len for cell in column) for column in zip(*rows, strict=True)]
        return width < sum(widest) + _CELL_BLANKS * len(widest)

    def _join_cells(self) -> None:
        for row in self._rows():
            joined = TableDataElement("left")
            joined.content.append_text(Text(_BETWEEN_CELLS).join(cell.content for cell in row.cells))
            row.cells = [joined]


class _HtmlAsText(Paragraph):
    def on_text(self, context: MarkdownContext, text: TextType) -> None:
        super().on_text(context, text.rstrip("\n") if isinstance(text, str) else text)


class _Markdown(Markdown):
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


class _SpokenMarkdown(_Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **_Markdown.elements,
        "paragraph_open": SpokenParagraph,
        "hr": SceneBreak,
    }


class Look(NamedTuple):
    """How a reply is drawn; if it ``is_spoken``, words in quotation marks are tinted, and each line break is shown."""

    has_colour: bool = True
    is_spoken: bool = False


USUAL_LOOK = Look()


class MarkdownDrawing:
    """Turns pieces of Markdown into rows of the terminal."""

    def __init__(self, look: Look) -> None:
        self._console = Console(
            theme=MARKDOWN,
            force_terminal=True,
            markup=False,
            highlight=False,
            emoji=False,
            no_color=not look.has_colour,
            legacy_windows=False,
        )
        # Reused, because creating it takes as long as drawing a paragraph. Links show their addresses.
        self._is_spoken = look.is_spoken
        self._markdown = (_SpokenMarkdown if look.is_spoken else _Markdown)("", hyperlinks=False)
        self._colours = COLOR_SYSTEMS.get(self._console.color_system or "")

    def rows(self, piece: Piece, width: int) -> list[Row]:
        """Draw ``piece`` in ``width`` columns."""
        if not piece.tokens:
            return []
        if self._is_spoken:
            _show_line_breaks(piece.tokens)
        # rich puts an empty line above a block that follows an empty text.
        before = [_EMPTY_TEXT] if piece.after_gap else []
        self._markdown.parsed = [*before, *piece.tokens]
        options = self._console.options.update(max_width=width, height=None)
        options.min_width = 1
        lines = self._console.render_lines(self._markdown, options, pad=False)
        rows = [self._row(line, mark) for line, mark in zip(lines, _table_marks(lines), strict=True)]
        # rich puts an empty line even above the rest of a list. An empty first line of code belongs to the code.
        begins_empty = piece.goes_on and piece.tokens[0].type != "fence" and rows and not rows[0].plain
        return rows[1:] if begins_empty else rows

    def _row(self, line: list[Segment], table_mark: str | None) -> Row:
        segments: Iterable[Segment] = Segment.remove_color(line) if self._console.no_color else line
        drawn = "".join(
            style.render(text, color_system=self._colours) if style else text for text, style, _ in segments
        )
        # A terminal that becomes narrower would wrap invisible trailing blanks into rows of their own.
        shown = drawn.rstrip(" ")
        blanks = len(drawn) - len(shown)
        plain = "".join(text for text, _, _ in line)
        return Row(shown, plain[: len(plain) - blanks], Segment.get_line_length(line) - blanks, table_mark)


def _show_line_breaks(tokens: Iterable[Token]) -> None:
    for child in (child for token in tokens for child in token.children or ()):
        if child.type == "softbreak":
            child.type = "hardbreak"


def _fold(table: Table, console: Console) -> None:
    """Let the columns fold, and put the number of each row into the metadata of its style."""
    for column in table.columns:
        column.overflow = "fold"
    table.style = console.get_style(table.style) + Style(meta={_ROW_NUMBER: _TABLE_ENDS})
    for number, row in enumerate(table.rows[:-1]):
        row.style = Style(meta={_ROW_NUMBER: number})


def _table_marks(lines: Sequence[list[Segment]]) -> list[str | None]:
    numbers = [_row_number(line) for line in lines]
    return [
        None if number is None else _COMPLETE_ROW if following not in {None, number} else ""
        for number, following in pairwise([*numbers, None])
    ]


def _row_number(line: list[Segment]) -> int | None:
    metas = (style.meta for _, style, _ in line if style)
    return max((meta[_ROW_NUMBER] for meta in metas if meta), default=None)
