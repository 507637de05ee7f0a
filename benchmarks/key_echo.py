"""The echo of a key while libraries are imported behind the prompt, against its echo when nothing goes on there.

The import is over, as seen from outside, when the schema of the settings lies in the home: the thread that imports
writes it next, and only where it is missing, so that each process is begun without it. Unlike the CPU time, which
typing uses too, the file tells the very moment, on every system. What else the program begins, two seconds after its
prompt (the idle timer, the search index), counts neither as import nor as silence.

Between two keys there is a short pause: without it typing would slow the import down, and most keys would fall where
they are shown quickly.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import median
from string import ascii_letters
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Pair, figure
from benchmarks.program import A_PROVIDERS_MODEL, CHORUS, CLEAR_LINE, SIGN
from benchmarks.pseudo_terminal import PseudoTerminal
from benchmarks.surroundings import isolated, temporary_folder
from chorus_cli.settings.files import SCHEMA_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


GOAL = 5
_PROCESSES, _QUICK_PROCESSES = 9, 3
_KEYS_AFTERWARDS = 60
_PAUSE_SECONDS = 0.02
_ERRANDS_BEGIN_SECONDS, _ERRANDS_END_SECONDS = 1.9, 3.0
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Echo:
    """How long a key took to be shown, and how long ago the prompt was drawn by then."""

    seconds: float
    age_seconds: float


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time single keys in fresh processes, from the first that the prompt takes."""
    processes = _QUICK_PROCESSES if quick else _PROCESSES
    with temporary_folder() as home:
        environment = {**isolated(os.environ, home), "CHORUS_MODEL": A_PROVIDERS_MODEL}
        # The first pair makes the home and writes bytecode that is missing.
        pairs = [_pair(home, environment) for _ in range(processes + 1)][1:]
    yield figure("key → echo, while libraries are imported", "afterwards", pairs, GOAL)


def _pair(home: Path, environment: Mapping[str, str]) -> Pair:
    """Return the medians over the keys of one process."""
    schema = home / SCHEMA_FILE
    schema.unlink(missing_ok=True)
    with PseudoTerminal(CHORUS, environment) as terminal:
        terminal.wait_for_prompt(SIGN)
        typed = echoes(terminal)
        importing = list(while_missing(schema, typed))
        if not importing:
            raise RuntimeError("Everything was imported before a key could be typed, so there is nothing to compare.")
        for echo in typed:
            if echo.age_seconds > _ERRANDS_END_SECONDS:
                break
        afterwards = [echo.seconds for echo in islice(typed, _KEYS_AFTERWARDS)]
        terminal.type(CLEAR_LINE + b"\x04")
        terminal.wait_for_end()
    return median(importing), median(afterwards)


def while_missing(file: Path, typed: Iterable[Echo]) -> Iterator[float]:
    """Yield the seconds of the keys that are shown before ``file`` appears, but for the time of other errands.

    Raises:
        RuntimeError: it never does.
    """
    for echo in typed:
        if file.exists():
            return
        if echo.age_seconds > _PATIENCE_SECONDS:
            raise RuntimeError(f"{file} was never written, so the end of the import is unknown.")
        if not _ERRANDS_BEGIN_SECONDS < echo.age_seconds < _ERRANDS_END_SECONDS:
            yield echo.seconds


def echoes(terminal: PseudoTerminal) -> Iterator[Echo]:
    """Type a letter whenever one is asked for, on lines that stay short and never are a command."""
    drawn = time.perf_counter()
    for letter in cycle(ascii_letters):
        time.sleep(_PAUSE_SECONDS)
        if letter in "aA":
            # Only what differs is drawn again, and here it does: small and capital lines take turns.
            terminal.seconds_to_show(letter.encode(), CLEAR_LINE)
            continue
        seconds = terminal.seconds_to_show(letter.encode())
        yield Echo(seconds, time.perf_counter() - drawn)
