"""The bell and the messages for the desktop: which sequence is sent where, and that no other passes the guard."""

from __future__ import annotations

import pytest

from chorus_cli.terminal.screen.output import BELL, Screen, desktop_message
from tests.core.text.hostile_text import ENGLAND
from tests.terminal.screen.terminal_file import XTERM, TerminalFile

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
