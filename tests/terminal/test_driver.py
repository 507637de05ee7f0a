"""The driver starts programs as a terminal does, however the test runner itself was started."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.terminal.command import finished
from tests.terminal.driver import Home, Terminal

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
