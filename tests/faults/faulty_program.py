"""Carries out commands of Chorus that a fault strikes at one of their calls: a kill, or an error of the system."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.terminal.driver import Home

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = Path(__file__).with_name("fault.c")
_COMMAND = (sys.executable, "-m", "tests.faults.warm_program")
_EVER_AFTER = 1 << 30
_PATIENCE_SECONDS = 60.0


class Call(IntFlag):
    """The calls of the system that ``fault.c`` tells apart."""

    WRITE = 1
    SYNC = 2
    TRUNCATE = 4
    RENAME = 8
    LINK = 16
    UNLINK = 32
    CREATE = 64
    MAKE = 128
    OPEN = 256
    OPEN_TO_WRITE = 512


_NAMES = Call.RENAME | Call.LINK | Call.UNLINK | Call.CREATE | Call.MAKE
_CHANGES = Call.WRITE | Call.SYNC | Call.TRUNCATE | _NAMES


class Fault(NamedTuple):
    """A kill (``error`` is 0) or an error, the calls it may strike, and whether it strikes all after the first too."""

    name: str
    error: int
    calls: Call
    lasts: bool = False


FAULTS = (
    Fault("kill", 0, _CHANGES),
    Fault("EIO", errno.EIO, _CHANGES),
    Fault(
        "ENOSPC",
        errno.ENOSPC,
        Call.WRITE | Call.TRUNCATE | Call.CREATE | Call.LINK | Call.MAKE | Call.RENAME,
        lasts=True,
    ),
    Fault("EROFS", errno.EROFS, Call.WRITE | Call.TRUNCATE | _NAMES | Call.OPEN_TO_WRITE, lasts=True),
    Fault("EMFILE", errno.EMFILE, Call.OPEN | Call.CREATE | Call.OPEN_TO_WRITE),
)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended: ``code`` is negative for a signal, and ``struck`` says whether the fault came to pass."""

    code: int | None
    output: str
    errors: str
    counted: int
    struck: int

    @property
    def is_killed(self) -> bool:
        return self.code is not None and self.code < 0


@dataclass(frozen=True, slots=True)
class FaultyProgram:
    """A running process that forks a child for each command."""

    process: subprocess.Popen[str]

    def run(
        self, home: Path, arguments: tuple[str, ...], fault: Fault | None = None, number: int = 1, **variables: str
    ) -> Ending:
        """Carry out a command, the fault striking at the call with this number; no fault strikes never."""
        request = {
            "arguments": arguments,
            "environment": {**Home(home).environment, **variables},
            # Without a fault syncing is no pretence.
            "home": str(home) if fault else "",
            "error": fault.error if fault else 0,
            "first": number,
            "last": (_EVER_AFTER if fault.lasts else number) if fault else 0,
            "calls": int(fault.calls if fault else 0),
            "seconds": _PATIENCE_SECONDS,
        }
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return Ending(**json.loads(self.process.stdout.readline()))


@contextmanager
def faulty_program(folder: Path) -> Iterator[FaultyProgram]:
    """Compile the library into ``folder`` and start the process with it; skip the test where that is impossible."""
    library = _compiled(folder)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    with subprocess.Popen(_COMMAND, stdin=-1, stdout=-1, text=True, env=environment) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        try:
            yield FaultyProgram(process)
        finally:
            process.kill()


def _compiled(folder: Path) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("faults are made by a C library that is preloaded on Linux: gcc is missing")
    library = folder / "fault.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True)
    return library
