"""The progress line, which never stands in anybody's way, the bell, and the messages for the desktop."""

from __future__ import annotations

import asyncio

import pytest

from chorus_cli.terminal.screen.output import BELL, Screen, desktop_message
from chorus_cli.terminal.screen.painted_rows import Progress, Wait
from tests.core.text.hostile_text import ENGLAND
from tests.terminal.markdown.markdown_screens import Size
from tests.terminal.screen.terminal_file import XTERM, TerminalFile, on_terminal, seen

DONE = "The reply in thread #2 is done."
OSC_9 = f"\x1b]9;Chorus: {DONE}\a"
OSC_777 = f"\x1b]777;notify;Chorus;{DONE}\a"
TMUX, STY, VTE = {"TMUX": "default,1,0"}, {"STY": "1.pts-0"}, {"VTE_VERSION": "7600"}


def rung(way: str, *sentences: str, **variables: str) -> str:
    """Return what a terminal was sent for so many sentences, a tenth of a second apart."""
    terminal = TerminalFile()
    screen = Screen(terminal, {**XTERM, **variables})
    for number, sentence in enumerate(sentences):
        screen.notify(way, sentence, number / 10)
    return terminal.written


@pytest.mark.parametrize(
    ("way", "variables", "sequence"),
    [
        ("off", {}, ""),
        ("bell", {}, BELL),
        ("bell", {"TERM": "dumb"}, BELL),
        ("bell", TMUX, BELL),
        ("osc", {}, OSC_9),
        ("osc", {"TERM": "rxvt-unicode-256color"}, OSC_777),
        ("osc", VTE, OSC_777),
        ("osc", TMUX, f"\x1bPtmux;\x1b{OSC_9}\x1b\\{BELL}"),
        ("osc", TMUX | VTE, f"\x1bPtmux;\x1b{OSC_777}\x1b\\{BELL}"),
        ("osc", STY, f"\x1bP{OSC_9}\x1b\\"),
        ("osc", {"TERM": "dumb"}, BELL),
        ("osc", {"TERM": "linux"}, BELL),
        ("osc", {"TERM": ""}, BELL),
    ],
)
def test_each_terminal_is_sent_the_sequence_that_it_knows(way: str, variables: dict[str, str], sequence: str) -> None:
    assert rung(way, DONE, **variables) == sequence


@pytest.mark.parametrize("way", ["bell", "osc"])
def test_nothing_is_sent_to_a_pipe(way: str) -> None:
    pipe = TerminalFile(is_terminal=False)
    Screen(pipe, XTERM).notify(way, DONE, 0)
    assert pipe.written == ""


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\x1b]0;title\x07\x9b2J", "␛]0;title␇<9B>2J"),
        ("\x1b\\\u202e\u2028", "␛\\<U+202E>"),
        (f"{ENGLAND}!", f"{ENGLAND}!"),
        ("x" * 500, "x" * 119 + "…"),
    ],
)
def test_the_text_is_one_short_line_that_no_terminal_obeys(sentence: str, text: str) -> None:
    assert rung("osc", sentence) == f"\x1b]9;Chorus: {text}\a"


def test_a_semicolon_does_not_end_the_text() -> None:
    assert desktop_message("a; b", XTERM | VTE) == "\x1b]777;notify;Chorus;a, b\a"


def test_ends_within_a_second_ring_the_bell_once_and_are_all_told() -> None:
    assert rung("bell", *[DONE] * 10) == BELL
    assert rung("bell", *[DONE] * 11) == BELL * 2
    assert rung("osc", DONE, "So is another.") == f"{OSC_9}\x1b]9;Chorus: So is another.\a"


def test_while_an_editor_has_the_terminal_the_bell_rings_and_a_message_waits() -> None:
    terminal = TerminalFile()
    screen = Screen(terminal, XTERM)
    with screen.lent():
        screen.notify("bell", DONE, 0)
        screen.notify("osc", DONE, 0)
        assert terminal.written == BELL
    assert terminal.written == BELL + OSC_9


@pytest.mark.parametrize(
    "sequence", ["", "a", "\a\a", "\x1b]9;Other\a", f"{OSC_9}a", "\x1b]52;c;Y3VybA==\a", "\x1b[2J"]
)
def test_the_guard_rings_with_nothing_else(sequence: str) -> None:
    terminal = TerminalFile()
    screen = Screen(terminal, XTERM)
    screen.ring(sequence)
    assert (terminal.written, screen.guard.blocked) == ("", 1)


@pytest.mark.parametrize("text", [BELL, OSC_9, OSC_777])
def test_a_text_cannot_ring(text: str) -> None:
    terminal = TerminalFile()
    Screen(terminal, XTERM).write(text)
    assert "\a" not in terminal.written
    assert "\x1b" not in terminal.written


def test_a_terminal_that_is_closed_is_ignored() -> None:
    terminal = TerminalFile()
    screen = Screen(terminal, XTERM)
    terminal.failure = OSError(5, "gone")
    screen.notify("bell", DONE, 0)
    assert terminal.written == ""
    terminal.failure = None
    screen.notify("bell", DONE, 2)
    assert terminal.written == BELL


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
