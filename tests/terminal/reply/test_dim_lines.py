"""The dim lines of a reply: thoughts below it or all of them above it, tools between its words, and a silence."""

from __future__ import annotations

import asyncio
import io
import re
import time
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ModelError
from chorus_cli.log.rules.messages import Status, Thought
from chorus_cli.models.rules.events import Notice, ReasoningDelta, TextDelta, ToolStarted, ToolUsed, TurnDone
from chorus_cli.terminal.reply.dim_lines import PrintedThoughts, silence_rows
from chorus_cli.terminal.reply.stream import PaintedReply, show_events
from chorus_cli.terminal.screen.output import Screen, widest
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
    assert file.window.text() == ["Tea it is.", LINE]
    assert f"\x1b[2m{LINE}" in file.written


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


async def test_thoughts_that_cannot_be_read_are_told_in_the_line_all_the_same() -> None:
    file = await shown(TextDelta("Tea."), THOUGHT_ABOUT, shows_thoughts=True)
    assert file.window.text() == ["Tea.", LINE]


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
    reply = PaintedReply(screen, screen, clock)
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
    reply = PaintedReply(screen, screen, clock)
    reply.show(TextDelta("one"))
    reply.show(ReasoningDelta("hm"))
    clock.ahead = 10
    await seen(lambda: "thinking … hm" in file.written)
    reply.close()
    assert "waiting for more" not in file.written
