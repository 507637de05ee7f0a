"""Drafts of edits that could not be finished are kept, and named to their user."""

from __future__ import annotations

import os
import shlex
import signal
import warnings
from typing import TYPE_CHECKING

import pexpect
import pytest

from tests.terminal.command import PROGRAM
from tests.terminal.driver import PROMPT, Home
from tests.terminal.edited_talk import FIVE, KEPT, LEFT, MISNAMING, QUESTION, REWORDING, drafts, put_in
from tests.terminal.editors import editor

if TYPE_CHECKING:
    from pathlib import Path


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


def test_what_was_being_edited_when_the_window_closed_or_the_program_died_is_named_at_the_next_start(
    tmp_path: Path, home: Home
) -> None:
    waiting = f'{REWORDING}; trap "" HUP; echo now editing; read answer'
    notice = "An edit that was not used is kept in"
    with home.chat(EDITOR=editor(tmp_path, waiting, waiting)) as chat:
        put_in(home, *FIVE)
        chat.say("/context edit")
        chat.await_text("now editing")
        with home.chat() as other:
            other.await_text("chorus/eliza answers")
            other.press("ctrl-d")
            assert other.await_end() == 0
            assert notice not in other.screen_text()
        assert chat.hang_up() == 128 + signal.SIGHUP
    [hung_up] = drafts(home)
    assert b"A two" in hung_up.read_bytes()

    with home.chat(EDITOR=editor(tmp_path, waiting, waiting)) as chat:
        chat.await_text(notice)
        assert hung_up.name in "".join(chat.screen_text().splitlines())
        chat.say("/context edit")
        chat.await_text("now editing")
        os.kill(chat.pid, signal.SIGKILL)
        assert chat.await_end() == -signal.SIGKILL
    [killed] = drafts(home) - {hung_up}
    assert b"A two" in killed.read_bytes()
    with home.chat() as chat:
        chat.await_text("2 edits that were not used are kept in")
        assert killed.name in "".join(chat.screen_text().splitlines())
    assert home.seen() == [*FIVE]


def test_where_nobody_can_be_asked_the_draft_is_kept_and_named(tmp_path: Path, home: Home) -> None:
    with home.chat() as chat:
        put_in(home, *FIVE)
        chat.press("ctrl-d")
        assert chat.await_end() == 0
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
