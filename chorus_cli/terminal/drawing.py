"""Shows the answers of commands, a shell command's output as it arrives, and the last exchange of a thread."""

from __future__ import annotations

import shutil
import textwrap
from codecs import getincrementaldecoder
from typing import TextIO, cast

from chorus_cli.core.text.phrases import counted
from chorus_cli.core.text.safe_text import SafeTextStream, hidden_warning, safe_line, safe_text
from chorus_cli.core.time import timestamps
from chorus_cli.framework.replies import (
    CURRENT,
    Aside,
    Drawing,
    Exit,
    PrivateChat,
    Refill,
    Reply,
    Report,
    Said,
    Table,
    Text,
    plain,
)
from chorus_cli.jobs.rules import SequenceFilter
from chorus_cli.log.rules.threads import Exchange
from chorus_cli.models.rules.choice import way_on
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.terminal.screen.output import Screen, prompt_sign

_READABLE_COLUMN_WIDTH = 14
_BAR = " ▏▎▍▌▋▊▉█"
_QUESTION_ROWS = 3
_REPLY_ROWS = 10
# A line is cut before it is wrapped. Wrapping drops blanks, so a row may use up more characters than it has columns.
_CHARACTERS_PER_COLUMN = 2
_ENDINGS = {
    # Another notice names the command that continues this reply, if it can be continued.
    "interrupted": "[interrupted]",
    "truncated": "[truncated; {}]",
    "failed": "[failed; {}]",
    "streaming": "[still being written]",
}


def draw(reply: Reply, screen: Screen) -> None:
    """Show the answer of a command."""
    match reply:
        case Exit() | PrivateChat():
            return
        case Drawing() if screen.is_plain:
            return
        case Table() if screen.is_terminal:
            _draw_table(reply, screen)
        case Drawing(drawn) if screen.is_terminal:
            screen.paragraph(drawn(shutil.get_terminal_size().columns))
        case Report(parts) if screen.is_terminal:
            for part in parts:
                draw(part, screen)
        case Said() if screen.is_terminal:
            _draw_said(reply, screen)
        case Text(text) | Refill(text):
            screen.paragraph(text)
        case Aside(text):
            screen.notice(text)
        case _:
            screen.line(plain(reply))


def _draw_said(said: Said, screen: Screen) -> None:
    screen.gap()
    if said.speaker:
        screen.speaker(said.speaker)
    if screen.guard.allows_sequences:
        screen.rows(_markdown(said.text, screen, len(said.text), is_spoken=bool(said.speaker))[0])
    else:
        screen.paragraph(said.text)
    screen.part_of_reply(said.text, said.text)


def _draw_table(table: Table, screen: Screen) -> None:
    columns = shutil.get_terminal_size().columns
    is_narrow = not _fits(table, columns) if table.cut else columns < _READABLE_COLUMN_WIDTH * len(table.columns)
    (_draw_list if is_narrow or screen.is_plain else _draw_rich_table)(table, screen)


def _fits(table: Table, columns: int) -> bool:
    """Return whether the table fits if each column in ``cut`` is as narrow as its head."""
    widths = [
        2 + max(map(len, (head, *(() if head in table.cut else cells))))
        for head, *cells in zip(table.columns, *table.rows, strict=True)
    ]
    return sum(widths) <= columns


def _draw_list(table: Table, screen: Screen) -> None:
    """Write each row as a paragraph of lines ``head: cell``; the mark of the row in use begins its first line."""
    if table.title:
        screen.paragraph(table.title)
    for row in table.rows:
        cells = [(head, safe_line(cell)) for head, cell in zip(table.columns, row, strict=True) if cell.strip(_BAR)]
        mark = f"{CURRENT} " if cells[:1] == [("", CURRENT)] else ""
        lines = [f"{head}: {cell}" if head else cell for head, cell in cells[bool(mark) :]]
        screen.paragraph(mark + "\n".join(lines))
        screen.write("\n")


