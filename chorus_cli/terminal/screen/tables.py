"""Draws tables of answers with rich, or as lists. Importing rich takes longer than most commands take to run."""

from __future__ import annotations

from typing import TextIO, cast

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from chorus_cli.core.text.safe_text import safe_line
from chorus_cli.framework.replies import CURRENT, Table
from chorus_cli.terminal.screen.output import Screen

_BAR = " ▏▎▍▌▋▊▉█"


def draw_list(table: Table, screen: Screen) -> None:
    """Write each row as a paragraph, each cell in a line after the head of its column; a mark begins the first line."""
    if table.title:
        screen.paragraph(table.title)
    for row in table.rows:
        cells = [(head, safe_line(cell)) for head, cell in zip(table.columns, row, strict=True) if cell.strip(_BAR)]
        mark = f"{CURRENT} " if cells[:1] == [("", CURRENT)] else ""
        lines = [f"{head}: {cell}" if head else cell for head, cell in cells[bool(mark) :]]
        screen.paragraph(mark + "\n".join(lines))
        screen.write("\n")


def draw_table(table: Table, screen: Screen) -> None:
    """Draw a table at most as wide as the terminal; without a header if all heads are empty."""
    drawn = RichTable(
        title=Text(safe_line(table.title)) if table.title else None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_header=any(table.columns),
        pad_edge=False,
        # A column that is cut gets the blanks that the others can spare.
        collapse_padding=bool(table.cut),
    )
    for column in table.columns:
        head, is_cut = safe_line(column), column in table.cut
        least = len(head) if is_cut else None
        drawn.add_column(Text(head), overflow="fold", no_wrap=bool(table.cut) and not is_cut, min_width=least)
    for row in table.rows:
        texts = [Text(safe_line(cell)) for cell in row]
        for head, text in zip(table.columns, texts, strict=True):
            if head in table.cut:
                # Cut off instead of folded, so that the other columns keep their width.
                text.no_wrap, text.overflow = True, "ellipsis"
        drawn.add_row(*texts)
    # The guard is no whole file, but it has the methods that rich uses.
    console = Console(
        file=cast("TextIO", screen.guard), markup=False, highlight=False, emoji=False, no_color=not screen.colour
    )
    console.print(drawn)
