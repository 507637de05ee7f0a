"""The text of a screen, and of the scrollback above it, after Markdown was shown: at once by rich, or as it came.

Three things rich draws otherwise than it would: see ``tests.terminal.markdown.mended_markdown``.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyte
from rich.console import Console

from chorus_cli.terminal.markdown.drawing import MARKDOWN
from chorus_cli.terminal.markdown.lexing import LexingProcess, is_too_costly, tokens_of
from chorus_cli.terminal.markdown.stream import MarkdownStream
from tests.terminal.markdown.mended_markdown import MendedMarkdown
from tests.terminal.screen.screen_cells import DimScreen, cells_in_use

_HISTORY_LINES = 100_000


@dataclass(frozen=True)
class Size:
    columns: int = 80
    lines: int = 24

    def __call__(self) -> os.terminal_size:
        return os.terminal_size((self.columns, self.lines))


class LexersHere(LexingProcess):
    """The lexers, without their process and its limit."""

    def tokens(self, language: str, code: str) -> list[tuple[object, str]] | None:
        return None if is_too_costly(code) else tokens_of(language, code)


class StreamHere(MarkdownStream):
    """A stream that is parsed and drawn where it is called, not in a thread."""

    def advance(self) -> bool:
        """Parse and settle a few milliseconds' worth of queued text; return whether more is queued."""
        return self.draft.advance(self.adopt_size())

    def paint(self) -> None:
        self.show(self.draft.frame(self.adopt_size(), self.room([])))

    def close(self) -> int:
        """Settle the parsed text; return how many characters of the queue are not shown."""
        self.draft.finish(self.adopt_size())
        return self.show_rest()


class _Screen(DimScreen):
    """A screen that keeps its text when it is cleared, and knows blanks that were written dim, as tmux does."""

    def erase_in_display(self, how: int = 0, *arguments: Any, **options: Any) -> None:
        if how == 0 and (self.cursor.x, self.cursor.y) == (0, 0):
            self.history.top.extend(self.buffer[line] for line in range(self.lines))
            self.buffer.clear()
        super().erase_in_display(how, *arguments, **options)


class Window:
    """A terminal to write to, which does what tmux does."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.screen = _Screen(size.columns, size.lines, history=_HISTORY_LINES)
        self.screen.set_mode(pyte.modes.LNM)
        self._stream = pyte.Stream(self.screen)

    def resize(self, size: Size) -> None:
        """Take another size and break the rows that are wider; broken rows stay broken."""
        screen = self.screen
        standing = [*screen.history.top, *(screen.buffer[line] for line in range(screen.lines))]
        cursor = len(screen.history.top) + screen.cursor.y
        # Empty rows at the end give way first.
        end = len(standing) - min(max(0, screen.lines - size.lines), len(standing) - 1 - cursor)
        broken = [_broken(self._cells(row), size.columns) for row in standing[:end]]
        rows = [self._row(part) for parts in broken for part in parts]
        top = max(0, len(rows) - size.lines)
        self.size = size
        screen.resize(size.lines, size.columns)
        screen.history.top.clear()
        screen.history.top.extend(rows[:top])
        screen.buffer.clear()
        screen.buffer.update(enumerate(rows[top:]))
        screen.cursor.x, screen.cursor.y = 0, max(0, sum(map(len, broken[:cursor])) - top)

    def _row(self, cells: list[Any]) -> Any:
        row: Any = pyte.screens.StaticDefaultDict(self.screen.default_char)
        row.update(enumerate(cells))
        return row

    def write(self, text: str) -> None:
        self._stream.feed(text)

    def rows(self) -> list[list[Any]]:
        """Return each row as its cells, with their colours and styles, as far as something stands there."""
        screen = self.screen
        rows = [
            self._cells(row) for row in (*screen.history.top, *(screen.buffer[line] for line in range(screen.lines)))
        ]
        return _without_end(rows, [])

    def text(self) -> list[str]:
        """Return each row's characters, without blanks at the end of any."""
        return _without_end(["".join(cell.data for cell in row).rstrip() for row in self.rows()], "")

    def current_size(self) -> os.terminal_size:
        return self.size()

    def _cells(self, row: Any) -> list[Any]:
        return _without_end(cells_in_use(row, self.size.columns), self.screen.default_char)


def at_once(text: str, size: Size) -> Window:
    """Show ``text`` by rich alone, but for its mends."""
    file = io.StringIO()
    console = Console(
        file=file,
        theme=MARKDOWN,
        force_terminal=True,
        color_system="truecolor",
        width=size.columns,
        height=size.lines,
        legacy_windows=False,
        _environ={},
    )
    console.print(MendedMarkdown(text))
    window = Window(size)
    window.write(file.getvalue())
    return window


def streamed(chunks: Iterable[str], size: Size, *, frames_every: int = 1) -> Window:
    """Show the chunks as they come, and paint after every so many."""
    window = Window(size)
    stream = StreamHere(window.write, LexersHere(), size=size)
    for number, chunk in enumerate(chunks):
        stream.feed(chunk)
        while stream.advance():
            pass
        if number % frames_every == 0:
            stream.paint()
    stream.close()
    return window


def cut(text: str, length: int) -> list[str]:
    return [text[start : start + length] for start in range(0, len(text), length)]


def randomly_cut(text: str, random: Random) -> list[str]:
    chunks, longest = [], random.choice([1, 4, 30])
    while text:
        length = random.randint(1, longest)
        chunks.append(text[:length])
        text = text[length:]
    return chunks


def assert_same(text: str, chunks: Iterable[str], size: Size, *, frames_every: int = 1, name: str = "") -> None:
    """Compare ``text`` shown at once with its chunks shown as they come; ``name`` tells which text it was."""
    expected, found = at_once(text, size), streamed(chunks, size, frames_every=frames_every)
    assert found.text() == expected.text(), name
    assert found.rows() == expected.rows(), name


def _broken(cells: list[Any], columns: int) -> list[list[Any]]:
    """Return a row in parts that fit; a wide character has an empty cell behind it."""
    parts: list[list[Any]] = [[]]
    for number, cell in enumerate(cells):
        width = 1 + (number + 1 < len(cells) and cells[number + 1].data == "")
        if cell.data and len(parts[-1]) + width > columns:
            parts.append([])
        parts[-1].append(cell)
    return parts


def _without_end(items: list[Any], empty: Any) -> list[Any]:
    end = len(items)
    while end and items[end - 1] == empty:
        end -= 1
    return items[:end]
