"""The program as a command, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

_HEARD = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP)

PROGRAM = (sys.executable, "-m", "chorus_cli")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    code: int
    output: str
    errors: str


@contextmanager
def signals_heard() -> Iterator[None]:
    """Have programs started now hear the signals that the test runner ignores, as it does under ``nohup``.

    A program inherits that a signal is ignored, but not that it is handled, even by doing nothing.
    """
    is_main = threading.current_thread() is threading.main_thread()
    ignored = [number for number in _HEARD if is_main and signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


def finished(command: Sequence[str | bytes], environment: Mapping[str, str], stdin: bytes = b"") -> Outcome:
    """Run any command to its end; its output is taken for UTF-8."""
    with signals_heard():
        done = subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=60, check=False)
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
