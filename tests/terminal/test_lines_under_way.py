"""A line that has left the prompt is a draft until it is stored, and no longer."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from pathlib import Path

from tests.terminal.driver import FIRST_WORD, LONG_MESSAGE, PROMPT, Home
from tests.terminal.editors import editor
from tests.terminal.test_costs_in_a_terminal import USAGE

LINE = "I typed this for minutes"


def test_a_message_that_waits_for_an_answer_of_the_user_outlives_a_kill(home: Home) -> None:
    home.run("ask", "I am unhappy")
    home.sql("UPDATE messages SET model = 'gpt-4o-mini', usage = ? WHERE role = 'assistant'", USAGE)
    home.run("ask", "/settings set budget 0.01")
    with home.chat() as chat:
        chat.say(LINE)
        chat.await_text("Ask the model all the same?")
        chat.until(lambda: home.unsent() == [LINE], "a draft")
        chat.kill(signal.SIGKILL)
    with home.chat(f"{PROMPT} {LINE}") as chat:
        chat.press("ctrl-c")
    assert home.said() == ["I am unhappy"]


def test_a_stored_message_does_not_come_back_after_a_kill_during_its_reply(home: Home) -> None:
    with home.chat() as chat:
        chat.type(LONG_MESSAGE)
        chat.until(lambda: home.unsent() == [LONG_MESSAGE], "a draft")
        chat.press("enter")
        chat.await_text(FIRST_WORD, times=2)
        chat.until(lambda: home.unsent() == [], "the end of the draft", seconds=1)
        assert [status for _, status in home.replies()] == ["streaming"]
        chat.kill(signal.SIGKILL)
    assert home.unsent() == []
    assert home.said() == [LONG_MESSAGE]


def test_a_stored_message_does_not_come_back_after_a_kill_before_its_row_is_deleted(home: Home) -> None:
    with home.chat() as chat:
        chat.say(LONG_MESSAGE)
        chat.await_text(FIRST_WORD, times=2)
        chat.kill(signal.SIGKILL)
    for content, is_sent in ((LONG_MESSAGE, 1), ("and this", 0)):
        home.sql(
            "INSERT INTO outbox(run, persona, role, content, is_sent, created_at) "
            "VALUES ('1-ab', 'chorus', 'user', ?, ?, ?)",
            *(content, is_sent, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"),
        )
    with home.chat(f"{PROMPT} and this") as chat:
        chat.await_text("was interrupted; /retry")
        chat.until(lambda: home.unsent() == ["and this"], "the rest as a draft")
        chat.press("ctrl-c")
    assert home.said() == [LONG_MESSAGE]


def test_a_line_stays_a_draft_while_it_is_in_the_editor(home: Home, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with home.chat(EDITOR=editor(tmp_path, f"until [ -e '{seen}' ]; do sleep 0.1; done")) as chat:
        chat.type(LINE)
        chat.until(lambda: home.unsent() == [LINE], "a draft")
        chat.press("ctrl-x", "ctrl-e")
        chat.watch(0.5)
        assert home.unsent() == [LINE]
        seen.touch()
        chat.await_line(f"{PROMPT} {LINE}")
        chat.ask("", "minutes.")
    assert home.unsent() == []


def test_a_line_that_could_not_be_looked_after_is_at_the_prompt_again(home: Home) -> None:
    home.run("ask", "I am unhappy")
    home.run("ask", "/settings set budget 100")
    with home.chat() as chat:
        chat.type(LINE)
        home.sql("ALTER TABLE other_requests RENAME TO elsewhere")
        chat.press("enter")
        chat.await_text("no such table: other_requests")
        chat.await_line(f"{PROMPT} {LINE}")
        chat.press("ctrl-c")
    assert home.said() == ["I am unhappy"]
