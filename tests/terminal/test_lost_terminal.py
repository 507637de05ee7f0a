"""A terminal that is gone, or belongs to somebody else now, ends the chat; no error is met for ever."""

from __future__ import annotations

import errno
import sys
import termios
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import PersonaError
from chorus_cli.terminal.prompt.keyboard import HANG_UPS
from chorus_cli.terminal.repl import Recurrence
from tests.terminal.driver import FIRST_WORD, LONG_MESSAGE, PROMPT, SHELL_PROMPT, Home

if TYPE_CHECKING:
    from pathlib import Path

# It waits for the chat, dies of Ctrl-C, and the shell takes the terminal back.
WRAPPER = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
subprocess.Popen([sys.executable, "-m", "chorus_cli"]).wait()
"""


def test_a_chat_whose_shell_has_taken_the_terminal_back_ends(home: Home, tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper.py"
    wrapper.write_text(WRAPPER)
    runs = home.path / "state" / "run"
    with home.shell_in_terminal() as shell:
        shell.say(f"{sys.executable} {wrapper}")
        shell.await_line(PROMPT)
        assert len(list(runs.iterdir())) == 1
        shell.say(LONG_MESSAGE)
        shell.await_text(FIRST_WORD, times=2)
        shell.press("ctrl-c")
        shell.await_text(SHELL_PROMPT, times=2)
        shell.until(lambda: not list(runs.iterdir()), "the end of the chat")
        assert "bug" not in shell.screen_text()
    assert not (home.path / "state" / "chorus.log").exists()
    assert [status for _, status in home.replies()] == ["interrupted"]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "gone"), termios.error(errno.EIO, "gone"), PermissionError()])
def test_what_a_terminal_answers_that_is_gone_is_known(error: Exception) -> None:
    assert isinstance(error, HANG_UPS)


def test_the_third_error_of_a_kind_in_a_row_is_not_survived() -> None:
    errors = Recurrence()
    for error in (OSError("a"), PersonaError("b"), OSError("c"), OSError("d")):
        errors.survive(error)
    with pytest.raises(OSError, match="e"):
        errors.survive(OSError("e"))


def test_what_the_user_does_between_errors_makes_them_harmless() -> None:
    errors = Recurrence()
    for _ in range(10):
        errors.survive(PersonaError("again"))
        errors.begin_anew()
