"""What becomes of the line that is being typed: in the editor, with vi's keys, after a signal; and the line below."""

from __future__ import annotations

import shlex
import signal
from contextlib import closing
from pathlib import Path

import pytest

from tests.terminal.command import PROGRAM
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import changing, editor

RETURNED = "The text you had typed when the chat ended is at the prompt again."


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], ids=lambda number: number.name)
def test_what_stands_at_the_prompt_outlives_a_signal(home: Home, number: signal.Signals) -> None:
    with home.chat() as chat:
        chat.type("I am not\nsent")
        chat.await_line("  sent")
        chat.kill(number)
        assert chat.echoes
    with home.chat("  sent") as chat:
        chat.await_text(RETURNED)
        assert home.unsent() == ["I am not\nsent"]
        chat.press("enter")
        chat.await_text("Would you like to be?")
        chat.await_line(PROMPT)
    assert home.said() == ["I am not\nsent"]
    assert home.unsent() == []


def test_what_stands_at_the_prompt_outlives_a_window_whose_hanging_up_is_ignored(home: Home) -> None:
    command = ["sh", "-c", f"trap '' HUP; exec {shlex.join(PROGRAM)}"]
    with closing(Terminal(home.environment, command=command)) as chat:
        chat.await_line(PROMPT)
        chat.type("not sent")
        chat.await_line(f"{PROMPT} not sent")
        assert chat.hang_up() == 0
    assert home.unsent() == ["not sent"]


def test_a_slash_is_typed_into_a_line_that_came_back(home: Home, tmp_path: Path) -> None:
    with home.chat(EDITOR=editor(tmp_path, changing("text += ' and'"))) as chat:
        chat.type("look at /etc")
        chat.press("ctrl-x", "ctrl-e")
        chat.await_line(f"{PROMPT} look at /etc and")
        chat.type(" /usr")
        chat.await_line(f"{PROMPT} look at /etc and /usr")
        chat.press("ctrl-c", "ctrl-c", "ctrl-c")
        assert chat.await_end() == 0


def test_the_line_below_says_who_answers_and_how_full_the_request_is(home: Home) -> None:
    with home.chat() as chat:
        chat.await_bottom_line(" Chorus · chorus/eliza · 8h · ", " / 128,000 (0%) · thread 1")
        before = tokens(chat)
        chat.ask("I am unhappy", "unhappy?")
        chat.await_bottom_line(" Chorus · chorus/eliza · 8h · ", " / 128,000 (0%) · thread 1")
        chat.until(lambda: tokens(chat) > before, "more tokens than before")
        chat.ask("/context 24h", "Context window set to 24h")
        chat.await_bottom_line(" Chorus · chorus/eliza · 24h · ")
        chat.ask("/thread new Birthday", "Birthday")
        chat.await_bottom_line(" thread 2")
        chat.until(lambda: tokens(chat) == before, "as few tokens as at first")


def tokens(chat: Terminal) -> int:
    """Return the tokens that the line below speaks of; none before they are measured."""
    number, tokens, _ = chat.bottom_line().partition(" / ")
    return int(number.rpartition(" ")[2].replace(",", "")) if tokens else 0


def test_the_line_below_says_that_a_second_ctrl_c_leaves(home: Home) -> None:
    with home.chat() as chat:
        chat.await_bottom_line("thread 1")
        chat.press("ctrl-c")
        chat.await_bottom_line(" Press Ctrl-C again to quit")
        chat.press("ctrl-r")
        # By itself it would be there again after three seconds.
        chat.await_bottom_line("thread 1", seconds=2)
        chat.press("ctrl-c")
        chat.await_bottom_line(" Press Ctrl-C again to quit")
        chat.type("no")
        chat.await_bottom_line("thread 1", seconds=2)


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
