"""Draws what commands answer: sentences as they are, tables by rich where there is a terminal."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, TextIO, cast

from chorus_cli.commands.framework.replies import Exit, Refill, Report, Table, Text, plain
from chorus_cli.core.text.safe_text import safe_line

if TYPE_CHECKING:
    from chorus_cli.commands.framework.replies import Reply
    from chorus_cli.terminal.screen.output import Screen


_READABLE_COLUMN_WIDTH = 14


def draw(reply: Reply, screen: Screen) -> None:
    """Show what a command answered."""
    match reply:
        case Exit():
            return
        case Table() if screen.is_terminal and _is_narrow(reply):
            _draw_list(reply, screen)
        case Table() if screen.is_terminal:
            _draw_table(reply, screen)
        case Report(parts) if screen.is_terminal:
            for part in parts:
                draw(part, screen)
        case Text(text) | Refill(text):
            screen.paragraph(text)
        case _:
            screen.line(plain(reply))


def _is_narrow(table: Table) -> bool:
    """Return whether the terminal leaves a column too little room to be read."""
    return shutil.get_terminal_size().columns < _READABLE_COLUMN_WIDTH * len(table.columns)


def _draw_list(table: Table, screen: Screen) -> None:
    """Write a table one below the other: each row a paragraph, each cell behind the head of its column."""
    if table.title:
        screen.paragraph(table.title)
    for row in table.rows:
        cells = [(head, cell) for head, cell in zip(table.columns, row, strict=True) if cell.strip()]
        screen.paragraph("\n".join(f"{head}: {safe_line(cell)}" if head else safe_line(cell) for head, cell in cells))
        screen.write("\n")


def _draw_table(table: Table, screen: Screen) -> None:
    """Draw a table as wide as the terminal allows; a head without any words is left out."""
    # Only tables need rich, which takes longer to import than most commands to run.
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    drawn = RichTable(
        title=Text(safe_line(table.title)) if table.title else None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_header=any(table.columns),
        pad_edge=False,
    )
    for column in table.columns:
        drawn.add_column(Text(safe_line(column)), overflow="fold", no_wrap=bool(table.cut) and column not in table.cut)
    for row in table.rows:
        # What is cut gives way before the other columns do.
        cells = zip(table.columns, row, strict=True)
        drawn.add_row(
            *(
                Text(safe_line(cell), no_wrap=True, overflow="ellipsis") if head in table.cut else Text(safe_line(cell))
                for head, cell in cells
            )
        )
    # rich asks the file for nothing but what the guard offers.
    console = Console(
        file=cast("TextIO", screen.guard), markup=False, highlight=False, emoji=False, no_color=not screen.colour
    )
    console.print(drawn)
