"""The lines of tools that a model uses: dim, between the words before and after, and never part of the reply."""

from __future__ import annotations

import pytest

from chorus_cli.models.rules.events import TextDelta, ToolStarted, ToolUsed
from tests.terminal.reply.shown_turns import ASKING, DONE, shown

CALL = 'search_history("ring", since 7d)'
USED = ToolUsed(CALL, "3 messages")
TURN = (ASKING, TextDelta("Let me *look*."), ToolStarted(CALL), USED, ASKING, TextDelta("It was **gold**."), DONE)

pytestmark = pytest.mark.usefixtures("_usual_size")


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
    ],
    ids=["call", "outcome", "both"],
)
@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
async def test_a_tool_is_one_row_at_most(call: str, outcome: str, line: str, terminal: str) -> None:
    file = await shown(ASKING, ToolUsed(call, outcome), TextDelta("Gold."), DONE, environment={"TERM": terminal})
    assert [row for row in file.window.text() if row] == [line, "Gold."]


async def test_wide_characters_fit_too() -> None:
    file = await shown(ASKING, ToolUsed(f'f("{"金" * 60}")', "3 messages"), TextDelta("Gold."), DONE)
    first, second = [row for row in file.window.text() if row]
    assert first.endswith("…: 3 messages")
    assert second == "Gold."
