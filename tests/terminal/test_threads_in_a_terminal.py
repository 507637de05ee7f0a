"""Threads, forks and sessions from the keyboard of the real program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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


LOG = "SELECT id, turn_id, role, content, timestamp, status FROM messages ORDER BY id"
CONTENTS = "SELECT content FROM messages ORDER BY id"


def sessions(home: Home, persona: str = "chorus") -> Path:
    return home.path / "personas" / persona / "sessions"


def test_a_session_is_restored_after_a_restart_as_often_as_one_likes_and_each_time_taken_back(home: Home) -> None:
    with home.chat() as chat:
        tell(chat, "unhappy")
        tell(chat, "tired")
        chat.ask("/context save Auth refactor, don't lose this", "Saved session")
        chat.await_text("auth-refactor-dont-lose-this: 4 messages")
        chat.ask("/new", "--- New conversation ---")
        tell(chat, "hungry")
        chat.leave()
    log = home.sql(LOG)
    contents = home.sql(CONTENTS)
    saved, fresh = contents[:4], contents[4:]
    [file] = sessions(home).glob("*.json")
    assert home.seen() == fresh

    with home.chat() as chat:
        chat.ask("/context history", "as ELIZA")
        begun = file.stem[:12]
        chat.ask(f"/context restore {begun}", "in place of the old context.")
        assert f"Restored session {file.stem}: 4 messages" in chat.words()
        assert home.seen() == saved
        chat.say(f"/context restore {begun}")
        chat.await_text("in place of the old context.", times=2)
        chat.await_line(PROMPT)
        assert home.seen() == saved
        chat.ask("/undo", "Undone: restored session, 4 messages")
        assert home.seen() == saved
        chat.say("/undo")
        chat.await_text("Undone: restored session, 4 messages", times=2)
        chat.await_line(PROMPT)
        assert home.seen() == fresh
    assert home.sql(LOG) == log


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_silence_saves_a_session_above_a_half_typed_line_and_nothing_is_left_running(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.chat() as chat:
        chat.ask("/settings set idle_minutes 1", "idle_minutes is now 1")
        chat.ask("I am tired", "tired")
        chat.type("half a li")
        chat.await_text("Saved session ", 90)
        chat.await_line(f"{PROMPT} half a li")
        chat.watch(70)
        assert chat.screen_text().count("Saved session ") == 1
        chat.press("ctrl-c")
        chat.say("/quit")
        assert chat.await_end() == 0
    assert home.sql("SELECT trigger, message_count FROM sessions") == [("idle", 2)]
