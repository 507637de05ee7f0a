"""The line that is typed: in the editor, with vi's keys, after a signal, taller than the window; and the line below."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.loopback_providers import slow
from tests.terminal.command import PROGRAM
from tests.terminal.driver import PROMPT, Home, Terminal, await_pane
from tests.terminal.editors import changing, editor
from tests.terminal.screen.screen_cells import ScrollingScreen


@pytest.mark.parametrize(("mode", "keys"), [("emacs", ("ctrl-x", "ctrl-e")), ("vi", ("escape", "v"))])
def test_the_line_goes_to_the_editor_and_comes_back(
    home: Home, tmp_path: Path, mode: str, keys: tuple[str, ...]
) -> None:
    home.run("ask", f"/settings set editing_mode {mode}")
    visit = editor(tmp_path, changing("text += ' than ever\\nand so on\\n'"))
    with home.chat(EDITOR=visit) as chat:
        chat.type("I am happier")
        chat.press(*keys)
        chat.await_line("  and so on")
        assert chat.screen_text().count("I am happier") == 1
        chat.press("enter")
        chat.await_text("happier", times=2)
        chat.await_line(PROMPT)
    assert home.said() == ["I am happier than ever\nand so on"]
    assert not list((home.path / "state" / "drafts").glob("draft-*"))


def test_without_an_editor_the_line_comes_back_as_it_was(home: Home) -> None:
    with home.chat(EDITOR="no-such-editor") as chat:
        chat.type("I am here")
        chat.press("ctrl-x", "ctrl-e")
        chat.await_text("EDITOR is no-such-editor, but there is no program no-such-editor.")
        chat.await_line(f"{PROMPT} I am here")


def test_vi_has_its_keys_and_a_slash_still_begins_a_command(home: Home) -> None:
    home.run("ask", "/settings set editing_mode vi")
    with home.chat() as chat:
        chat.type("I am wiz")
        chat.press("escape")
        chat.type("0wwcwcold")
        chat.await_line(f"{PROMPT} I am cold")
        chat.press("escape", "enter")
        chat.await_text("cold", times=2)
        chat.await_line(PROMPT)
        chat.ask("/settings set editing_mode emacs", "editing_mode")
        chat.type("I am old")
        chat.press("ctrl-a")
        chat.type("So ")
        chat.await_line(f"{PROMPT} So I am old")
    assert home.said() == ["I am cold"]


def test_ctrl_l_leaves_nothing_but_the_prompt_on_the_screen(home: Home) -> None:
    with home.chat() as chat:
        chat.type("half a line")
        chat.await_line(f"{PROMPT} half a line")
        chat.press("ctrl-l")
        chat.until(lambda: chat.line(0) == f"{PROMPT} half a line", "the prompt at the top")


def test_what_stands_at_the_prompt_outlives_a_window_whose_hanging_up_is_ignored(home: Home) -> None:
    command = ["sh", "-c", f"trap '' HUP; exec {shlex.join(PROGRAM)}"]
    with closing(Terminal(home.environment, command=command)) as chat:
        chat.await_line(PROMPT)
        chat.type("not sent")
        chat.await_line(f"{PROMPT} not sent")
        assert chat.hang_up() == 0
    assert home.unsent() == ["not sent"]


def test_the_line_below_says_who_answers_and_how_full_the_request_is(home: Home) -> None:
    with home.chat() as chat:
        chat.await_bottom_line(" Chorus · chorus/eliza · sees 8 h · ", " / 128,000 (0%)")
        assert "thread" not in chat.bottom_line()
        before = tokens(chat)
        chat.ask("I am unhappy", "unhappy?")
        chat.await_bottom_line(" Chorus · chorus/eliza · sees 8 h · ", " / 128,000 (0%)")
        chat.until(lambda: tokens(chat) > before, "more tokens than before")
        chat.ask("/context 24h", "Context window set to 24h")
        chat.await_bottom_line(" Chorus · chorus/eliza · sees 24 h · ")
        chat.ask("/thread new Birthday", "Birthday")
        chat.await_bottom_line(" thread 2")
        chat.until(lambda: tokens(chat) == before, "as few tokens as at first")


def tokens(chat: Terminal) -> int:
    """Return the tokens that the line below speaks of; none before they are measured."""
    number, tokens, _ = chat.bottom_line().partition(" / ")
    return int(number.rpartition(" ")[2].replace(",", "")) if tokens else 0


def test_the_line_below_says_that_a_second_ctrl_c_leaves(home: Home) -> None:
    with home.chat() as chat:
        chat.await_bottom_line("sees 8 h")
        chat.press("ctrl-c")
        chat.await_bottom_line(" Press Ctrl-C again to quit")
        chat.press("ctrl-r")
        # By itself it would be there again after three seconds.
        chat.await_bottom_line("sees 8 h", seconds=2)
        chat.press("ctrl-c")
        chat.await_bottom_line(" Press Ctrl-C again to quit")
        chat.type("no")
        chat.await_bottom_line("sees 8 h", seconds=2)


def test_what_hides_in_a_line_is_seen_and_is_sent_as_it_is(home: Home) -> None:
    first, rest = f"{PROMPT} pay", "<U+202E>eve<U+200B>!"
    with home.chat() as chat:
        chat.paste("pay\u202eeve\u200b!")
        chat.await_line(f"{first}{rest}")
        chat.press("left", "left")
        chat.await_column(len(f"{first}<U+202E>eve"))
        chat.press("left", "left", "left")
        chat.await_column(len(f"{first}<U+202E>"))
        chat.press("left")
        chat.await_column(len(first))
        chat.press("ctrl-r")
        chat.paste("\u202e!")
        chat.await_text("I-search backward: <U+202E>!")
        chat.press("ctrl-c")
        chat.await_column(len(first))
        chat.say(" ")
        chat.until(lambda: bool(home.said()), "a message")
        chat.await_line(PROMPT)
        assert f"{first} {rest}\n" in chat.screen_text()
        assert "\u202e".encode() not in chat.drawn
    assert home.said() == ["pay \u202eeve\u200b!"]


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
        chat.await_bottom_line("sees 8 h")
        assert chat.screen_text().count("sees 8 h") == 1
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
    with slow() as provider, low_window(home, **provider.variables) as chat:
        chat.say("mountains")
        chat.await_text("About mountains")
        chat.paste("\n".join(MESSAGE))
        chat.press("enter")
        provider.finish("mountains", MESSAGE[-1].split()[0])
        chat.await_text(standing(MESSAGE))
        chat.await_line(PROMPT)
        assert_once_and_whole(chat.screen_text())
    assert home.said()[1:] == ["\n".join(MESSAGE)]


def test_control_characters_in_it_are_shown(home: Home) -> None:
    with low_window(home) as chat:
        pasted(chat, ["a bell\a, a \x1b[2Jscreen, a \x9b31mcolour", *MESSAGE])
        chat.ask("", ANSWER)
        assert f"{standing(['a bell␇, a ␛[2Jscreen, a <9B>31mcolour', *MESSAGE])}\n" in chat.screen_text()


def test_tmux_keeps_each_row_once(home: Home, tmux: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "message").write_text("\n".join(MESSAGE))
    variables = f"LC_ALL=C.UTF-8 CHORUS_HOME={home.path}"
    tmux("send-keys", f"clear; {variables} {sys.executable} -m chorus_cli", "Enter")
    await_pane(tmux, "sees 8 h")
    await_pane(tmux, "Chorus 0.")
    tmux("load-buffer", str(tmp_path / "message"))
    tmux("paste-buffer", "-p")
    await_pane(tmux, MESSAGE[-1])
    tmux("send-keys", "Enter")
    await_pane(tmux, ANSWER)
    pane = await_pane(tmux, f"{PROMPT}\n")
    assert_once_and_whole(pane)
    assert pane.count("sees 8 h") <= 1
    tmux("send-keys", "C-l", "short", "Enter")
    await_pane(tmux, "And then?")
    assert await_pane(tmux, f"{PROMPT}\n").count("short\n") == 1


def test_of_one_that_takes_long_to_draw_the_beginning_stands(home: Home) -> None:
    lines = [f"row {number} of very many" for number in range(2_000)]
    with low_window(home) as chat:
        pasted(chat, lines)
        chat.press("enter")
        chat.await_text("… 1,800 more lines")
        chat.await_text(ANSWER)
        assert chat.screen_text().count(f"{PROMPT} {lines[0]}\n  {lines[1]}\n") == 1
        assert lines[200] not in chat.screen_text()
    assert home.said() == ["\n".join(lines)]
