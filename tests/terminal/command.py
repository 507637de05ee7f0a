"""The program as a command, and how it ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PROGRAM = (sys.executable, "-m", "chorus_cli")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    code: int
    output: str
    errors: str


def finished(command: Sequence[str | bytes], environment: Mapping[str, str], stdin: bytes = b"") -> Outcome:
    """Run any command to its end; its output is taken for UTF-8."""
    done = subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=60, check=False)
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
