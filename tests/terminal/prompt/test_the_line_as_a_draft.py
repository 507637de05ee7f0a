"""The line at the prompt is a draft while it is typed, and comes back to a prompt of its own."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.terminal.command import PROGRAM
from tests.terminal.driver import PROMPT, Home, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

DRAFT = "I am a draft"
HELD_SECONDS = 3.0
GREETING = "chorus/eliza answers"
RETURNED = "The text you had typed when the chat ended is at the prompt again."
PUT_OFF = "The text you had typed when the chat ended comes back once the prompt is empty"
"""The sentence goes on in another row."""

_WAITING = 'while [ ! -e "$0" ]; do sleep 0.02; done; exec "$@"'


def test_the_line_at_the_prompt_outlives_a_kill(home: Home) -> None:
    with home.chat() as chat:
        chat.type(DRAFT)
        chat.until(lambda: home.unsent() == [DRAFT], "a draft")
        os.kill(chat.pid, signal.SIGKILL)
        assert chat.await_end() == -signal.SIGKILL
    with home.chat(f"{PROMPT} {DRAFT}") as chat:
        chat.await_text(RETURNED)
        told = chat.screen_text()
        assert told.index(GREETING) < told.index(RETURNED)
        chat.ask("", "a draft?")
    assert home.said() == [DRAFT]
    assert home.unsent() == []


def test_a_line_that_an_older_chorus_left_in_a_file_is_taken_over(home: Home) -> None:
    folder = home.path / "state" / "drafts"
    folder.mkdir(parents=True)
    for name in ("draft-1-ab-cdefgh12-unsent-chorus.md", "draft-2-ab-cdefgh12-unsent-another.md"):
        (folder / name).write_text(DRAFT)
    with home.chat(f"{PROMPT} {DRAFT}") as chat:
        chat.await_text("1 text not sent or not stored is kept; /rescue shows it.")
        assert ([*folder.iterdir()], home.unsent()) == ([], [DRAFT, DRAFT])


@pytest.mark.parametrize("kept", [pytest.param([DRAFT], marks=pytest.mark.slow), []], ids=["kept", "not yet kept"])
def test_a_line_that_ctrl_c_clears_is_no_draft(home: Home, kept: list[str]) -> None:
    with home.chat() as chat:
        chat.type(DRAFT)
        chat.await_line(f"{PROMPT} {DRAFT}")
        chat.until(lambda: home.unsent() == kept, "a draft")
        chat.press("ctrl-c")
        chat.await_line(PROMPT)
        chat.watch(HELD_SECONDS + 0.5)
        assert home.unsent() == []


def test_the_line_being_typed_stays_the_draft_while_the_history_is_looked_at(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("hello there", "you")
        chat.type(DRAFT)
        chat.await_line(f"{PROMPT} {DRAFT}")
        chat.press("up")
        chat.await_line(f"{PROMPT} hello there")
        chat.until(lambda: bool(home.unsent()), "a draft")
        assert home.unsent() == [DRAFT]


def held(home: Home, **variables: str) -> Terminal:
    """Return a terminal in which the chat does not begin before `let_begin`, however slow the machine is."""
    command = ["sh", "-c", _WAITING, str(home.path.parent / "ready"), *PROGRAM]
    return Terminal({**home.environment, **variables}, command=command)


def let_begin(home: Home) -> None:
    (home.path.parent / "ready").touch()


@pytest.fixture
def early(home: Home) -> Iterator[Terminal]:
    """Start a chat that has a draft; its prompt is still to come."""
    with home.chat() as chat:
        chat.type(DRAFT)
        chat.await_line(f"{PROMPT} {DRAFT}")
        chat.hang_up()
    with closing(held(home)) as chat:
        yield chat


@pytest.mark.parametrize("lines", [["I am early"], ["I am early", "I am too"]])
def test_lines_typed_before_the_prompt_are_sent_without_the_draft_which_comes_after_them(
    home: Home, early: Terminal, lines: list[str]
) -> None:
    for line in lines:
        early.say(line)
    let_begin(home)
    early.await_line(f"{PROMPT} {DRAFT}")
    assert home.said() == lines
    assert early.screen_text().count(RETURNED) == early.screen_text().count(PUT_OFF) == 1
    assert home.unsent() == [DRAFT]
    early.ask("", "a draft?")
    assert home.said() == [*lines, DRAFT]
    assert home.unsent() == []


def test_a_line_begun_before_the_prompt_is_ended_there_and_the_draft_comes_after_it(
    home: Home, early: Terminal
) -> None:
    early.type("I am ea")
    let_begin(home)
    early.await_text(PUT_OFF)
    early.await_line(f"{PROMPT} I am ea")
    told = early.screen_text()
    assert told.index(GREETING) < told.index(PUT_OFF)
    early.say("rly")
    early.await_line(f"{PROMPT} {DRAFT}")
    assert home.said() == ["I am early"]


def test_enter_before_the_prompt_does_not_send_the_draft(home: Home, early: Terminal) -> None:
    early.press("enter")
    let_begin(home)
    early.await_line(f"{PROMPT} {DRAFT}")
    early.watch(0.2)
    early.await_line(f"{PROMPT} {DRAFT}")
    assert home.said() == []


def test_the_greeting_does_not_continue_a_line_typed_before_it(home: Home) -> None:
    with closing(held(home, CHORUS_MODEL="chorus/eliza")) as chat:
        chat.type("half")
        chat.await_text("half")
        let_begin(home)
        chat.await_line(f"{PROMPT} half")
        echoed, greeting, *_ = chat.screen_text().splitlines()
        assert (echoed, greeting.split()[0]) == ("half", "Chorus")
