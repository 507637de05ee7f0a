"""Dim lines around a painted reply, and a window that changes its size meanwhile."""

from __future__ import annotations

import asyncio
import io
import re
import time
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ModelError
from chorus_cli.log.rules.messages import Status, Thought
from chorus_cli.models.rules.events import Notice, ReasoningDelta, TextDelta, ToolStarted, ToolUsed, TurnDone
from chorus_cli.terminal.reply.dim_lines import PrintedThoughts, silence_rows
from chorus_cli.terminal.reply.stream import PaintedReply, show_events
from chorus_cli.terminal.screen.output import Screen, widest
from chorus_cli.terminal.screen.painted_rows import PaintedRows, Row
from tests.terminal.markdown.markdown_screens import Size, StreamHere, Window, randomly_cut
from tests.terminal.screen.terminal_file import (
    ASKING,
    DONE,
    HOSTILE,
    XTERM,
    TerminalFile,
    begun,
    on_terminal,
    seen,
    shown,
    stopped,
    turn,
)

_DOCUMENTS = [range(12), pytest.param(range(12, 60), marks=pytest.mark.slow)]

FORMS = {
    "code": ("```python\n", "{}\n", "```\n"),
    "a paragraph": ("", "{}\n", ""),
    "lines": ("", "{}\\\n", "end\n"),
    "bullets": ("", "- {}\n", ""),
    "numbers": ("", "1. {}\n", ""),
    "nested bullets": ("- top\n", "  - *{}*\n", ""),
    "code in an item": ("- top\n\n  ```\n", "  {}\n", "  ```\n"),
    "a quote": ("", "> {}\n", ""),
    "quoted paragraphs": ("", "> {}\n>\n", ""),
    "quoted code": ("> ```\n", "> {}\n", "> ```\n"),
    "a table": ("| a | b |\n|---|---|\n", "| {} | b |\n", ""),
}
WORDS = ["a", "be", "sea", "deep", "`code`", "*them*", "größer", "日本語", "x" * 25, "-", "--", "(x)", "]["]


def numbered(random: Random) -> tuple[str, range]:
    number, parts = 1000, []
    for _ in range(random.randint(1, 6)):
        head, line, tail = random.choice([*FORMS.values()])
        parts.append(f"\n{head}")
        for _ in range(random.randint(1, 9)):
            words = " ".join(random.choices(WORDS, k=random.randint(0, 14)))
            parts.append(line.format(f"n{number}e {words}".strip()))
            number += 1
        parts.append(tail)
    return "".join(parts), range(1000, number)


def sizes_of(random: Random) -> list[Size]:
    return [Size(random.randint(20, 90), random.randint(6, 30)) for _ in range(random.randint(2, 8))]


class Reply:
    """A stream in a window."""

    def __init__(self, size: Size) -> None:
        self.window = Window(size)
        self.stream = StreamHere(self.window.write, size=self.window.current_size)

    def add(self, text: str) -> None:
        self.stream.feed(text)
        while self.stream.advance():
            pass
        self.stream.paint()

    def resize(self, size: Size) -> None:
        self.window.resize(size)
        self.stream.paint()

    def counts(self, numbers: range) -> list[int]:
        """Return how often each number stands in the window; it may be broken anywhere."""
        self.stream.close()
        text = re.sub(r"[\s▌]", "", "".join(self.window.text()))
        return [text.count(f"n{number}e") for number in numbers]


def streamed_while_resized(text: str, random: Random, sizes: list[Size]) -> Reply:
    reply = Reply(sizes[0])
    reply.window.write("before\n" * random.randint(0, 12))
    chunks = randomly_cut(text, random, longest=120)
    moments = sorted(random.randrange(len(chunks)) for _ in sizes[1:])
    for number, chunk in enumerate(chunks):
        reply.add(chunk)
        while moments and moments[0] == number:
            reply.resize(sizes[len(sizes) - len(moments)])
            moments.pop(0)
    return reply


@pytest.mark.parametrize("seeds", _DOCUMENTS, ids=str)
def test_no_line_is_lost(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)  # noqa: S311 - the same in each run
        text, numbers = numbered(random)
        reply = streamed_while_resized(text, random, sizes_of(random))
        assert 0 not in reply.counts(numbers), seed


