"""The last exchange of a thread, as it is shown to a user who comes to it."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

from chorus_cli.core.text.phrases import counted
from chorus_cli.core.text.safe_text import safe_text
from chorus_cli.core.time import timestamps

if TYPE_CHECKING:
    from chorus_cli.log.rules.threads import Exchange
    from chorus_cli.terminal.screen.output import Screen

_QUESTION_ROWS = 3
_REPLY_ROWS = 10
# A blank is no reason to show less, but of a row of many megabytes only the beginning is looked at.
_CHARACTERS_PER_COLUMN = 2
_ENDINGS = {
    # A notice beside it names /retry, as long as that works.
    "interrupted": "[interrupted]",
    "truncated": "[truncated; /retry asks again]",
    "failed": "[failed; /retry asks again]",
    "streaming": "[still being written]",
}


def show_exchange(exchange: Exchange, screen: Screen) -> None:
    """Show the beginning of the user's last message and of the reply, dim, with the time and the state of the reply."""
    columns = shutil.get_terminal_size().columns
    sign = "❯" if screen.unicode else ">"
    said = f" {sign} {exchange.question}".rstrip() if exchange.question else ""
    asked, more = beginning(f"{_time(exchange)}{said}", _QUESTION_ROWS, columns)
    if more:
        asked[-1] = f"{asked[-1][: columns - 2]} …"
    replied, more = beginning(exchange.reply, _REPLY_ROWS, columns)
    if more:
        replied.append(f"… {counted(more, 'more line')}; /thread history shows all")
    if exchange.status in _ENDINGS:
        replied.append(_ENDINGS[exchange.status])
    screen.notice("\n".join([*asked, *replied]))


def beginning(text: str, most_rows: int, columns: int) -> tuple[list[str], int]:
    """Return the first rows of a text in a window of so many columns, and the number of lines that are not whole."""
    rows: list[str] = []
    lines = text.strip("\n").split("\n") if text.strip() else []
    for position, line in enumerate(lines):
        longest = most_rows * columns * _CHARACTERS_PER_COLUMN
        safe = safe_text(line[:longest]).splitlines() or [""]
        wrapped = [row for each in safe for row in textwrap.wrap(each, columns, break_on_hyphens=False) or [""]]
        room = most_rows - len(rows)
        rows += wrapped[:room]
        if len(wrapped) > room or len(line) > longest:
            return rows, len(lines) - position
    return rows, 0


def _time(exchange: Exchange) -> str:
    return f"{timestamps.local(exchange.at):%a %Y-%m-%d %H:%M}"
