"""A reply that has begun and does not go on says so below its last word, until it does."""

from __future__ import annotations

import re
import time
from functools import partial

import pytest

from chorus_cli.models.rules.events import ReasoningDelta, TextDelta
from chorus_cli.terminal.reply.dim_lines import silence_rows
from chorus_cli.terminal.reply.stream import PaintedReply
from chorus_cli.terminal.screen.output import Screen
from tests.terminal.reply.shown_turns import DONE
from tests.terminal.screen.terminal_file import XTERM, TerminalFile, seen

pytestmark = pytest.mark.usefixtures("_usual_size")


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
