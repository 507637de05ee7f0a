"""Two programs in one thread: while one writes a reply, the other waits.

The one that writes is stood for by the lock of its run and by its rows, so that its reply ends when a test says so.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from chorus_cli.storage import file_lock
from tests.terminal.driver import PATIENCE_SECONDS, PROMPT, Home

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
