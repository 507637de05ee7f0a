"""The memory of a chat after ten turns with a provider's model, against the smallest prompt after ten lines."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

from benchmarks.figures import Figure
from benchmarks.model_server import serving
from benchmarks.program import A_PROVIDERS_MODEL, CHORUS, CLEAR_LINE, SIGN
from benchmarks.pseudo_terminal import PseudoTerminal
from benchmarks.surroundings import isolated, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GOAL = 4
_TURNS = 10
_ERRANDS_SECONDS = 3.0
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 60.0
_KIBIBYTES_PER_MEBIBYTE = 1024
_TINY = [sys.executable, "-m", "benchmarks.tiny_repl"]
_WHOLE = "SELECT count(*) FROM messages WHERE role = 'assistant' AND status = 'complete'"


def measure(*, quick: bool) -> Iterator[Figure]:
    """Measure the resident memory of both once; it is the same each time."""
    del quick
    with temporary_folder() as home, serving(isolated(os.environ, home)) as address:
        environment = {
            **isolated(os.environ, home),
            "CHORUS_MODEL": A_PROVIDERS_MODEL,
            "OPENAI_BASE_URL": address,
            "OPENAI_API_KEY": "sk-of-nobody",
        }
        with PseudoTerminal(CHORUS, environment) as chat:
            chat.wait_for_prompt(SIGN)
            for number in range(_TURNS):
                chat.type(CLEAR_LINE + f"Question {number}, please.\r".encode())
                _wait_for_replies(home / "chorus.db", number + 1)
                chat.wait_for_prompt(SIGN)
            # What a chat does beside its turns is over.
            time.sleep(_ERRANDS_SECONDS)
            ours = resident_mebibytes(chat.process_id)
        with PseudoTerminal(_TINY, environment) as tiny:
            for number in range(_TURNS):
                tiny.wait_for_prompt(SIGN)
                tiny.type(CLEAR_LINE + f"Line {number}.\r".encode())
            tiny.wait_for_prompt(SIGN)
            reference = resident_mebibytes(tiny.process_id)
    yield Figure("memory after ten turns", ours, "tiny prompt_toolkit REPL", reference, "MiB", ours / reference, GOAL)


def resident_mebibytes(process_id: int) -> float:
    """Return the resident memory of a process."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(process_id)], check=True, capture_output=True, text=True)
    return int(told.stdout) / _KIBIBYTES_PER_MEBIBYTE


def _wait_for_replies(database: Path, number: int) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with closing(sqlite3.connect(database)) as connection:
        while connection.execute(_WHOLE).fetchone()[0] < number:
            if time.monotonic() > deadline:
                raise RuntimeError(f"Reply {number} was never stored.")
            time.sleep(_LOOK_SECONDS)
