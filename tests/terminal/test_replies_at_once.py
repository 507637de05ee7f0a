"""Threads, forks and sessions from the keyboard, and replies at once, in one program and in two."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.storage import file_lock
from tests.loopback_providers import CallingProvider, SlowProvider, calling, slow
from tests.mock_provider import MockProvider
from tests.terminal.driver import PATIENCE_SECONDS, PROMPT, Home, Terminal
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
    chat.await_text("The reply continues in the background; /thread 1 shows it.")


def test_three_threads_answer_at_once_and_ctrl_c_stops_only_one(
    home: Home, provider: SlowProvider, tmp_path: Path
) -> None:
    begun, left = tmp_path / "begun", tmp_path / "left"
    visual = editor(tmp_path, f"touch '{begun}'; until [ -e '{left}' ]; do sleep 0.02; done")
    with home.chat(**provider.variables, VISUAL=visual) as chat:
        begin_one(chat)
        chat.ask("/bg two is aside", 'Thread #2 answers "two is aside" in the background.')
        chat.ask("/thread new", "Thread #3")
        chat.say("three is here")
        chat.await_text("About three")
        chat.stop("Stopped. The part that arrived is kept")
        assert b"\a" not in chat.drawn
        chat.type("half a li")
        chat.press("ctrl-x", "ctrl-e")
        chat.until(begun.exists, "the editor")
        provider.finish("one")
        chat.until(lambda: chat.drawn.endswith(b"\a"), "the bell")
        assert "is done" not in chat.screen_text()
        left.touch()
        chat.await_text('The reply to "one goes on" in thread #1 is done; /thread 1 shows it.')
        chat.await_line(f"{PROMPT} half a li")
        provider.finish("two")
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


def test_a_reply_in_the_background_is_followed_again_and_waited_for(home: Home, provider: SlowProvider) -> None:
    with home.chat(**provider.variables) as chat:
        begin_one(chat)
        chat.ask("two waits", "Your message will be sent after the reply in thread #1; /undo cancels it.")
        chat.ask("three is taken back", "Your message will be sent after the reply in thread #1", times=2)
        chat.ask("/undo", "Not sent: three is taken back", f"{PROMPT} three is taken back")
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
        chat.ask("three waits", "will be sent after the reply")
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


def test_ctrl_c_at_any_moment_of_sending_loses_no_message(home: Home, provider: SlowProvider) -> None:
    with home.chat(**provider.variables) as chat:
        begin_one(chat)
        chat.await_line(PROMPT)
        for number in range(6):
            chat.say(f"message {number}")
            chat.watch(0.01 * number)
            chat.press("ctrl-c")
            chat.until(lambda: chat.bottom_line().endswith("waiting"), "a message that waits")
            chat.ask("/undo", f"Not sent: message {number}", f"{PROMPT} message {number}")
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
        assert f"{kept}/retry asks again." in chat.words()
    mock_provider.behave(**fault)
    assert home.run("ask", "-c", "Hello").errors == f"{kept}chorus ask --thread 1 /retry asks again.\n"
    mock_provider.behave(**fault)
    assert home.run("ask", "/continue").errors == f"In thread #1.\n{kept}chorus ask --thread 1 /continue asks again.\n"
    mock_provider.behave(**fault)
    assert home.run("ask", "--private", "Hello").errors == f"The reply of openai/x broke off ({cause}).\n"


LONG = "I am " + " ".join(f"word{number}" for number in range(120))  # what ELIZA answers within two or three seconds


def send_to_background(chat: Terminal) -> None:
    chat.say(f"/bg {LONG}")
    chat.await_bottom_line("1 running")


def preambles(home: Home) -> list[str]:
    return home.sql("SELECT preamble FROM messages WHERE role = 'user' ORDER BY id")


def test_a_reply_in_the_background_is_counted_below_told_to_the_model_and_rings(home: Home) -> None:
    assert home.run("ask", "/settings set notify osc").code == 0
    with home.chat(TMUX="", STY="", VTE_VERSION="") as chat:
        assert "running" not in chat.bottom_line()
        send_to_background(chat)
        chat.until(lambda: preambles(home) == [""], "the first question in the log")
        chat.ask("Hello", "What would you like to talk about?")
        chat.await_text("thread #2 is done")
        chat.await_line(PROMPT)
        chat.until(lambda: "running" not in chat.bottom_line(), "an end of the reply below")
        chat.say("Hello again")
        chat.until(lambda: len(preambles(home)) == 3, "the third question in the log")
        # A message for the desktop ends with that character.
        assert (chat.drawn.count(b"\x1b]9;Chorus: The reply to "), chat.drawn.count(b"\a")) == (1, 1)
    first, second, third = preambles(home)
    assert (first, third) == ("", "")
    heading, own, other = second.splitlines()
    assert (heading, own) == (
        "Active threads:",
        "  #1 (this thread): Hello, step 1, 0 s, currently: waiting for the model",
    )
    assert other.startswith("  #2: I am word0 word1 ")


SHARED = "Another Chorus is open in this thread."
SECONDS_FOR_ALL = 1800


@pytest.mark.timeout(SECONDS_FOR_ALL)
@pytest.mark.parametrize("turns", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_two_programs_in_one_thread_answer_every_message_once_and_see_each_other(home: Home, turns: int) -> None:
    with calling() as provider:
        variables = {**provider.environment("openai/x"), "CHORUS_PERSONA": "chorus"}
        with home.chat(**variables) as first:
            first.until(lambda: "1 chorus\n" in open_threads(home), "the thread of the first chat")
            with home.chat(**variables) as second:
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


def open_threads(home: Home) -> list[str]:
    return [path.read_text() for path in (home.path / "state" / "run").iterdir() if path.is_file()]


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


WAITING = "Waiting for the reply in progress in thread #1"
UNHAPPY, ANSWER = "I am unhappy", "That sounds hard. What has made you unhappy?"
OTHER = "1-other"


@contextmanager
def other_writing(home: Home) -> Iterator[None]:
    """Have another Chorus write a reply in thread 1 during the block; it dies at the end unless the reply has ended."""
    assert home.run("ask", "-c", "Hello").code == 0
    with file_lock.hold(home.path / "state" / "run" / OTHER):
        home.say_by_sql("Sent elsewhere", timedelta(seconds=2))
        home.say_by_sql("Half of it", timedelta(seconds=1), role="assistant")
        home.sql(
            "UPDATE messages SET turn_id = 3, run = ?, status = iif(id = 4, 'streaming', status) WHERE id > 2", OTHER
        )
        yield


def end_reply(home: Home) -> None:
    home.sql("UPDATE messages SET status = 'complete', content = 'All of it' WHERE id = 4")


def test_ctrl_c_and_a_signal_take_a_waiting_message_back_to_the_prompt(home: Home) -> None:
    stopped = "Stopped waiting. Nothing was sent; your text is back at the prompt."
    with other_writing(home):
        with home.chat() as chat:
            for number, line in enumerate(("/retry", UNHAPPY), 1):
                chat.say(line)
                chat.await_text(WAITING, times=number)
                chat.await_text("waiting for the other reply … 1 s")
                chat.press("ctrl-c")
                chat.await_text(stopped, times=number)
                chat.await_line(f"{PROMPT} {line}")
                chat.press("ctrl-c")
            chat.say(UNHAPPY)
            chat.await_text(WAITING, times=3)
            chat.kill(signal.SIGTERM)
        assert home.said() == ["Hello", "Sent elsewhere"]
        with home.chat(f"{PROMPT} {UNHAPPY}") as chat:
            end_reply(home)
            chat.ask("", ANSWER)
    assert home.seen()[2:] == ["Sent elsewhere", "All of it", UNHAPPY, ANSWER]


def test_ask_waits_says_so_on_stderr_and_goes_on(home: Home) -> None:
    with (
        other_writing(home),
        home.running("ask", "-c", UNHAPPY) as stopped,
        home.running("ask", "-c", UNHAPPY) as asking,
    ):
        for each in (stopped, asking):
            assert each.stderr
            assert each.stderr.readline().decode() == f"{WAITING} …\n"
        stopped.send_signal(signal.SIGINT)
        assert (stopped.communicate(timeout=PATIENCE_SECONDS), stopped.returncode) == ((b"", b""), 130)
        end_reply(home)
        output, errors = asking.communicate(timeout=PATIENCE_SECONDS)
    assert (asking.returncode, output.decode(), errors) == (0, f"{ANSWER}\n", b"")
    assert home.seen()[2:] == ["Sent elsewhere", "All of it", UNHAPPY, ANSWER]


TIMED = r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d ❯ "


def test_a_thread_is_switched_to_by_title_and_shows_its_last_exchange(home: Home) -> None:
    with home.chat() as terminal:
        terminal.ask("I am in Rome", "Rome")
        terminal.ask("/thread new Supper", "Thread #2: Supper")
        terminal.ask("/thread i am", "Thread #1: I am in Rome")
        shown = terminal.screen_text().partition("Thread #1: I am in Rome")[2]
        assert re.match(rf"\s+{TIMED}I am in Rome\n\S", shown)
        terminal.ask("/thread sup", "Thread #2: Supper", times=2)
        assert "I am in Rome" not in terminal.screen_text().rpartition("Thread #2: Supper")[2]


def test_the_chat_opens_with_the_last_exchange_and_says_if_it_broke_off(home: Home) -> None:
    with home.chat() as terminal:
        terminal.ask("I am here", "here")
        assert not re.search(TIMED, terminal.screen_text())
    with home.chat() as terminal:
        terminal.until(lambda: re.search(rf"{TIMED}I am here\n", terminal.screen_text()) is not None, "the exchange")
        assert re.search(rb"\x1b\[2m\w{3} \d{4}-", terminal.drawn)
        terminal.ask("/new", "--- New conversation ---")
    with home.chat() as terminal:
        terminal.ask("I am back", "back")
        assert not re.search(TIMED, terminal.screen_text())
    home.sql("UPDATE messages SET status = 'truncated' WHERE id = 4")
    with home.chat() as terminal:
        terminal.await_text("[truncated; /retry asks again]")


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_silence_saves_a_session_above_a_half_typed_line_and_nothing_is_left_running(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("/settings set idle_minutes 1", "idle_minutes is now 1")
        chat.ask("I am tired", "tired")
        chat.type("half a li")
        chat.await_text("Saved a session with Chorus after 1 m of silence: Extract", 90)
        chat.await_line(f"{PROMPT} half a li")
        chat.watch(70)
        assert chat.screen_text().count("Saved a session ") == 1
        chat.press("ctrl-c")
        chat.say("/quit")
        assert chat.await_end() == 0
    assert home.sql("SELECT trigger, message_count FROM sessions") == [("idle", 2)]
