"""How often one question from the shell, in a thread of its own, waits for the disk: every commit of the log does."""

from __future__ import annotations

import os
import shutil
import subprocess
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Skipped
from benchmarks.model_server import serving
from benchmarks.program import A_PROVIDERS_MODEL, CHORUS
from benchmarks.surroundings import isolated, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

GOAL = 8
_ROUNDS, _QUICK_ROUNDS = 5, 1
_NAME = "chorus ask: waits for the disk"


def measure(*, quick: bool) -> Iterator[Figure | Skipped]:
    """Ask a server in new threads of a log that is there already, and count."""
    with temporary_folder() as home, serving(isolated(os.environ, home)) as address:
        environment = {
            **isolated(os.environ, home),
            "CHORUS_MODEL": A_PROVIDERS_MODEL,
            "OPENAI_BASE_URL": address,
            "OPENAI_API_KEY": "sk-of-nobody",
        }
        ask = (*CHORUS, "ask", "hi")
        try:
            # The first one makes the home.
            counts = [syncs(ask, environment, home) for _ in range(1 + (_QUICK_ROUNDS if quick else _ROUNDS))][1:]
        except (subprocess.SubprocessError, OSError) as error:
            yield Skipped(_NAME, f"the calls of a program cannot be counted: {error}")
            return
    value = median(counts)
    yield Figure(_NAME, value, "one wait", 1, "calls", value, GOAL)


def syncs(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> int:
    """Return how many calls of fsync and fdatasync a program makes, with its threads and children.

    Raises:
        OSError: there is no strace.
        subprocess.SubprocessError: the program failed, or strace may not follow it.
    """
    if not (strace := shutil.which("strace")):
        raise FileNotFoundError("strace is not installed")
    seen = folder / "syncs"
    watch = (strace, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(seen), *command)
    subprocess.run(watch, env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return seen.read_text().count("sync(")
