"""The driver starts programs as a terminal does, and a fork of the test runner behaves as a program of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.amount import is_thorough
from tests.terminal.command import finished
from tests.terminal.driver import Home, Terminal
from tests.terminal.forked import PROGRAM, fork_of

TOLD = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGTSTP")
TELL = f"import signal; print([name for name in {TOLD} if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN])"
TELLING = (sys.executable, "-c", TELL)


@pytest.fixture(params=[signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def _ignored(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(request.param, signal.SIG_IGN)
    yield
    assert signal.signal(request.param, before) is signal.SIG_IGN


@pytest.mark.usefixtures("_ignored")
def test_a_program_hears_the_signals_that_the_test_runner_ignores(home: Home) -> None:
    assert finished(TELLING, home.environment).output == "[]\n"
    with closing(Terminal(home.environment, command=TELLING)) as terminal:
        assert terminal.await_end() == 0
        assert terminal.screen_text() == "[]"


@pytest.mark.parametrize(
    ("arguments", "typed"),
    [
        (["--version"], b""),
        (["ask", "-c", "I am unhappy"], b""),
        (["ask"], b"\xff\xfe"),
        (["log", "--persona", "gollum"], b""),
    ],
    ids=str,
)
def test_it_ends_as_a_new_interpreter_does(home: Home, tmp_path: Path, arguments: Sequence[str], typed: bytes) -> None:
    command, apart = [*PROGRAM, *arguments], Home(tmp_path / "apart").environment
    expected = subprocess.run(command, env=apart, input=typed, capture_output=True, timeout=60, check=False)
    found = home.run(*arguments, stdin=typed)
    assert (found.code, found.output.encode(), found.errors.encode()) == (
        expected.returncode,
        expected.stdout,
        expected.stderr,
    )


def test_another_program_and_another_interpreter_are_started(home: Home) -> None:
    assert fork_of(["sh", "-c", ":"], home.environment) is None
    assert fork_of(PROGRAM, {**home.environment, "LC_ALL": "C"}) is None
    assert fork_of(PROGRAM, {**home.environment, "PYTHONUTF8": "0"}) is None
    assert (fork_of(PROGRAM, home.environment) is None) == is_thorough()
