"""What stands on a screen, and in the scrollback above it, after Markdown was shown: at once by rich, or as it came."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyte
from rich.console import Console
from rich.markdown import Markdown

from chorus_cli.terminal.markdown_stream import MarkdownStream

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

_HISTORY_LINES = 100_000


@dataclass(frozen=True)
class Size:
    columns: int = 80
    lines: int = 24

    def __call__(self) -> os.terminal_size:
        return os.terminal_size((self.columns, self.lines))


class Window:
    """A terminal to write to; its ``size`` may be changed, which never rearranges what stands there."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.screen = pyte.HistoryScreen(size.columns, size.lines, history=_HISTORY_LINES)
        self.screen.set_mode(pyte.modes.LNM)
        self._stream = pyte.Stream(self.screen)

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
        """Return the size as it is now."""
        return self.size()

    def _cells(self, row: Any) -> list[Any]:
        return _without_end([row[column] for column in range(self.size.columns)], self.screen.default_char)


def at_once(text: str, size: Size) -> Window:
    """Show ``text`` by rich alone."""
    file = io.StringIO()
    console = Console(
        file=file,
        force_terminal=True,
        color_system="truecolor",
        width=size.columns,
        height=size.lines,
        legacy_windows=False,
        _environ={},
    )
    console.print(Markdown(text, hyperlinks=False))
    window = Window(size)
    window.write(file.getvalue())
    return window


def streamed(chunks: Iterable[str], size: Size, *, frames_every: int = 1) -> Window:
    """Show the chunks as they come, and paint after every so many."""
    window = Window(size)
    stream = MarkdownStream(window.write, size=size)
    for number, chunk in enumerate(chunks):
        stream.feed(chunk)
        while stream.advance():
            pass
        if number % frames_every == 0:
            stream.paint()
    stream.close()
    return window


def cut(text: str, length: int) -> list[str]:
    """Cut ``text`` into chunks of one length."""
    return [text[start : start + length] for start in range(0, len(text), length)]


def randomly_cut(text: str, random: Random) -> list[str]:
    """Cut ``text`` into chunks of many lengths, all of them short in some texts."""
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


def _without_end(items: list[Any], empty: Any) -> list[Any]:
    end = len(items)
    while end and items[end - 1] == empty:
        end -= 1
    return items[:end]
