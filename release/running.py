"""Runs the tools of a release, and says in a sentence what has failed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_PATIENCE_SECONDS = 900
_HERE = {"PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": ""}
"""Variables that would let a tool see this checkout, or leave an environment without bytecode."""


class ReleaseError(Exception):
    """A release cannot be made; the text says why, and what to do. ``output`` is what the failed tool wrote."""

    def __init__(self, sentence: str, output: str = "") -> None:
        super().__init__(sentence)
        self.output = output


def tool(module: str, *arguments: str | Path) -> list[str | Path]:
    """Return the command line of a tool that this Python runs as a module."""
    return [sys.executable, "-m", module, *arguments]


def run(
    step: str, command: Sequence[str | Path], folder: Path | None = None, variables: Mapping[str, str] | None = None
) -> str:
    """Run a command to its end and return its output; ``step`` names it in the sentence of a failure."""
    environment = {name: value for name, value in os.environ.items() if name not in _HERE} | dict(variables or {})
    return run_within(step, command, environment, folder)


def run_within(
    step: str, command: Sequence[str | Path], environment: Mapping[str, str], folder: Path | None = None
) -> str:
    """Run a command that sees the variables of ``environment`` alone."""
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReleaseError(f"{step} failed: {error}") from error
    if ended.returncode:
        output = f"{ended.stdout}\n{ended.stderr}".strip()
        raise ReleaseError(f"{step} failed with exit code {ended.returncode}: {_last_line(output)}", output)
    return ended.stdout


def _last_line(output: str) -> str:
    return output.splitlines()[-1].strip() if output else "it wrote nothing"