def _draw_rich_table(table: Table, screen: Screen) -> None:
    """Draw a table at most as wide as the terminal; without a header if all heads are empty."""
    # Importing rich takes longer than most commands take to run.
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

    drawn = RichTable(
        title=RichText(safe_line(table.title)) if table.title else None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_header=any(table.columns),
        pad_edge=False,
        # Less padding leaves more room for the columns that are cut.
        collapse_padding=bool(table.cut),
    )
    for column in table.columns:
        head, is_cut = safe_line(column), column in table.cut
        least = len(head) if is_cut else None
        drawn.add_column(RichText(head), overflow="fold", no_wrap=bool(table.cut) and not is_cut, min_width=least)
    for row in table.rows:
        texts = [RichText(safe_line(cell)) for cell in row]
        for head, text in zip(table.columns, texts, strict=True):
            if head in table.cut:
                # Cut off instead of folded, so that the other columns keep their width.
                text.no_wrap, text.overflow = True, "ellipsis"
        drawn.add_row(*texts)
    # The guard is not a complete file, but it has the methods that rich uses.
    console = Console(
        file=cast("TextIO", screen.guard), markup=False, highlight=False, emoji=False, no_color=not screen.colour
    )
    console.print(drawn)


class JobOutput:
    """Appends a shell command's output to ``screen``, without escape sequences; U+FFFD replaces invalid UTF-8."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._sequences = SequenceFilter()
        self._safe = SafeTextStream()
        self._is_line_open = False

    def show(self, piece: bytes) -> None:
        """Show the next bytes."""
        self._write(self._safe.feed(self._sequences.feed(self._decoder.decode(piece))))

    def close(self) -> None:
        """Show the text held back, end the line, and report hidden characters."""
        rest = self._sequences.feed(self._decoder.decode(b"", final=True)) + self._sequences.close()
        self._write(self._safe.feed(rest) + self._safe.close())
        if self._is_line_open:
            self._screen.write("\n")
        warning = hidden_warning(self._safe, "this output")
        if warning:
            self._screen.notice(warning)

    def _write(self, text: str) -> None:
        if text:
            self._screen.write(text)
            self._is_line_open = not text.endswith("\n")


def speaker_of(persona: Persona, screen: Screen) -> str:
    """Return the name to show above a persona's replies; empty unless the persona has a card or the screen is plain."""
    return persona.name if persona.has_card or screen.is_plain else ""


def drawn_exchange(exchange: Exchange, persona: Persona, screen: Screen) -> list[str]:
    """Return rows with the time, the beginning of the last message, and the beginning and state of its reply.

    On a terminal the reply is drawn as Markdown, which may import rich.
    """
    columns = shutil.get_terminal_size().columns
    place = f" {exchange.place}" if exchange.place else ""
    said = f" {prompt_sign(unicode=screen.unicode)} {exchange.question}".rstrip() if exchange.question else ""
    asked, more = beginning(f"{timestamps.local(exchange.at):%a %Y-%m-%d %H:%M}{place}{said}", _QUESTION_ROWS, columns)
    if more:
        asked[-1] = f"{asked[-1][: columns - 2]} …"
    if screen.guard.allows_sequences:
        replied, more = _markdown(exchange.reply, screen, _REPLY_ROWS, is_spoken=persona.has_card)
    else:
        replied, more = beginning(exchange.reply, _REPLY_ROWS, columns)
    if more:
        replied.append(f"… {counted(more, 'more line')}; /thread history shows all")
    if exchange.status in _ENDINGS:
        replied.append(_ENDINGS[exchange.status].format(way_on(exchange.model)))
    name = safe_text(speaker_of(persona, screen)) if replied else ""
    return [*asked, *([f"{name}:" if screen.is_plain else name] if name else []), *replied]


def _markdown(text: str, screen: Screen, most_rows: int, *, is_spoken: bool) -> tuple[list[str], int]:
    """Draw a text as Markdown; return the first rows, and an estimate of the number of lines left out."""
    from chorus_cli.terminal.markdown.stream import drawn

    size = shutil.get_terminal_size()
    lines = text.strip("\n").split("\n")
    # Blank lines and some marks have no row, so three lines are drawn for each row wanted.
    begun = "\n".join(lines[: 3 * most_rows])[: 3 * most_rows * size.columns]
    rows = drawn(safe_text(begun), size, has_colour=screen.colour, is_spoken=is_spoken)
    while rows and not rows[-1].plain.strip():
        rows.pop()
    first = next((number for number, row in enumerate(rows) if row.plain.strip()), 0)
    shown = [row.text for row in rows[first : first + most_rows]]
    hidden = len(rows) - first - len(shown)
    return shown, hidden + len(lines) - 1 - begun.count("\n")


def beginning(text: str, most_rows: int, columns: int) -> tuple[list[str], int]:
    """Return the first rows of a text, wrapped and made safe, and the number of lines that are cut or left out."""
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
