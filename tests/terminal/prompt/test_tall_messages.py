"""A message that is taller than the window is in the scrollback once, whole, and like any other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.terminal.driver import FIRST_WORD, LONG_MESSAGE, PROMPT, Home, Terminal
from tests.terminal.screen.screen_cells import ScrollingScreen
from tests.terminal.tmux import await_pane

ANSWER = "Say a little more"
COLUMNS, LINES = 80, 15
MESSAGE = [f"row {number} of the message" for number in range(1, 61)]


@contextmanager
def low_window(home: Home, **variables: str) -> Iterator[Terminal]:
    screen = ScrollingScreen(COLUMNS, LINES, history=2000)
    with closing(Terminal({**home.environment, **variables}, screen)) as chat:
        chat.await_text("Chorus 0.")
        chat.await_line(PROMPT)
        yield chat


def standing(lines: list[str]) -> str:
    return "\n".join([f"{PROMPT} {lines[0]}", *(f"  {line}" for line in lines[1:])])


def assert_once_and_whole(text: str, lines: list[str] = MESSAGE) -> None:
    assert f"\n{standing(lines)}\n" in text
    assert {line: text.count(f"{line}\n") for line in lines if text.count(f"{line}\n") != 1} == {}


def pasted(chat: Terminal, lines: list[str]) -> None:
    chat.paste("\n".join(lines))
    chat.await_text(lines[-1])


@pytest.mark.parametrize("count", [LINES - 2, LINES - 1, LINES, LINES + 1, 60])
def test_a_message_of_any_height_stands_once_and_whole(home: Home, count: int) -> None:
    with low_window(home) as chat:
        pasted(chat, MESSAGE[:count])
        chat.ask("", ANSWER)
        assert_once_and_whole(chat.screen_text(), MESSAGE[:count])
        chat.await_bottom_line("thread 1")
        assert chat.screen_text().count("thread 1") == 1
    assert home.said() == ["\n".join(MESSAGE[:count])]


def test_so_does_one_long_line_and_one_that_the_cursor_has_left(home: Home) -> None:
    line = " ".join(f"word{number}" for number in range(400))
    with low_window(home) as chat:
        pasted(chat, MESSAGE)
        chat.press(*["up"] * 59, "ctrl-a")
        chat.await_text(standing(MESSAGE)[:40])
        chat.ask("", ANSWER)
        assert_once_and_whole(chat.screen_text())
        chat.paste(line)
        chat.await_text("word399")
        chat.say("")
        chat.until(lambda: len(home.replies()) == 2, "a second reply")
        chat.await_line(PROMPT)
        rows = chat.screen_text().partition(f"{PROMPT} word0")[2].partition("word399")[0].split("\n")
    assert "".join(line.split()) == "".join(["word0", *"".join(rows).split(), "word399"])


def test_so_does_one_that_was_typed_ahead(home: Home) -> None:
    with low_window(home) as chat:
        chat.say(LONG_MESSAGE)
        chat.await_text(FIRST_WORD, times=2)
        chat.paste("\n".join(MESSAGE))
        chat.press("enter")
        chat.await_text(standing(MESSAGE))
        chat.await_line(PROMPT)
        assert_once_and_whole(chat.screen_text())
    assert home.said()[1:] == ["\n".join(MESSAGE)]


def test_control_characters_in_it_look_as_in_a_short_one(home: Home) -> None:
    evil = "a bell\a, a \x1b[2Jscreen, a \x9b31mcolour, a\ttab"
    seen = "a bell^G, a ^[[2Jscreen, a <9b>31mcolour, a^Itab"
    with low_window(home) as chat:
        chat.paste(evil)
        chat.ask("", ANSWER)
        assert f"{PROMPT} {seen}\n" in chat.screen_text()
        chat.paste("\n".join([evil, *MESSAGE]))
        chat.await_text(MESSAGE[-1])
        chat.say("")
        chat.until(lambda: len(home.replies()) == 2, "a second reply")
        chat.await_line(PROMPT)
        assert f"{standing([seen, *MESSAGE])}\n" in chat.screen_text()


def test_tmux_keeps_each_row_once(home: Home, tmux: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "message").write_text("\n".join(MESSAGE))
    variables = f"LC_ALL=C.UTF-8 CHORUS_HOME={home.path}"
    tmux("send-keys", f"clear; {variables} {sys.executable} -m chorus_cli", "Enter")
    await_pane(tmux, "thread 1")
    await_pane(tmux, "Chorus 0.")
    tmux("load-buffer", str(tmp_path / "message"))
    tmux("paste-buffer", "-p")
    await_pane(tmux, MESSAGE[-1])
    tmux("send-keys", "Enter")
    await_pane(tmux, ANSWER)
    pane = await_pane(tmux, f"{PROMPT}\n")
    assert_once_and_whole(pane)
    assert pane.count("thread 1") <= 1
    tmux("send-keys", "C-l", "short", "Enter")
    await_pane(tmux, "And then?")
    assert await_pane(tmux, f"{PROMPT}\n").count("short\n") == 1


def test_of_one_that_takes_long_to_draw_the_beginning_stands(home: Home) -> None:
    lines = [f"row {number} of very many" for number in range(2_000)]
    with low_window(home) as chat:
        pasted(chat, lines)
        chat.press("enter")
        chat.await_text("… 1,985 more lines")
        chat.await_text(ANSWER)
        assert chat.screen_text().count(f"{PROMPT} {lines[0]}\n  {lines[1]}\n") == 1
        assert lines[LINES] not in chat.screen_text()
    assert home.said() == ["\n".join(lines)]
