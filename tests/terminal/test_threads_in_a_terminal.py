"""Threads and forks from the keyboard of the real program."""

from __future__ import annotations

import re

from tests.terminal.driver import PROMPT, Home, Terminal

TIMED = r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d ❯ "


def test_a_thread_is_switched_to_by_title_and_shows_its_last_exchange(home: Home) -> None:
    with home.chat() as terminal:
        terminal.ask("I am in Rome", "Rome")
        terminal.ask("/thread new Supper", "Thread #2: Supper")
        terminal.ask("/thread i am", "Thread #1: I am in Rome")
        shown = terminal.screen_text().partition("Thread #1: I am in Rome")[2]
        assert re.match(rf"\s+{TIMED}I am in Rome\n\S", shown)
        terminal.say("/thread sup")
        terminal.await_text("Thread #2: Supper", times=2)
        terminal.await_line(PROMPT)
        assert "I am in Rome" not in terminal.screen_text().rpartition("Thread #2: Supper")[2]


def test_the_chat_opens_with_the_last_exchange_and_says_if_it_broke_off(home: Home) -> None:
    with home.chat() as terminal:
        terminal.ask("I am here", "here")
        assert not re.search(TIMED, terminal.screen_text())
    with home.chat() as terminal:
        terminal.until(lambda: re.search(rf"{TIMED}I am here\n", terminal.screen_text()) is not None, "the exchange")
        terminal.ask("/new", "--- New conversation ---")
    with home.chat() as terminal:
        terminal.ask("I am back", "back")
        assert not re.search(TIMED, terminal.screen_text())
    home.sql("UPDATE messages SET status = 'truncated' WHERE id = 4")
    with home.chat() as terminal:
        terminal.await_text("[truncated; /retry asks again]")


def test_a_question_on_the_command_line_shows_no_last_exchange(home: Home) -> None:
    home.run("ask", "I am first")
    outcome = home.run("ask", "/thread 1")
    assert outcome.output == "Thread #1: I am first\n"
    assert "first" not in home.run("ask", "I am hungry").output


def tell(chat: Terminal, feeling: str) -> None:
    chat.say(f"I am {feeling}")
    chat.await_text(feeling, times=2)
    chat.await_line(PROMPT)


def test_a_fork_goes_on_apart_and_is_closed_and_opened_again(home: Home) -> None:
    with home.chat() as chat:
        tell(chat, "unhappy")
        tell(chat, "tired")
        whole = home.seen()
        chat.ask("/thread fork 1", "Thread #2: I am unhappy (fork)")
        assert home.seen() == whole[:2]
        tell(chat, "hungry")
        forked = home.seen()
        assert forked[:2] == whole[:2]
        assert len(forked) == 4
        chat.ask("/thread 1", "Thread #1")
        assert home.seen() == whole
        chat.ask("/context undo 1", "Thread #2 is closed; you are in thread #1.")
        chat.ask("/redo", "Thread #2 is open again, and you are in it.")
        assert home.seen() == forked
        chat.leave()
    assert home.seen() == forked
    assert home.sql("SELECT count(*) FROM messages") == [6]
