"""Draws Markdown by rich, row by row."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from markdown_it.token import Token
from rich.console import COLOR_SYSTEMS, Console
from rich.markdown import Markdown, Paragraph
from rich.segment import Segment

from chorus_cli.terminal.markdown.already_printed import TABLE_ROW
from chorus_cli.terminal.markdown.code_block import CodeInParts
from chorus_cli.terminal.markdown.inline_tokens import OWN_ADDRESS
from chorus_cli.terminal.markdown.table import FoldedTable, row_number
from chorus_cli.terminal.screen.painted_rows import Row
from chorus_cli.terminal.screen.palette import MARKDOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.markdown import MarkdownContext, MarkdownElement
    from rich.text import TextType

    from chorus_cli.terminal.markdown.blocks import Piece

_EMPTY_TEXT = Token("inline", "", 0)


class _HtmlAsText(Paragraph):
    """A block of HTML as it is written; rich leaves it out, with its words."""

    def on_text(self, context: MarkdownContext, text: TextType) -> None:
        """Take the lines without the break that ends the last."""
        super().on_text(context, text.rstrip("\n") if isinstance(text, str) else text)


class _Markdown(Markdown):
    """Markdown as rich draws it, with code that may come in parts and tables that show all of their words."""

    inlines = Markdown.inlines | {OWN_ADDRESS}
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": CodeInParts,
        "code_block": CodeInParts,
        "html_block": _HtmlAsText,
        "table_open": FoldedTable,
    }


class MarkdownDrawing:
    """Turns pieces of Markdown into rows of the terminal."""

    def __init__(self, *, colour: bool) -> None:
        self._console = Console(
            theme=MARKDOWN,
            force_terminal=True,
            markup=False,
            highlight=False,
            emoji=False,
            no_color=not colour,
            legacy_windows=False,
        )
        # Making one takes as long as drawing a paragraph. Links show where they lead.
        self._markdown = _Markdown("", hyperlinks=False)
        self._colours = COLOR_SYSTEMS.get(self._console.color_system or "")

    def rows(self, piece: Piece, width: int) -> list[Row]:
        """Draw ``piece`` in ``width`` columns."""
        if not piece.tokens:
            return []
        # rich leaves an empty line above whatever comes after an empty text.
        before = [_EMPTY_TEXT] if piece.after_gap else []
        self._markdown.parsed = [*before, *piece.tokens]
        options = self._console.options.update(max_width=width, height=None)
        options.min_width = 1
        lines = self._console.render_lines(self._markdown, options, pad=False)
        rows = [self._row(line, mark) for line, mark in zip(lines, _table_marks(lines), strict=True)]
        # rich puts an empty line above every list, also where the list only goes on; one of a code is its own.
        begins_empty = piece.goes_on and piece.tokens[0].type != "fence" and rows and not rows[0].plain
        return rows[1:] if begins_empty else rows

    def _row(self, line: list[Segment], table_mark: str | None) -> Row:
        segments: Iterable[Segment] = Segment.remove_color(line) if self._console.no_color else line
        drawn = "".join(
            style.render(text, color_system=self._colours) if style else text for text, style, _ in segments
        )
        # Blanks that nobody sees would be broken into rows of their own by a terminal that becomes narrower.
        shown = drawn.rstrip(" ")
        blanks = len(drawn) - len(shown)
        plain = "".join(text for text, _, _ in line)
        return Row(shown, plain[: len(plain) - blanks], Segment.get_line_length(line) - blanks, table_mark)


def _table_marks(lines: Sequence[list[Segment]]) -> list[str | None]:
    """Return what each line counts for in a table: of the lines of a row only the last says that the row is whole."""
    numbers = [row_number(line) for line in lines]
    return [
        None if number is None else TABLE_ROW if following not in {None, number} else ""
        for number, following in pairwise([*numbers, None])
    ]
