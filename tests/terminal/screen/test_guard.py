"""The guard of the terminal, the progress line, the bell, and the messages for the desktop."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable
from itertools import pairwise
from typing import IO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.markdown import Markdown

from chorus_cli.core.text.safe_text import safe_text
from chorus_cli.terminal.screen.output import BELL, Screen, TerminalGuard, desktop_message
from chorus_cli.terminal.screen.painted_rows import Progress, Wait
from tests.amount import examples
from tests.core.text.hostile_text import ENGLAND
from tests.terminal.markdown.markdown_screens import Size
from tests.terminal.screen.terminal_file import XTERM, TerminalFile, on_terminal, seen


def guarded(*writes: str, allow_sequences: bool = True) -> tuple[str, int]:
    stream = io.StringIO()
    guard = TerminalGuard(stream, allow_sequences=allow_sequences)
    for text in writes:
        assert guard.write(text) == len(text)
    guard.flush()
    return stream.getvalue(), guard.blocked


@pytest.mark.parametrize(
    "sequence",
    [
        *("\x1b[0m", "\x1b[m", "\x1b[1;38;2;255;0;10m", "\x1b[A", "\x1b[12B", "\x1b[3C", "\x1b[2D", "\x1b[1E"),
        *("\x1b[1F", "\x1b[7G", "\x1b[H", "\x1b[3;4H", "\x1b[2J", "\x1b[K", "\r\x1b[2K", "\x1b[?7l", "\x1b[?7h"),
        *("\x1b[?25l", "\x1b[?25h", "\x1b[?2026h", "\x1b[?2026l"),
        "\r\n",
        "\t\n",
        ENGLAND,
    ],
)
def test_our_own_sequences_pass_whole_or_split_at_any_place(sequence: str) -> None:
    assert guarded(f"a{sequence}b") == (f"a{sequence}b", 0)
    places = {*range(1, min(len(sequence), 40)), len(sequence) - 1}
    assert all(guarded(sequence[:place], sequence[place:] + "b") == (sequence + "b", 0) for place in places)
    assert guarded(*sequence[:100], sequence[100:]) == (sequence, 0)


@pytest.mark.parametrize(
    ("hostile", "shown", "blocked"),
    [
        ("\x1b]52;c;Y3VybA==\x07", "\u241b]52;c;Y3VybA==\ufffd", 2),
        ("\x1b]0;title\x07", "\u241b]0;title\ufffd", 2),
        ("\x1b]8;;file:///etc/passwd\x1b\\", "\u241b]8;;file:///etc/passwd\u241b\\", 2),
        ("\x1b]8;id=1;https://example.org\x1b\\", "\u241b]8;id=1;https://example.org\u241b\\", 2),
        ("\x1bPq#0;2;0\x1b\\", "\u241bPq#0;2;0\u241b\\", 2),
        ("\x1b_G\x1b\\", "\u241b_G\u241b\\", 2),
        ("\x1b[6n", "\u241b[6n", 1),
        ("\x1b[c", "\u241b[c", 1),
        ("\x1b[?1049h", "\u241b[?1049h", 1),
        ("\x1b[?25;1049h", "\u241b[?25;1049h", 1),
        ("\x1b[>4;1m", "\u241b[>4;1m", 1),
        ("\x1b[1\x1b[31m", "\u241b[1\x1b[31m", 1),
        ("\x1bc", "\u241bc", 1),
        ("\x9b31m", "\ufffd31m", 1),
        ("\x9d0;title\x9c", "\ufffd0;title\ufffd", 2),
        ("\x85", "\ufffd", 1),
        ("\x00\x07\x08\x0e\x7f", "\ufffd\ufffd\ufffd\ufffd\ufffd", 5),
        ("safe\rfake", "safe\ufffdfake", 1),
        ("\r\r\n", "\ufffd\r\n", 1),
        ("\u202epip\u2069\u2028", "\ufffdpip\ufffd\ufffd", 3),
        ("a\u200b\u00ad\U000e0041b", "ab", 3),
        ("\U0001f3f4\U000e0041\U000e007fx", "\U0001f3f4x", 2),
    ],
)
def test_anything_else_is_shown_instead_of_obeyed_and_counted(hostile: str, shown: str, blocked: int) -> None:
    assert guarded(hostile) == (shown, blocked)
    assert guarded(*hostile) == (shown, blocked)
    assert guarded(hostile, allow_sequences=False)[0] == re.sub(r"\x1b\[31m", "", shown)


@pytest.mark.parametrize(
    ("unfinished", "shown", "blocked"),
    [
        ("text\x1b", "text\u241b", 1),
        ("text\x1b[3", "text\u241b[3", 1),
        ("text\r", "text\ufffd", 1),
        ("\x1b]8;;https://example.org\x1b", "\u241b]8;;https://example.org\u241b", 2),
        ("\U0001f3f4", "\U0001f3f4", 0),
        ("\U0001f3f4\U000e0067", "\U0001f3f4", 1),
    ],
)
def test_a_flush_shows_an_unfinished_sequence_as_text(unfinished: str, shown: str, blocked: int) -> None:
    assert guarded(unfinished) == (shown, blocked)


def test_a_sequence_does_not_continue_after_a_flush() -> None:
    stream = io.StringIO()
    guard = TerminalGuard(stream)
    guard.write("\x1b")
    guard.flush()
    guard.write("[31m")
    assert stream.getvalue() == "\u241b[31m"


def test_text_before_an_unfinished_sequence_is_not_held_back() -> None:
    stream = io.StringIO()
    TerminalGuard(stream).write("text\x1b[")
    assert stream.getvalue() == "text"


def test_without_sequences_ours_are_left_out_and_others_shown() -> None:
    text = "\x1b[1mbold\x1b[0m word\r\x1b[2K \x1b[6n\r\n"
    assert guarded(text, allow_sequences=False) == ("bold word \u241b[6n\r\n", 1)


pieces = st.sampled_from(
    [*"\x1b[]8;;?25hm\r\n\\\x9b\x07a \u202e\U0001f3f4\U000e0067\U000e007f\ud83d", "\x1b[31m", "\x1b]8;;", "https://a"]
)


@examples(300)
@given(parts=st.lists(pieces, max_size=30), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_only_our_own_sequences_come_through_however_they_are_split(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    bounds = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    shown, blocked = guarded(*(text[start:end] for start, end in pairwise(bounds)))
    assert (shown, blocked) == guarded(text)
    rest = re.sub(r"\x1b\[[0-9;]*[A-HJKm]|\x1b\[\?(25|2026)[hl]", "", shown)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e]", rest)


@given(st.lists(pieces, max_size=30).map("".join))
def test_without_sequences_no_escape_comes_through(text: str) -> None:
    shown, _ = guarded(text, allow_sequences=False)
    assert "\x1b" not in shown


@examples(200)
@given(st.text(st.characters(exclude_categories=())))
def test_safe_text_passes_unchanged(text: str) -> None:
    safe = safe_text(text)
    assert guarded(safe) == (safe, 0)


@pytest.mark.parametrize(
    ("encoding", "text", "written"),
    [
        ("ascii", "caf\u00e9 \u276f \x1b[1mx\x1b[0m", b"caf? ? \x1b[1mx\x1b[0m"),
        ("ascii", "\x1b]0;t\x07", b"?]0;t?"),
        ("latin-1", "caf\u00e9 \u276f", b"caf\xe9 ?"),
        ("utf-8", "\u276f \ud83d\ude00 \udcff", "\u276f \U0001f600 \ufffd".encode()),
    ],
)
def test_what_the_terminal_cannot_show_becomes_a_question_mark(encoding: str, text: str, written: bytes) -> None:
    raw = io.BytesIO()
    guard = TerminalGuard(io.TextIOWrapper(raw, encoding=encoding))
    guard.write(text)
    guard.flush()
    assert raw.getvalue() == written
    assert guard.encoding == encoding


def test_the_guard_stops_what_a_renderer_makes_of_entities() -> None:
    guard = TerminalGuard(stream := io.StringIO())
    console = Console(file=cast("IO[str]", guard), force_terminal=True, width=60, legacy_windows=False)
    console.print(Markdown(safe_text("\u202eback &#x202e;entity&#xE0041;")))
    assert "\ufffdentity" in stream.getvalue()
    assert guard.blocked == 2


@pytest.mark.parametrize("show", [Screen.line, Screen.paragraph, Screen.question, Screen.notice, Screen.error])
def test_the_guard_finds_nothing_to_block_in_a_hostile_sentence(show: Callable[[Screen, str], None]) -> None:
    terminal = TerminalFile()
    screen = Screen(terminal, XTERM)
    show(screen, "There is no \x9bfile \u202etxt.exe\x1b]0;title\x07.")
    assert screen.guard.blocked == 0
    assert "There is no <9B>file <U+202E>txt.exe\u241b]0;title\u2407." in terminal.written


DONE = "The reply in thread #2 is done."
OSC_9 = f"\x1b]9;Chorus: {DONE}\a"
OSC_777 = f"\x1b]777;notify;Chorus;{DONE}\a"
TMUX, VTE = {"TMUX": "default,1,0"}, {"VTE_VERSION": "7600"}


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
        ("osc", TMUX | VTE, BELL),
        ("osc", {"STY": "1.pts-0"}, BELL),
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
