"""The prompt in a terminal that only takes signs one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.terminal.driver import PROMPT, Home, Terminal


@pytest.fixture
def chat(home: Home) -> Iterator[Terminal]:
    with home.chat(TERM="dumb") as chat:
        yield chat


def test_what_comes_back_can_be_seen(home: Home, chat: Terminal) -> None:
    chat.ask("I am happy", "happy?")
    chat.say("/undo")
    chat.await_line(f"{PROMPT} I am happy")
    chat.say(" today")
    chat.await_text("you happy?", times=2)
    chat.await_line(PROMPT)
    assert home.said() == ["I am happy", "I am happy today"]


def test_what_was_typed_when_the_chat_was_ended_can_be_seen(home: Home, chat: Terminal) -> None:
    chat.say("I am\\")
    chat.type("here")
    chat.await_line("  here")
    chat.hang_up()
    with home.chat("  here", TERM="dumb") as again:
        assert f"{PROMPT} I am\n  here" in again.screen_text()


def test_ctrl_d_leaves_on_an_empty_line(chat: Terminal) -> None:
    chat.leave()


def test_keys_that_change_the_line_show_what_it_became(home: Home, chat: Terminal) -> None:
    chat.type("I am sadd\x7f")
    chat.await_line(f"{PROMPT} I am sad")
    chat.press("ctrl-a")
    chat.type("So ")
    chat.await_line(f"{PROMPT} So I am sad")
    chat.ask("", "sad?")
    chat.press("up")
    chat.await_line(f"{PROMPT} So I am sad")
    chat.say("\\")
    chat.type("and ol\x7fld")
    chat.await_line("  and old")
    chat.ask("", "first notice")
    assert home.said() == ["So I am sad", "So I am sad\nand old"]


def test_tab_completes_nothing_that_nobody_sees(chat: Terminal) -> None:
    chat.type("/con")
    chat.press("tab", "tab")
    chat.type("x")
    chat.await_line(f"{PROMPT} /conx")


def test_a_program_that_ends_its_lines_with_a_line_feed_sends_them(home: Home, chat: Terminal) -> None:
    chat.type("I am sad\n")
    chat.await_text("sad?")
    chat.await_line(PROMPT)
    assert home.said() == ["I am sad"]


def test_no_sequence_reaches_it(chat: Terminal) -> None:
    chat.ask("I am happy", "happy?")
    chat.ask("/status", "Context window")
    chat.type("\x1b[200~a\a\x9b31mb\x1b[201~")
    chat.await_line(f"{PROMPT} a␇<9B>31mb")
    assert b"\x1b" not in chat.drawn
