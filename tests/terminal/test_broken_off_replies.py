"""Replies in the background that break off: their threads are killed, or the chat is."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.mock_provider import MockProvider
from tests.slow_provider import SlowProvider, slow
from tests.terminal.driver import Home, Terminal


@pytest.fixture
def provider() -> Iterator[SlowProvider]:
    with slow() as running:
        yield running


def begin_two(chat: Terminal, provider: SlowProvider) -> None:
    """Have two threads answer in the background."""
    chat.say("one goes on")
    chat.await_text("About one")
    chat.press("ctrl-b")
    chat.await_text("goes on in the background")
    chat.ask("/bg two is aside", "Thread #2 answers")
    chat.until(lambda: len(provider.asked) == 2, "the request of thread 2")


@pytest.mark.parametrize(("kind", "cause"), [("disconnect", "connection lost"), ("truncate", "the connection was cut")])
def test_a_reply_that_broke_off_says_how_to_ask_again(
    home: Home, mock_provider: MockProvider, monkeypatch: pytest.MonkeyPatch, kind: str, cause: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{mock_provider.address}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setenv("CHORUS_MODEL", "openai/x")
    fault = {"type": "stream_fault", "kind": kind, "after_chunks": 3}
    kept = f"The reply of openai/x broke off ({cause}). The part that arrived is kept; "
    mock_provider.behave(**fault)
    with home.chat() as chat:
        chat.say("Hello")
        chat.await_text("again.")
        assert f"{kept}/retry asks again." in " ".join(chat.screen_text().split())
    mock_provider.behave(**fault)
    assert home.run("ask", "Hello").errors == f"{kept}chorus ask /retry asks again.\n"
    mock_provider.behave(**fault)
    assert home.run("ask", "--private", "Hello").errors == f"The reply of openai/x broke off ({cause}).\n"


def test_killing_all_threads_breaks_off_both_replies_and_keeps_what_waited(home: Home, provider: SlowProvider) -> None:
    with home.chat(**provider.variables) as chat:
        begin_two(chat, provider)
        chat.ask("three waits", "waits for the reply")
        chat.say("/thread kill all")
        chat.await_text("Close 2 threads of Chorus?")
        chat.ask("y", "2 threads are closed.")
        chat.await_text("1 message that waited there is kept as a draft.")
        assert [status for _, status in home.replies()] == ["interrupted", "interrupted"]
        assert home.said() == ["one goes on", "two is aside"]


def test_after_a_kill_the_next_chat_names_the_thread_once_whatever_ran_before(
    home: Home, provider: SlowProvider
) -> None:
    with home.chat(**provider.variables) as chat:
        begin_two(chat, provider)
        os.kill(chat.pid, signal.SIGKILL)
        assert chat.await_end() == -signal.SIGKILL
    assert home.run("log").code == 0
    assert home.run("context").code == 0
    assert [status for _, status in home.replies()] == ["interrupted", "interrupted"]
    names = "The reply in thread #2 was interrupted; /retry there asks again."
    with home.chat() as chat:
        chat.await_text(names)
    with home.chat() as chat:
        chat.await_text('The reply to "one goes on" was interrupted; /retry asks again.')
        assert names not in chat.screen_text()
