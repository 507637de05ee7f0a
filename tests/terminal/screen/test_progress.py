"""The progress line: its seconds, its width, and that it never stands in anybody's way."""

from __future__ import annotations

import asyncio

import pytest

from chorus_cli.terminal.screen.output import Screen
from chorus_cli.terminal.screen.painted_rows import Progress, Wait
from tests.terminal.markdown.markdown_screens import Size
from tests.terminal.screen.terminal_file import XTERM, TerminalFile, on_terminal, seen

SAVING = Wait("/context save", 0.05, ", press Ctrl-C to stop")


class Seconds:
    """A clock that jumps ``step`` seconds at each look."""

    def __init__(self, step: float) -> None:
        self._now = 0.0
        self._step = step

    def __call__(self) -> float:
        self._now += self._step
        return self._now


@pytest.mark.parametrize(
    ("wait", "columns", "line"),
    [
        (SAVING, 80, "⠋ /context save … 4 s, press Ctrl-C to stop"),
        (SAVING, 30, "⠋ /context save … 4 s"),
        (Wait("waiting for gpt-4o-mini", 0), 80, "⠋ waiting for gpt-4o-mini … 4 s"),
        (Wait("waiting for gpt-4o-mini", 0), 20, "⠋ waiting fo … 4 s"),
        (Wait("waiting for 模型模型", 0), 24, "⠋ waiting for 模 … 4 s"),
        (Wait("waiting for gpt-4o-mini", 0), 5, " … 4"),
    ],
)
async def test_the_line_is_as_long_as_there_is_room(wait: Wait, columns: int, line: str) -> None:
    file = TerminalFile(Size(columns))
    screen = Screen(file, XTERM)
    screen.line("above")
    with Progress(screen, Seconds(4), Size(columns)).of(wait):
        await seen(lambda: len(file.window.text()) > 1)
        assert file.window.text() == ["above", line]
    assert file.window.text() == ["above"]


@pytest.mark.parametrize(
    ("environment", "encoding", "written"),
    [
        (XTERM, "utf-8", "\x1b[2m⠙ /context save … 8 s, press Ctrl-C to stop\x1b[0m"),
        (XTERM | {"NO_COLOR": "1"}, "utf-8", "\x1b[?7l⠙ /context save … 8 s, press Ctrl-C to stop\n"),
        (XTERM, "ascii", "\x1b[2m/ /context save ... 8 s, press Ctrl-C to stop\x1b[0m"),
    ],
    ids=["colours", "no colours", "no UTF-8"],
)
async def test_the_line_has_the_signs_of_the_terminal(environment: dict[str, str], encoding: str, written: str) -> None:
    file = TerminalFile(encoding=encoding)
    with Progress(Screen(file, environment), Seconds(4)).of(SAVING):
        await seen(lambda: "8 s" in file.written)
    assert written in file.written


async def test_what_is_said_meanwhile_stands_above_the_line() -> None:
    file, screen = on_terminal()
    with Progress(screen, Seconds(4)).of(SAVING):
        await seen(lambda: "save" in file.written)
        screen.notice("Half of it is done.")
        assert file.window.text() == ["Half of it is done."]
        await seen(lambda: len(file.window.text()) > 1)
    assert file.window.text() == ["Half of it is done."]


async def test_nothing_is_painted_while_somebody_else_has_the_terminal_and_then_the_waiting_begins_anew() -> None:
    file = TerminalFile()
    progress = Progress(Screen(file, XTERM))
    with progress.of(SAVING):
        await seen(lambda: "save" in file.written)
        with progress.paused():
            assert file.window.text() == []
            written = file.written
            await asyncio.sleep(0.3)
            assert file.written == written
        await asyncio.sleep(0)
        assert file.written == written
        await seen(lambda: file.window.text() != [])
    with progress.paused():
        pass
    await asyncio.sleep(0.1)
    assert file.window.text() == []


async def test_a_quick_command_writes_nothing() -> None:
    file = TerminalFile()
    with Progress(Screen(file, XTERM)).of(SAVING):
        await asyncio.sleep(0)
    assert file.written == ""


@pytest.mark.parametrize(("environment", "is_terminal"), [({"TERM": "dumb"}, True), (XTERM, False)])
async def test_where_nothing_can_be_painted_there_is_no_line(environment: dict[str, str], *, is_terminal: bool) -> None:
    file = TerminalFile(is_terminal=is_terminal)
    with Progress(Screen(file, environment)).of(SAVING):
        await asyncio.sleep(0.1)
    assert file.written == ""
