"""Sessions and second thoughts from the keyboard of the real program: the context afterwards, to the message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.terminal.driver import PROMPT, Home, Terminal

UNHAPPY = ("I am unhappy", "That sounds hard. What has made you unhappy?")
LOG = "SELECT id, turn_id, role, content, timestamp, status FROM messages ORDER BY id"
CONTENTS = "SELECT content FROM messages ORDER BY id"


def tell(chat: Terminal, feeling: str) -> None:
    """Say how one feels, and wait for the reply, in which ELIZA repeats it."""
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
        chat.press("ctrl-d")
        assert chat.await_end() == 0
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


def test_what_cannot_be_restored_is_one_sentence_and_changes_nothing(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("/context save", "There is nothing to save")
        chat.ask(*UNHAPPY)
        chat.ask("/context save before", "Saved session")
        [file] = sessions(home).glob("*.json")
        whole = file.read_text()
        document = json.loads(whole)
        sessions(home, "frodo").mkdir()
        (sessions(home, "frodo") / "2020-01-01_ring.json").write_text(
            json.dumps(document | {"session_id": "2020-01-01_ring", "persona": "frodo"})
        )
        chat.ask("/context restore 2020-01-01_ring", "is a session of Frodo, not of Chorus.")
        chat.ask("/context restore 1999", "has no session '1999'")
        file.write_text(whole[: len(whole) // 2])
        chat.ask(f"/context restore {file.stem}", "damaged")
        file.unlink()
        chat.ask("/context history", "is gone.")
        assert "Traceback" not in chat.screen_text()
        assert home.sql("SELECT count(*) FROM operations") == [0]
    assert home.seen() == [*UNHAPPY]


def test_a_retry_taken_back_leaves_one_reply_the_first(home: Home) -> None:
    with home.chat() as chat:
        chat.ask(*UNHAPPY)
        chat.say("/retry")
        chat.await_text("unhappy", times=3)
        chat.await_line(PROMPT)
        first, second = home.sql("SELECT id FROM messages WHERE role = 'assistant' ORDER BY id")
        # What ELIZA says again is told from what it said first.
        home.sql("UPDATE messages SET content = 'Another reply' WHERE id = ?", second)
        assert home.seen() == [UNHAPPY[0], "Another reply"]
        chat.ask("/undo", "Undone: another reply to the last message")
        assert home.seen() == [*UNHAPPY]
        chat.ask("/redo", "Redone: another reply to the last message")
        chat.say("/undo")
        chat.await_text("Undone: another reply to the last message", times=2)
        chat.await_line(PROMPT)
        tell(chat, "tired")
    assert home.seen() == [*UNHAPPY, *home.sql(CONTENTS)[3:]]
    assert home.sql("SELECT id FROM messages WHERE role = 'assistant' ORDER BY id")[:2] == [first, second]


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