def test_a_window_that_becomes_wider_or_higher_keeps_what_is_settled_and_paints_the_rest_anew() -> None:
    reply = Reply(Size(30, 12))
    reply.add("first paragraph that is broken in a narrow window\n\nsecond one that is broken in it ")
    reply.resize(Size(60, 20))
    reply.add("too")
    reply.stream.close()
    assert reply.window.text() == [
        "first paragraph that is broken",
        "in a narrow window",
        "",
        "second one that is broken in it too",
    ]


def test_what_a_narrower_window_still_shows_is_painted_anew() -> None:
    reply = Reply(Size(40, 24))
    reply.add("1\n\n2\n\n3\n\na row of thirty characters or so\nand on it goes")
    reply.resize(Size(16, 24))
    assert reply.window.text() == ["1", "", "2", "", "3", "", "a row of thirty", "characters or so", "and on it goes"]


@pytest.mark.parametrize(("breaks_rows", "height"), [(True, 3), (False, 2)])
def test_a_terminal_that_cuts_rows_off_has_as_many_as_before(breaks_rows: bool, height: int) -> None:  # noqa: FBT001
    written: list[str] = []
    rows = PaintedRows(written.append, breaks_rows=breaks_rows)
    rows.show([Row("above", "above", 5)] * 5, [Row("x" * 20, "x" * 20, 20), Row("y", "y", 1)], 20, 10)
    rows.show([], [], 10, 10)
    assert f"\x1b[{height}A" in written[-1]


@pytest.mark.parametrize(
    ("environment", "breaks_rows"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "XTERM_VERSION": "XTerm(390)"}, False),
        ({"TERM": "tmux-256color", "XTERM_VERSION": "XTerm(390)", "TMUX": "/run/tmux,1,0"}, True),
        ({"TERM": "screen", "STY": "1.pts-0.host"}, False),
        ({"TERM": "linux"}, False),
    ],
)
def test_terminals_that_cut_rows_off_are_known(environment: dict[str, str], breaks_rows: bool) -> None:  # noqa: FBT001
    assert Screen(io.StringIO(), environment).breaks_rows is breaks_rows


CALL = 'search_history("ring")'
USED = ToolUsed(CALL, "3 messages")
THOUGHT = Thought(12.3, 640)
THOUGHT_ABOUT = TurnDone(1, Status.COMPLETE, thought=THOUGHT)
LINE = "thought for 12 s, 640 tokens"
ROUNDS = (
    *(ASKING, ReasoningDelta("I must look."), ToolStarted(CALL, Thought(3, 20)), USED),
    *(ASKING, ReasoningDelta("Gold!"), TextDelta("It was **gold**."), THOUGHT_ABOUT),
)

pytestmark = pytest.mark.usefixtures("_usual_size")


def lines(file: TerminalFile) -> list[str]:
    return [line for line in file.window.text() if line]


async def test_a_dim_line_below_the_reply_says_how_long_the_model_thought() -> None:
    file = await shown(ASKING, ReasoningDelta("hm"), 0.1, TextDelta("Tea *it* is."), THOUGHT_ABOUT)
    assert file.window.text() == ["Tea it is.", "", LINE]
    assert f"\x1b[2m{LINE}" in file.written


async def test_a_thought_below_a_notice_leaves_no_row_behind() -> None:
    file = await shown(Notice("Asked again."), ReasoningDelta("hm"), 0.2, TextDelta("Tea."), DONE)
    assert file.window.text() == ["Asked again.", "", "Tea."]


async def test_each_round_has_a_line_of_its_own_above_that_of_its_tool() -> None:
    second = ToolStarted("read_thread(2)")
    file = await shown(*ROUNDS[:4], second, ToolUsed("read_thread(2)", "nothing"), *ROUNDS[4:])
    assert lines(file) == [
        "thought for 3 s, 20 tokens", f"{CALL}: 3 messages", "read_thread(2): nothing", "It was gold.", LINE
    ]  # fmt: skip


async def test_thoughts_before_a_failure_are_told_before_it() -> None:
    file = await shown(TurnDone(1, Status.FAILED, error=ModelError("The line is dead."), thought=THOUGHT))
    assert lines(file)[0] == LINE
    assert lines(file)[1].startswith("The line is dead.")


