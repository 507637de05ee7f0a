"""Texts that the database does not take, as on a full disk: none is lost without a word."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.terminal.driver import LONG_MESSAGE, PROMPT, Home, Terminal

REFUSED = "not today"


@pytest.fixture
def full(home: Home) -> Home:
    """A home whose database takes no text that is not said yet."""
    assert home.run("context").code == 0
    home.sql(f"CREATE TRIGGER full BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END")
    return home


def rescued(home: Home) -> list[tuple[str, str]]:
    """Return role and text of what was kept in files instead."""
    files: list[Path] = sorted((home.path / "state" / "rescue").glob("rescue-*.jsonl"))
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [(record["role"], record["content"]) for record in records]


def said_on(chat: Terminal) -> str:
    return " ".join(chat.screen_text().split())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_what_stands_at_the_prompt_when_a_signal_comes_is_rescued_and_told(full: Home, number: signal.Signals) -> None:
    with full.chat() as chat:
        chat.type("an unfinished text")
        chat.await_line(f"{PROMPT} an unfinished text")
        chat.kill(number)
        assert "What you had typed is kept in" in said_on(chat)
    assert rescued(full) == [("user", "an unfinished text")]
    with full.chat() as chat:
        chat.await_text("/rescue")


def test_that_the_line_being_typed_is_not_kept_is_told_once(full: Home) -> None:
    with full.chat() as chat:
        chat.type("an unfinished text")
        chat.until(lambda: REFUSED in said_on(chat), "the sentence")
        chat.await_line(f"{PROMPT} an unfinished text")
        chat.type(" and more")
        chat.watch(3.5)
        assert said_on(chat).count(REFUSED) == 1
        assert "is lost if the chat is killed" in said_on(chat)


def test_a_message_that_would_have_to_wait_is_at_the_prompt_again(full: Home) -> None:
    # The reply goes on for several seconds, also while a busy machine types.
    message = " ".join([LONG_MESSAGE] * 6)
    with full.chat() as chat:
        chat.say(message)
        chat.await_text("Since when are you word0")
        chat.press("ctrl-b")
        chat.await_text("goes on")
        chat.await_line(PROMPT)
        chat.say("a message that waits")
        chat.until(lambda: "does not wait for the reply, and is at the prompt again" in said_on(chat), "the sentence")
        chat.await_line(f"{PROMPT} a message that waits")
        chat.press("ctrl-c")
        chat.say("/quit")
        assert chat.await_end() == 0
        assert "Not sent" not in said_on(chat)
    assert full.said() == [message]


def test_a_command_that_could_not_store_its_message_is_at_the_prompt_again(home: Home) -> None:
    assert home.run("ask", "hello").code == 0
    home.sql("CREATE TRIGGER refused BEFORE INSERT ON threads BEGIN SELECT RAISE(ABORT, 'not today'); END")
    with home.chat() as chat:
        chat.say("/bg Precious words")
        chat.await_text("not today")
        chat.await_line(f"{PROMPT} /bg Precious words")
        chat.press("ctrl-c")
        chat.ask("/thread new Rome", "not today")
        chat.await_line(PROMPT)
