"""Sessions and second thoughts from the keyboard of the real program: the context afterwards, to the message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal.driver import PROMPT, Home, Terminal

LOG = "SELECT id, turn_id, role, content, timestamp, status FROM messages ORDER BY id"
CONTENTS = "SELECT content FROM messages ORDER BY id"


def tell(chat: Terminal, feeling: str) -> None:
    chat.say(f"I am {feeling}")
    chat.await_text(feeling, times=2)
    chat.await_line(PROMPT)


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
        assert f"Restored session {file.stem}: 4 messages" in " ".join(chat.screen_text().split())
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