@pytest.mark.parametrize(
    ("terminal", "told"), [(True, f"thought for 3 s, 20 tokens\n{CALL}: 3 messages\n{LINE}\n"), (False, "")]
)
@pytest.mark.parametrize("shows_thoughts", [True, False])
async def test_a_pipe_gets_the_reply_alone(*, terminal: bool, told: str, shows_thoughts: bool) -> None:
    out, err = io.StringIO(), TerminalFile(is_terminal=terminal)
    await show_events(turn(*ROUNDS), Screen(out, {}), Screen(err, {"TERM": "dumb"}), shows_thoughts=shows_thoughts)
    assert out.getvalue() == "It was **gold**.\n"
    assert err.written == told


async def test_a_user_who_wants_them_reads_the_thoughts_dim_above_the_reply_as_they_come() -> None:
    file, screen = on_terminal()
    spoken = asyncio.Event()
    first = (ReasoningDelta("\nThe user asks for tea.\n\n\n" + "Black or green? " * 10), ReasoningDelta("Gre"))
    then = (ReasoningDelta("en.\n"), TextDelta("Green *tea*."), THOUGHT_ABOUT)
    showing = begun(screen, *first, spoken, *then, shows_thoughts=True)
    row = ("Black or green? " * 5)[:-1]
    await seen(lambda: file.window.text() == ["The user asks for tea.", "", row, row, "Gre"])
    spoken.set()
    await showing
    assert file.window.text() == ["The user asks for tea.", "", row, row, "Green.", "", "Green tea."]
    for words in ("The user asks for tea.", row, "Green."):
        assert f"\x1b[2m{words}\x1b[0m" in file.written
    assert file.written.count(row) == 2


async def test_printed_thoughts_stand_above_the_open_words_and_the_tools_between_them() -> None:
    first = (TextDelta("One"), 0.2, ReasoningDelta("hm"), TextDelta(" two"), ToolStarted(CALL, THOUGHT), USED)
    file = await shown(*first, ReasoningDelta("well"), 0.2, TextDelta("Three."), THOUGHT_ABOUT, shows_thoughts=True)
    assert lines(file) == ["hm", "One two", f"{CALL}: 3 messages", "well", "Three."]


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "xterm", "ACCESSIBLE": "1"}])
async def test_a_plain_reply_has_the_thoughts_above_it_too(environment: dict[str, str]) -> None:
    more = (TextDelta(" Or"), ReasoningDelta(HOSTILE), ToolStarted(CALL), USED, ReasoningDelta("Out"), DONE)
    first = (ReasoningDelta("I mu"), ReasoningDelta("st look.\n\n"), TextDelta("Gold."))
    file = await shown(*first, THOUGHT_ABOUT, environment=environment, shows_thoughts=True)
    assert file.written == "I must look.\n\nGold.\n"
    file = await shown(*first, *more, environment=environment, shows_thoughts=True)
    assert file.written.startswith("I must look.\n\nGold. Or\n\n")
    assert file.written.endswith(f"last words\n{CALL}: 3 messages\nOut\n")
    assert "\x1b" not in file.written


async def test_thoughts_that_cannot_be_read_are_told_in_the_line_all_the_same() -> None:
    file = await shown(TextDelta("Tea."), THOUGHT_ABOUT, shows_thoughts=True)
    assert file.window.text() == ["Tea.", "", LINE]


async def test_a_turn_that_is_stopped_keeps_the_thoughts_that_were_printed() -> None:
    file, screen = on_terminal()
    showing = begun(screen, ReasoningDelta("One thought\nand ano"), 60.0, shows_thoughts=True)
    await seen(lambda: "and ano" in file.written)
    await stopped(showing)
    assert lines(file) == ["One thought", "and ano"]


async def test_a_notice_between_thoughts_stands_above_the_open_row() -> None:
    steps = (ReasoningDelta("One\ntwo"), 0.3, Notice("Remembered."), 0.3, ReasoningDelta(" three"), DONE)
    file = await shown(*steps, shows_thoughts=True)
    assert lines(file) == ["One", "Remembered.", "two three"]


async def test_thoughts_cannot_command_the_terminal() -> None:
    file = await shown(ReasoningDelta(HOSTILE), 0.2, DONE, shows_thoughts=True)
    assert not any(sign in file.written for sign in ("\x1b]52", "\x1b[2J", "\x9b", "\u202e"))
    assert "last words" in file.written


