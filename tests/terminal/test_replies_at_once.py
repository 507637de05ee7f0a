"""Replies in the background, from the keyboard of the real program; their provider ends them when it is told to."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.mock_provider import MockProvider
from tests.slow_provider import SlowProvider, slow
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import editor


@pytest.fixture
def provider() -> Iterator[SlowProvider]:
    with slow() as running:
        yield running


def in_threads(home: Home) -> list[list[str]]:
    rows = home.sql("SELECT thread_id || ' ' || content FROM messages ORDER BY id")
    numbers = sorted({row.split(" ", 1)[0] for row in rows})
    return [[row.split(" ", 1)[1] for row in rows if row.startswith(f"{number} ")] for number in numbers]


def told(provider: SlowProvider, word: str) -> list[str]:
    said = [str(message["content"]) for message in provider.request_of(word) if message["role"] == "user"]
    return [text.rsplit("\n", 1)[-1] for text in said]


def begin_one(chat: Terminal) -> None:
    chat.say("one goes on")
    chat.await_text("About one")
    chat.press("ctrl-b")
    chat.await_text("The reply goes on in the background; /thread 1 shows it.")


def test_three_threads_answer_at_once_and_ctrl_c_stops_only_the_one_on_the_screen(
    home: Home, provider: SlowProvider
) -> None:
    with home.chat(**provider.variables) as chat:
        begin_one(chat)
        chat.ask("/bg two is aside", 'Thread #2 answers "two is aside" in the background.')
        chat.ask("/thread new", "Thread #3")
        chat.say("three is here")
        chat.await_text("About three")
        chat.press("ctrl-c")
        chat.await_text("Stopped. The part that arrived is kept")
        chat.await_line(PROMPT)
        assert b"\a" not in chat.drawn
        chat.type("half a li")
        provider.finish("one", "two")
        chat.await_text('The reply to "one goes on" in thread #1 is done; /thread 1 shows it.')
        chat.await_text('The reply to "two is aside" in thread #2 is done; /thread 2 shows it.')
        chat.await_line(f"{PROMPT} half a li")
        chat.press("ctrl-c")
        chat.ask("/thread 1", "About one: all.")
        chat.ask("/thread 2", "About two: all.")
        chat.leave()
    assert in_threads(home) == [
        ["one goes on", "About one: all."],
        ["two is aside", "About two: all."],
        ["three is here", "About three"],
    ]
    assert [status for _, status in home.replies()] == ["complete", "complete", "interrupted"]
    assert [told(provider, word) for word in ("one", "two", "three")] == [
        ["one goes on"],
        ["two is aside"],
        ["three is here"],
    ]


def test_a_reply_in_the_background_is_followed_again_and_messages_wait_for_it(
    home: Home, provider: SlowProvider
) -> None:
    with home.chat(**provider.variables) as chat:
        begin_one(chat)
        chat.ask("two waits", "Your message waits for the reply in thread #1; /undo takes it back.")
        chat.say("three is taken back")
        chat.await_text("Your message waits for the reply in thread #1", times=2)
        chat.await_line(PROMPT)
        chat.say("/undo")
        chat.await_text("Not sent: three is taken back")
        chat.await_line(f"{PROMPT} three is taken back")
        chat.press("ctrl-c")
        chat.say("/thread 1")
        chat.await_text("Your message: one goes on")
        provider.finish("one", "two")
        chat.await_text("Next, your waiting message: two waits")
        chat.await_text("About two: all.")
        chat.await_line(PROMPT)
    assert in_threads(home) == [["one goes on", "About one: all.", "two waits", "About two: all."]]


def test_after_a_kill_the_next_start_names_the_interrupted_replies_and_offers_what_waited(
    home: Home, provider: SlowProvider
) -> None:
    with home.chat(**provider.variables) as chat:
        begin_one(chat)
        chat.ask("/bg two is aside", "Thread #2 answers")
        chat.until(lambda: len(provider.asked) == 2, "the request of thread 2")
        chat.ask("three waits", "waits for the reply")
        chat.kill(signal.SIGKILL)
    assert (home.run("log").code, home.run("context").code) == (0, 0)
    provider.finish("one", "two", "three")
    names_another = "The reply in thread #2 was interrupted; /retry there asks again."
    with closing(Terminal({**home.environment, **provider.variables})) as chat:
        chat.await_text('The reply to "one goes on" was interrupted; /retry asks again.')
        chat.await_text(names_another)
        chat.await_line(f"{PROMPT} three waits")
        chat.press("ctrl-c")
        chat.await_line(PROMPT)
        chat.ask("/retry", "About one: all.")
        chat.ask("/thread 2", "was interrupted")
        chat.ask("/retry", "About two: all.")
        chat.ask("/thread 1", "Thread #1")
    assert [status for _, status in home.replies()] == ["interrupted", "interrupted", "complete", "complete"]
    with home.chat() as chat:
        chat.await_text("About one: all.")
        assert names_another not in chat.screen_text()


def test_leaving_breaks_off_what_is_running_and_says_so(home: Home, provider: SlowProvider) -> None:
    with home.chat(**provider.variables) as chat:
        chat.ask("/bg one is aside", "Thread #2 answers")
        chat.until(lambda: len(provider.asked) == 1, "the request of thread 2")
        chat.press("ctrl-d")
        chat.await_text("Stopped: 1 reply in thread #2. What has come is kept; /retry asks again.")
        assert chat.await_end() == 0
    assert [status for _, status in home.replies()] == ["interrupted"]


def test_all_replies_that_ended_unseen_are_shown_when_the_user_comes(home: Home, provider: SlowProvider) -> None:
    with home.chat(**provider.variables) as chat:
        begin_one(chat)
        chat.ask("two waits", "waits for the reply")
        chat.ask("/thread new", "Thread #2")
        provider.finish("one", "two")
        chat.await_text('The reply to "two waits" in thread #1 is done')
        chat.say("/thread 1")
        chat.await_text(
            "Your message: one goes on\nAbout one: all.\nNext, your waiting message: two waits\nAbout two: all."
        )
        chat.await_line(PROMPT)


def test_ctrl_c_at_any_moment_of_sending_loses_no_message(home: Home, provider: SlowProvider) -> None:
    with home.chat(**provider.variables) as chat:
        begin_one(chat)
        chat.await_line(PROMPT)
        for number in range(6):
            chat.say(f"message {number}")
            chat.watch(0.01 * number)
            chat.press("ctrl-c")
            chat.until(lambda: chat.bottom_line().endswith("waiting"), "a message that waits")
            chat.say("/undo")
            chat.await_text(f"Not sent: message {number}")
            chat.await_line(f"{PROMPT} message {number}")
            chat.press("ctrl-c")
            chat.await_line(PROMPT)
            chat.until(lambda: not chat.bottom_line().endswith("waiting"), "no message that waits")


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


LONG = "I am " + " ".join(f"word{number}" for number in range(120))  # what ELIZA answers within two or three seconds


def send_to_background(chat: Terminal) -> None:
    chat.say(f"/bg {LONG}")
    chat.await_bottom_line("1 running")


def preambles(home: Home) -> list[str]:
    return home.sql("SELECT preamble FROM messages WHERE role = 'user' ORDER BY id")


def test_a_reply_in_the_background_is_counted_below_told_to_the_model_and_rings(home: Home) -> None:
    with home.chat() as chat:
        assert "running" not in chat.bottom_line()
        send_to_background(chat)
        chat.until(lambda: preambles(home) == [""], "the first question in the log")
        chat.ask("Hello", "What would you like to talk about?")
        chat.await_text("thread #2 is done")
        chat.await_line(PROMPT)
        chat.until(lambda: "running" not in chat.bottom_line(), "an end of the reply below")
        chat.say("Hello again")
        chat.until(lambda: len(preambles(home)) == 3, "the third question in the log")
        assert chat.drawn.count(b"\a") == 1
    first, second, third = preambles(home)
    assert (first, third) == ("", "")
    heading, own, other = second.splitlines()
    assert (heading, own) == (
        "Active threads:",
        "  #1 (this thread): Hello, step 1, 0 s, currently: waiting for the model",
    )
    assert other.startswith("  #2: I am word0 word1 ")


def test_the_end_rings_as_the_setting_says(home: Home) -> None:
    home.run("ask", "/settings set notify osc")
    with home.chat(TMUX="", STY="", VTE_VERSION="") as chat:
        send_to_background(chat)
        chat.await_text("thread #2 is done")
        chat.await_line(PROMPT)
        assert b"\x1b]9;Chorus: The reply to " in chat.drawn
        # The message ends with that character.
        assert chat.drawn.count(b"\a") == 1


def test_in_an_editor_the_bell_rings_at_once_and_the_line_comes_afterwards(home: Home, tmp_path: Path) -> None:
    left = tmp_path / "left"
    visual = editor(tmp_path, f"until [ -e '{left}' ]; do sleep 0.1; done")
    with home.chat(VISUAL=visual) as chat:
        send_to_background(chat)
        chat.press("ctrl-x", "ctrl-e")
        chat.until(lambda: b"\a" in chat.drawn, "the bell")
        assert "is done" not in chat.screen_text()
        left.touch()
        chat.await_text("thread #2 is done")
        chat.await_line(PROMPT)
