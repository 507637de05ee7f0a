"""Tables, drawn by rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO, cast

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from chorus_cli.core.safe_text import safe_line

if TYPE_CHECKING:
    from chorus_cli.commands.replies import Table
    from chorus_cli.terminal.guard import TerminalGuard


def draw(table: Table, guard: TerminalGuard, *, colour: bool) -> None:
    """Draw a table as wide as the terminal allows; a head without any words is left out."""
    drawn = RichTable(
        title=Text(safe_line(table.title)) if table.title else None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_header=any(table.columns),
        pad_edge=False,
    )
    for column in table.columns:
        drawn.add_column(Text(safe_line(column)), overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(safe_line(cell)) for cell in row))
    # rich asks the file for nothing but what the guard offers.
    console = Console(file=cast("TextIO", guard), markup=False, highlight=False, emoji=False, no_color=not colour)
    console.print(drawn)
