"""Draws what commands answer: sentences as they are, tables by rich where there is a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO, cast

from chorus_cli.commands.replies import Exit, Message, Refill, Report, Table, plain
from chorus_cli.core.safe_text import safe_line

if TYPE_CHECKING:
    from chorus_cli.commands.replies import Reply
    from chorus_cli.terminal.screen import Screen


def draw(reply: Reply, screen: Screen) -> None:
    """Show what a command answered."""
    match reply:
        case Exit():
            return
        case Table() if screen.is_terminal:
            _draw_table(reply, screen)
        case Report(parts) if screen.is_terminal:
            for part in parts:
                draw(part, screen)
        case Message(text) | Refill(text):
            screen.paragraph(text)
        case _:
            screen.line(plain(reply))


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
        drawn.add_column(Text(safe_line(column)), overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(safe_line(cell)) for cell in row))
    # rich asks the file for nothing but what the guard offers.
    console = Console(
        file=cast("TextIO", screen.guard), markup=False, highlight=False, emoji=False, no_color=not screen.colour
    )
    console.print(drawn)
