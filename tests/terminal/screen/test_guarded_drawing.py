"""What rich draws through the guard, also hostile replies."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, TextIO, cast

import pyte
import pytest
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.panel import Panel
from rich.status import Status
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from chorus_cli.core.text.safe_text import safe_text
from chorus_cli.terminal.screen.guard import TerminalGuard
from chorus_cli.terminal.screen.output import Screen
from tests.terminal.screen.terminal_file import XTERM, TerminalFile

MARKDOWN = """# Title

Some *styled* **text** with `code`, a [link](https://example.org/a?b=c&d) and an emoji \U0001f468\u200d\U0001f469.

| left | right |
|------|------:|
| one  | 1     |

> quoted

1. first
2. second

```python
def answer() -> int:
    return 42
```
"""


def console_on(file: object) -> Console:
    return Console(
        file=cast("IO[str]", file),
        force_terminal=True,
        color_system="truecolor",
        width=60,
        height=20,
        legacy_windows=False,
    )


def draw_markdown(console: Console) -> None:
    console.print(Markdown(MARKDOWN, hyperlinks=True))


def draw_table(console: Console) -> None:
    table = Table("name", "value", title="Table", row_styles=["dim", ""])
    table.add_row("a", Text("styled", style="bold red on #102030 link https://example.org"))
    console.print(Panel(table))
    console.print(Syntax("print('hi')", "python", line_numbers=True))


def draw_status(console: Console) -> None:
    with Status("waiting", console=console) as status:
        console.print("above the status")
        status.update("still waiting")


def draw_live(console: Console) -> None:
    with Live(Text("one\ntwo"), console=console, auto_refresh=False, transient=True) as live:
        live.update(Text("one\ntwo\nthree"), refresh=True)


class RecordedGuard(TerminalGuard):
    """Records the input of the guard, to compare it with its output."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.written = ""

    def write(self, text: str) -> int:
        self.written += text
        return super().write(text)


@pytest.mark.parametrize("draw", [draw_markdown, draw_table, draw_status, draw_live])
def test_what_rich_draws_passes_byte_for_byte(draw: Callable[[Console], None]) -> None:
    stream = io.StringIO()
    guard = RecordedGuard(stream)
    draw(console_on(guard))
    assert stream.getvalue() == guard.written
    assert "\x1b[" in guard.written
    assert guard.blocked == 0


HOSTILE_REPLY = (
    "\x1b[1A\x1b[2K\x1b[2J\x1b[HPWNED \x9b2J \x1b]52;c;Y3VybA==\x07 \x1b]0;title\x07 \x1bc \rover \u202eback "
    "&#x202e;entity&#xE0041;"
)


def screen_after(print_reply: Callable[[Console], None]) -> tuple[list[str], TerminalGuard]:
    stream = io.StringIO()
    guard = TerminalGuard(stream)
    console = console_on(guard)
    console.print("EARLIER LINE")
    print_reply(console)
    screen = pyte.Screen(60, 20)
    pyte.Stream(screen).feed(stream.getvalue().replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display], guard


def test_a_hostile_reply_leaves_earlier_lines_as_they_are() -> None:
    lines, guard = screen_after(lambda console: console.print(Text(safe_text(HOSTILE_REPLY))))
    assert lines[0] == "EARLIER LINE"
    assert lines[1].startswith("\u241b[1A\u241b[2K\u241b[2J\u241b[HPWNED <9B>2J")
    assert guard.blocked == 0


def test_the_guard_stops_what_a_renderer_makes_of_entities() -> None:
    lines, guard = screen_after(lambda console: console.print(Markdown(safe_text(HOSTILE_REPLY))))
    assert lines[0] == "EARLIER LINE"
    assert "\ufffdentity" in "".join(lines)
    assert guard.blocked == 2


def test_the_guard_alone_stops_questions_to_the_terminal_and_its_clipboard() -> None:
    lines, guard = screen_after(lambda console: console.print(Text("\x1b[6n\x1b]52;c;Y3VybA==\x1b\\\x9bc\x1b[?1049h")))
    assert lines[0] == "EARLIER LINE"
    assert guard.blocked == 5


@pytest.mark.parametrize("show", [Screen.line, Screen.paragraph, Screen.question, Screen.notice, Screen.error])
def test_the_guard_finds_nothing_to_block_in_a_hostile_sentence(show: Callable[[Screen, str], None]) -> None:
    terminal = TerminalFile()
    screen = Screen(terminal, XTERM)
    show(screen, "There is no \x9bfile \u202etxt.exe\x1b]0;title\x07.")
    assert screen.guard.blocked == 0
    assert "There is no <9B>file <U+202E>txt.exe\u241b]0;title\u2407." in terminal.written
