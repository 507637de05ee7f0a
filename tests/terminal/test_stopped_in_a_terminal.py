"""Ctrl-Z and Ctrl-C in the middle of a commit.

At Ctrl-Z the program stops behind it, so that others can write while it is stopped; Ctrl-C is answered before it.
"""

from __future__ import annotations

import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from tests.terminal.command import PROGRAM
from tests.terminal.driver import LONG_MESSAGE, PROMPT, SHELL_PROMPT, Home, Terminal

CHAT = shlex.join(PROGRAM)
REPLY = "Since when are you word0"


def ask_alone(shell: Terminal) -> None:
    """Have the reply written by ``chorus ask``."""
    shell.say(f"{CHAT} ask '{LONG_MESSAGE}'")
    shell.await_text(REPLY)


def ask_in_the_chat(shell: Terminal) -> None:
    """Have the reply written while it is followed in the chat."""
    shell.say(CHAT)
    shell.await_line(PROMPT)
    shell.say(LONG_MESSAGE)
    shell.await_text(REPLY)


def ask_behind_the_prompt(shell: Terminal) -> None:
    """Have the reply written in the background, while the chat is at its prompt."""
    ask_in_the_chat(shell)
    shell.press("ctrl-b")
    shell.await_text("goes on")
    shell.await_line(PROMPT)


@pytest.mark.parametrize("ask", [ask_alone, ask_in_the_chat, ask_behind_the_prompt])
def test_others_write_while_a_program_is_stopped(home: Home, ask: Callable[[Terminal], None]) -> None:
    assert home.run("ask", "hello").code == 0
    with home.shell_in_terminal() as shell:
        ask(shell)
        with reading(home):
            # A reader keeps the program from committing, in the middle of it.
            shell.until(lambda: is_committing(home), "a commit")
            shell.press("ctrl-z")
            shell.watch(0.5)
        shell.await_line(SHELL_PROMPT)
        with closing(sqlite3.connect(home.path / "chorus.db", timeout=0)) as other, other:
            other.execute("INSERT INTO meta VALUES ('written', 'while it is stopped')")
        shell.say("fg")
        shell.until(lambda: home.replies()[-1][1] == "complete", "the end of the reply")
    assert home.sql("SELECT value FROM meta WHERE key = 'written'") == ["while it is stopped"]


def test_ctrl_c_is_answered_before_the_reply_is_stored(home: Home) -> None:
    assert home.run("ask", "hello").code == 0
    with home.shell_in_terminal() as shell:
        ask_in_the_chat(shell)
        with reading(home):
            shell.until(lambda: is_committing(home), "a commit")
            shell.press("ctrl-c")
            shell.await_text("Stopped; the part that arrived is being stored.")
        shell.await_text("Stopped. The part that arrived is kept; /retry asks again.")
    assert home.replies()[-1][1] == "interrupted"


def test_nothing_is_called_kept_that_could_not_be_stored(home: Home) -> None:
    assert home.run("ask", "hello").code == 0
    home.sql(
        "CREATE TRIGGER refused BEFORE UPDATE ON messages WHEN NEW.status = 'interrupted' "
        "BEGIN SELECT RAISE(ABORT, 'not today'); END"
    )
    with home.shell_in_terminal() as shell:
        ask_in_the_chat(shell)
        shell.press("ctrl-c")
        shell.await_text("The text is kept in")
        assert "is kept; /retry" not in shell.screen_text()


@contextmanager
def reading(home: Home) -> Iterator[None]:
    """Hold a transaction that reads, in a process of its own: within a process SQLite shares locks."""
    program = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)\n"
        "c.execute('BEGIN')\n"
        "print(c.execute('SELECT count(*) FROM messages').fetchone(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(home.path / "chorus.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline()
        yield
        assert process.stdin
        process.stdin.close()
        assert process.wait(10) == 0


def is_committing(home: Home) -> bool:
    """Return whether a process that waits for the end of readers keeps new ones away."""
    time.sleep(0.01)
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(home.path / "chorus.db", timeout=0)) as other:
        other.execute("SELECT count(*) FROM messages").fetchone()
        return False
    return True
