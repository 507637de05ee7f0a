"""A model that thinks, in the real program: one calm line meanwhile, and its thoughts where they are asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal.driver import PROMPT, Home
from tests.thinking_provider import ANSWER, THOUGHT_TOKENS, ThinkingProvider, thinking

WHILE_THINKING = "thinking … The user asks for tea. Green is best."
AFTERWARDS = re.compile(rf"^Green tea\.\nthought for [\d.]+ s, {THOUGHT_TOKENS} tokens$", re.MULTILINE)
NOTHING = "No reply in this thread has thoughts."
MANY = 100_000
MOST_BYTES, MOST_KILOBYTES = 200_000, 100_000


@pytest.fixture
def provider() -> Iterator[ThinkingProvider]:
    with thinking() as running:
        yield running


def test_its_newest_words_are_seen_while_a_model_thinks_and_all_of_them_on_request(
    home: Home, provider: ThinkingProvider
) -> None:
    with home.chat(**provider.variables) as chat:
        chat.press("ctrl-t")
        chat.await_text(NOTHING)
        chat.say("Tea?")
        chat.await_text(WHILE_THINKING)
        chat.type("typed meanwhile")
        chat.await_text("typed meanwhile")
        provider.may_answer.set()
        chat.await_line(f"{PROMPT} typed meanwhile")
        assert "thinking" not in chat.screen_text()
        assert AFTERWARDS.search(chat.screen_text())
        chat.press("ctrl-t", "ctrl-c")
        chat.await_line(PROMPT)
        chat.press("ctrl-t")
        chat.await_text("\nThe user asks for tea.\n\nGreen is best.\n")
        assert b"\x1b[2mthought for" in chat.drawn
        chat.await_line(PROMPT)
        chat.press("up")
        chat.await_line(f"{PROMPT} Tea?")
        assert "/thoughts" not in chat.screen_text()
        chat.press("ctrl-c")
        chat.say("/thoughts")
        printed = "\nThe user asks for tea.\n\nGreen is best.\n"
        chat.until(lambda: chat.screen_text().count(printed) == 2, "the thoughts once more")
    assert home.said() == ["Tea?"]


def test_ctrl_c_stops_a_model_that_thinks_and_keeps_what_it_thought(home: Home, provider: ThinkingProvider) -> None:
    with home.chat(**provider.variables) as chat:
        chat.say("Tea?")
        chat.await_text(WHILE_THINKING)
        chat.press("ctrl-c")
        chat.await_text("Stopped before the reply began; /retry asks again.", 2)
        chat.await_line(PROMPT)
        chat.ask("/thoughts", "Green is best.")


def test_a_script_gets_the_reply_alone_and_the_thoughts_as_json(
    home: Home, provider: ThinkingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in provider.variables.items():
        monkeypatch.setenv(name, value)
    provider.may_answer.set()
    assert home.run("ask", "/settings set show_thoughts true").code == 0
    outcome = home.run("ask", "Tea?")
    assert (outcome.output, outcome.errors) == (f"{ANSWER}\n", "")
    told = json.loads(home.run("ask", "--json", "Tea?").output)
    assert (told["reply"], told["thoughts"]) == (ANSWER, "".join(provider.thoughts))
    assert (told["thought_seconds"] >= 0, told["thought_tokens"]) == (True, THOUGHT_TOKENS)
    (line,) = json.loads(home.run("cost", "--json").output)["lines"]
    assert line["reasoning_tokens"] == 2 * THOUGHT_TOKENS
    assert home.run("ask", "/thoughts").output.endswith("\nThe user asks for tea.\n\nGreen is best.\n")


def test_a_very_long_thought_leaves_the_screen_alive_and_is_stored_as_it_comes(
    home: Home, provider: ThinkingProvider
) -> None:
    provider.thoughts = [f" word{number}" for number in range(MANY)]
    with home.chat(**provider.variables) as chat:
        chat.ask("/thoughts", NOTHING)
        drawn, resident = len(chat.drawn), kilobytes(chat.pid)
        chat.say("Tea?")
        chat.await_text("thinking … ")
        for number in range(8):
            chat.type(str(number))
            chat.await_text("01234567"[: number + 1], 5)
        chat.await_text(f" word{MANY - 1}")
        assert home.sql("SELECT status FROM messages WHERE reasoning LIKE ?", f"%word{MANY // 2}%") == ["streaming"]
        assert len(chat.drawn) - drawn < MOST_BYTES
        assert kilobytes(chat.pid) - resident < MOST_KILOBYTES
        chat.press("ctrl-c")
        chat.await_text("Stopped before the reply began; /retry asks again.", 5)


def kilobytes(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0])
