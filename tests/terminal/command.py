"""The program as a command, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.terminal.forked import PROGRAM, fork_of

__all__ = ["PROGRAM", "Outcome", "await_death", "finished", "is_alive", "signals_heard", "started"]

_HEARD = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP)


@dataclass(frozen=True, slots=True)
class Outcome:
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


def started(
    command: Sequence[str | bytes],
    environment: Mapping[str, str],
    *,
    stdin: int = subprocess.PIPE,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start any command, in ``folder`` if one is given, with its output in pipes that are not buffered."""
    with signals_heard(), warnings.catch_warnings():
        # Newer Pythons warn of forking beside the threads of a test runner.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            bufsize=0,
            preexec_fn=fork_of(command, environment),  # noqa: PLW1509 - the fork is its purpose
        )


def finished(
    command: Sequence[str | bytes], environment: Mapping[str, str], stdin: bytes = b"", folder: Path | None = None
) -> Outcome:
    """Run any command to its end, in ``folder`` if one is given; its output is taken for UTF-8."""
    with started(command, environment, folder=folder) as process:
        try:
            output, errors = process.communicate(stdin, timeout=60)
        except BaseException:
            process.kill()
            raise
    return Outcome(process.returncode, output.decode(), errors.decode())


def await_death(pid: int) -> None:
    deadline = time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < deadline, f"{pid} runs on"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        # The process has ended since the line before, or this system has no such files.
        return not Path("/proc/self/stat").exists()