@given(st.lists(st.text(st.sampled_from("ab 金\n\t"), max_size=30), max_size=10), st.integers(2, 12))
def test_no_word_of_a_thought_is_lost_and_every_row_fits(pieces: list[str], columns: int) -> None:
    thoughts = PrintedThoughts(Screen(TerminalFile(), {}), lambda: None)
    rows: list[str] = []
    for piece in pieces:
        thoughts.feed(piece)
        rows += [row.plain for row in thoughts.take_settled(columns)]
        assert all(widest(row.plain) <= columns for row in thoughts.rows(columns))
    thoughts.end()
    rows += [row.plain for row in thoughts.take_settled(columns)]
    assert "".join("".join(rows).split()) == "".join("".join(pieces).split())
    assert all(widest(row) <= columns for row in rows)
    assert not rows or (rows[0] and not rows[-1])


TURN = (ASKING, TextDelta("Let me *look*."), ToolStarted(CALL), USED, ASKING, TextDelta("It was **gold**."), DONE)


async def test_a_tool_is_a_dim_line_between_the_words_before_and_after() -> None:
    file = await shown(*TURN)
    lines = [line for line in file.window.text() if line]
    assert lines == ["Let me look.", f"{CALL}: 3 messages", "It was gold."]
    assert f"\x1b[2m{CALL}: 3 messages" in file.written


async def test_a_tool_at_work_is_shown_with_its_seconds_and_leaves_one_line() -> None:
    file = await shown(ASKING, ToolStarted(CALL), 0.7, USED, ASKING, TextDelta("Gold."), DONE)
    assert f"{CALL} … 0 s" in file.written
    assert [line for line in file.window.text() if line] == [f"{CALL}: 3 messages", "Gold."]


async def test_arguments_and_outcomes_cannot_command_the_terminal() -> None:
    hostile = 'f("\x1b]52;c;eA==\x07\x9b2J\nx")'
    file = await shown(ToolStarted(hostile), 0.5, ToolUsed(hostile, "a\u202eb\x1b[2J"), DONE)
    assert "\x1b]52" not in file.written
    assert "\x9b" not in file.written
    assert "\u202e" not in file.written
    assert len([line for line in file.window.text() if line]) == 1


@pytest.mark.parametrize(
    ("call", "outcome", "line"),
    [
        (f'f("{"gold " * 30}")', "3 messages", f'f("{"gold " * 12}gol…: 3 messages'),
        ('f("gold")', "The argument is missing " * 5, f'f("gold"): {("The argument is missing " * 3)[:67]}…'),
        ("f(" + "x" * 90, "y" * 90, f"f({'x' * 36}…: {'y' * 36}…"),
        (f'f("{"金" * 60}")', "3 messages", f'f("{"金" * 31}…: 3 messages'),
    ],
    ids=["call", "outcome", "both", "wide characters"],
)
@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
async def test_a_tool_is_one_row_at_most(call: str, outcome: str, line: str, terminal: str) -> None:
    file = await shown(ASKING, ToolUsed(call, outcome), TextDelta("Gold."), DONE, environment={"TERM": terminal})
    assert [row for row in file.window.text() if row] == [line, "Gold."]


class Clock:
    """The time, and what it was put forward by."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, []), (2.9, []), (3, ["waiting for more … 3 s"]), (75, ["waiting for more … 75 s"])]
)
def test_a_silence_is_told_when_it_is_long(seconds: float, told: list[str]) -> None:
    screen = Screen(TerminalFile(), XTERM)
    assert [row.plain for row in silence_rows(seconds, 80, screen)] == told


def tells_of_silence(file: TerminalFile, words: str) -> bool:
    return re.fullmatch(rf"{words}\nwaiting for more … 1\d s", "\n".join(file.window.text())) is not None


async def test_the_line_of_a_stalled_reply_is_gone_with_the_next_word_and_in_the_end() -> None:
    file, clock = TerminalFile(), Clock()
    screen = Screen(file, XTERM)
    reply = PaintedReply(screen, screen, monotonic=clock)
    for piece, words in (("one", "one"), (" two", "one two")):
        reply.show(TextDelta(piece))
        clock.ahead += 10
        await seen(partial(tells_of_silence, file, words))
    reply.show(DONE)
    await reply.finish()
    reply.close()
    assert file.window.text() == ["one two"]


async def test_a_model_that_thinks_is_not_silent() -> None:
    file, clock = TerminalFile(), Clock()
    screen = Screen(file, XTERM)
    reply = PaintedReply(screen, screen, monotonic=clock)
    reply.show(TextDelta("one"))
    reply.show(ReasoningDelta("hm"))
    clock.ahead = 10
    await seen(lambda: "thinking … hm" in file.written)
    reply.close()
    assert "waiting for more" not in file.written
