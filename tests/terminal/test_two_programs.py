"""Two programs at once in one thread: both answer every message once, and while one writes a reply, the other waits."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import pytest

from chorus_cli.storage import file_lock
from tests.calling_provider import CallingProvider, calling
from tests.terminal.driver import PATIENCE_SECONDS, PROMPT, Home, Terminal

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


WAITING = "Waiting for the reply in thread #1 that another Chorus is writing"
UNHAPPY, ANSWER = "I am unhappy", "That sounds hard. What has made you unhappy?"
OTHER = "1-other"


@contextmanager
def other_writing(home: Home) -> Iterator[None]:
    """Have another Chorus write a reply in thread 1 during the block; it dies at the end unless the reply has ended."""
    assert home.run("ask", "Hello").code == 0
    with file_lock.hold(home.path / "state" / "run" / OTHER):
        home.say_by_sql("Sent elsewhere", timedelta(seconds=2))
        home.say_by_sql("Half of it", timedelta(seconds=1), role="assistant")
        home.sql(
            "UPDATE messages SET turn_id = 3, run = ?, status = iif(id = 4, 'streaming', status) WHERE id > 2", OTHER
        )
        yield


def end_reply(home: Home) -> None:
    home.sql("UPDATE messages SET status = 'complete', content = 'All of it' WHERE id = 4")


def test_ctrl_c_takes_a_waiting_message_back_to_the_prompt(home: Home) -> None:
    with other_writing(home), home.chat() as chat:
        chat.say(UNHAPPY)
        chat.await_text(WAITING)
        chat.press("ctrl-c")
        chat.await_text("Stopped waiting; nothing was sent, and your text is at the prompt again.")
        chat.await_line(f"{PROMPT} {UNHAPPY}")
        assert home.said() == ["Hello", "Sent elsewhere"]
        end_reply(home)
        chat.press("enter")
        chat.await_text(ANSWER)
        chat.await_line(PROMPT)
    assert home.seen()[2:] == ["Sent elsewhere", "All of it", UNHAPPY, ANSWER]


def test_a_waiting_message_goes_out_when_the_other_reply_has_ended(home: Home) -> None:
    with other_writing(home), home.chat() as chat:
        chat.say(UNHAPPY)
        chat.await_text("waiting for the other reply … 1 s")
        end_reply(home)
        chat.await_text(ANSWER)
        chat.await_line(PROMPT)
        assert chat.screen_text().count(WAITING) == 1
        assert "waiting for the other reply" not in chat.screen_text()


def test_ask_waits_says_so_on_stderr_and_goes_on(home: Home) -> None:
    with other_writing(home), home.running("ask", UNHAPPY) as asking:
        assert asking.stderr
        assert asking.stderr.readline().decode() == f"{WAITING} …\n"
        end_reply(home)
        output, errors = asking.communicate(timeout=PATIENCE_SECONDS)
    assert (asking.returncode, output.decode(), errors) == (0, f"{ANSWER}\n", b"")
    assert home.seen()[2:] == ["Sent elsewhere", "All of it", UNHAPPY, ANSWER]


def test_ctrl_c_ends_an_ask_that_waits_and_stores_nothing(home: Home) -> None:
    with other_writing(home), home.running("ask", UNHAPPY) as asking:
        assert asking.stderr
        assert asking.stderr.readline().decode() == f"{WAITING} …\n"
        asking.send_signal(signal.SIGINT)
        assert asking.communicate(timeout=PATIENCE_SECONDS) == (b"", b"")
        assert asking.returncode == 128 + signal.SIGINT
    assert home.said() == ["Hello", "Sent elsewhere"]


def test_when_the_other_process_dies_the_part_of_its_reply_is_kept_as_interrupted(home: Home) -> None:
    with ExitStack() as ends:
        with other_writing(home):
            process = ends.enter_context(home.running("ask", UNHAPPY))
            assert process.stderr
            assert process.stderr.readline().decode() == f"{WAITING} …\n"
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, output.decode()) == (0, f"{ANSWER}\n")
    assert home.replies()[1:] == [("Half of it", "interrupted"), (ANSWER, "complete")]


def test_what_is_typed_behind_a_message_that_waits_is_a_line_of_its_own_after_a_signal(home: Home) -> None:
    with other_writing(home), home.chat() as chat:
        chat.say(UNHAPPY)
        chat.await_text(WAITING)
        chat.type("and more")
        chat.await_text("and more")
        os.kill(chat.pid, signal.SIGTERM)
        chat.await_end()
    assert "\n".join(home.unsent()) == f"{UNHAPPY}\nand more"
