"""Drafts of edits that could not be finished are kept, and named to their user."""

from __future__ import annotations

import os
import shlex
import signal
import warnings
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from tests.terminal.command import PROGRAM
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.edited_talk import FIVE, KEPT, LEFT, MISNAMING, QUESTION, REWORDING, drafts, flowing, put_in
from tests.terminal.editors import editor


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_the_question_keeps_the_draft_and_names_it(tmp_path: Path, home: Home, number: int) -> None:
    with home.chat(EDITOR=editor(tmp_path, MISNAMING)) as chat:
        put_in(home, *FIVE)
        chat.say("/context edit")
        chat.await_text(f"Edit again? {QUESTION}")
        os.kill(chat.pid, number)
        chat.await_text(LEFT)
        if number == signal.SIGTERM:
            assert chat.await_end() == 128 + signal.SIGTERM
        else:
            chat.await_line(PROMPT)
        [draft] = drafts(home)
        assert f"{draft.name}." in "".join(chat.screen_text().splitlines())


READING = 'echo now editing; read answer; echo "$answer" >> "$file"'
ENDINGS = {
    "by the signal": (f"{REWORDING}; {READING}", KEPT),
    "by the signal, with a mistake": (f"{MISNAMING}; {READING}", KEPT),
    "only when it is killed": (f"{REWORDING}; trap '' TERM HUP; {READING}", KEPT),
    "in order": (f"{REWORDING}; trap 'exit 0' TERM HUP; {READING}", KEPT),
    "without a change": (READING, "Nothing was changed. The draft stays in"),
}


@pytest.mark.parametrize(("script", "says"), ENDINGS.values(), ids=ENDINGS.keys())
def test_a_signal_while_an_editor_is_open_ends_that_and_the_chat_and_keeps_the_draft(
    tmp_path: Path, home: Home, script: str, says: str
) -> None:
    with home.chat(EDITOR=editor(tmp_path, script)) as chat:
        open_editor(chat, home)
        os.kill(chat.pid, signal.SIGTERM)
        assert_ended_with_a_draft(chat, home, signal.SIGTERM, says)


@pytest.mark.parametrize(("send", "number"), [(os.killpg, signal.SIGTERM), (os.kill, signal.SIGHUP)])
def test_nobody_is_asked_whether_to_use_what_was_saved_when_a_signal_came(
    tmp_path: Path, home: Home, send: Callable[[int, int], None], number: int
) -> None:
    with home.chat(EDITOR=editor(tmp_path, f"{MISNAMING}; {READING}")) as chat:
        open_editor(chat, home)
        send(chat.pid, number)
        assert_ended_with_a_draft(chat, home, number, KEPT)


def open_editor(chat: Terminal, home: Home) -> None:
    put_in(home, *FIVE)
    chat.say("/context edit")
    chat.await_text("now editing")


def assert_ended_with_a_draft(chat: Terminal, home: Home, number: int, says: str) -> None:
    assert chat.await_end() == 128 + number
    [draft] = drafts(home)
    assert f"{draft.name}." in "".join(chat.screen_text().splitlines())
    assert says in flowing(chat)
    assert chat.echoes
    assert home.seen() == [*FIVE]


def test_what_was_being_edited_when_the_window_closed_or_the_program_died_is_named_at_the_next_start(
    tmp_path: Path, home: Home
) -> None:
    waiting = f'{REWORDING}; trap "" HUP; echo now editing; read answer'
    notice = "1 unused edit is kept for 7 days in"
    with home.chat(EDITOR=editor(tmp_path, waiting, waiting)) as chat:
        put_in(home, *FIVE)
        chat.say("/context edit")
        chat.await_text("now editing")
        with home.chat() as other:
            other.await_text("chorus/eliza answers")
            other.leave()
            assert notice not in other.screen_text()
        assert chat.hang_up() == 128 + signal.SIGHUP
    [hung_up] = drafts(home)
    assert b"A two" in hung_up.read_bytes()

    with home.chat(EDITOR=editor(tmp_path, waiting, waiting)) as chat:
        chat.await_text(notice)
        names_it = f"{hung_up.name};deleteit"
        chat.until(lambda: names_it in "".join(chat.screen_text().split()), names_it)
        chat.say("/context edit")
        chat.await_text("now editing")
        chat.kill(signal.SIGKILL)
    [killed] = drafts(home) - {hung_up}
    assert b"A two" in killed.read_bytes()
    with home.chat() as chat:
        chat.await_text("2 unused edits are kept for 7 days in")
        chat.until(lambda: killed.name in "".join(chat.screen_text().splitlines()), killed.name)
    assert home.seen() == [*FIVE]


def test_where_nobody_can_be_asked_the_draft_is_kept_and_named(tmp_path: Path, home: Home) -> None:
    with home.chat() as chat:
        put_in(home, *FIVE)
        chat.leave()
    environment = {**home.environment, "EDITOR": editor(tmp_path, MISNAMING)}
    asking = shlex.join([*PROGRAM, "ask", "/context edit"])
    with warnings.catch_warnings():
        # Newer Pythons warn of forking beside the threads of a test runner; the child runs another program at once.
        warnings.simplefilter("ignore", DeprecationWarning)
        told, code = pexpect.run(asking, env=environment, withexitstatus=True, dimensions=(40, 1000))
    [draft] = drafts(home)
    assert code == 1
    assert "nobody here is called 'Humn'" in told.decode()
    assert f"{KEPT} {draft}." in told.decode()
    assert b"Humn" in draft.read_bytes()
