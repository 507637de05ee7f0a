"""Two chats of one persona at once, in one thread, each with a message at the same time as the other."""

from __future__ import annotations

import pytest

from tests.calling_provider import CallingProvider, calling
from tests.terminal.driver import PROMPT, Home, Terminal

SHARED = "Another Chorus is open in this thread."
SECONDS_FOR_ALL = 1800


@pytest.mark.timeout(SECONDS_FOR_ALL)
@pytest.mark.parametrize("turns", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_two_programs_in_one_thread_answer_every_message_once_and_see_each_other(home: Home, turns: int) -> None:
    with calling() as provider:
        variables = {
            "OPENAI_BASE_URL": provider.address,
            "OPENAI_API_KEY": "sk-invented",
            "CHORUS_MODEL": "openai/x",
            "CHORUS_PERSONA": "chorus",
        }
        with home.chat(**variables) as first, home.chat(**variables) as second:
            second.await_text(SHARED)
            for turn in range(turns):
                first.say(f"first {turn}")
                second.say(f"second {turn}")
                for chat in (first, second):
                    await_reply(chat, turn + 1)
            screens = [first.screen_text(), second.screen_text()]
    assert_each_once(home, turns)
    assert_each_request_holds_all_before(home, provider)
    assert [screen.count(SHARED) for screen in screens] == [1, 1] or turns > 100
    assert not [screen for screen in screens if "database" in screen or "Traceback" in screen]


def await_reply(chat: Terminal, number: int) -> None:
    chat.until(lambda: chat.screen_text().splitlines().count("ok") == number, f"reply {number}")
    chat.await_line(PROMPT)


def assert_each_once(home: Home, turns: int) -> None:
    said = home.said()
    for name in ("first", "second"):
        assert [text for text in said if text.startswith(name)] == [f"{name} {turn}" for turn in range(turns)]
    assert len(said) == 2 * turns
    assert home.sql("SELECT role FROM messages ORDER BY id") == ["user", "assistant"] * (2 * turns)
    assert home.replies() == [("ok", "complete")] * (2 * turns)


def assert_each_request_holds_all_before(home: Home, provider: CallingProvider) -> None:
    said = home.said()
    for position, body in enumerate(provider.asked):
        asked = [message["content"] for message in body["messages"] if message["role"] != "system"]
        assert [text.rpartition("\n")[2] for text in asked[::2]] == said[: position + 1]
        assert asked[1::2] == ["ok"] * position
    assert len(provider.asked) == len(said)
