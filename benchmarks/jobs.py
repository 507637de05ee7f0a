"""A job that prints without end: the echo of keys and the memory of the process, against those before it began."""

from __future__ import annotations

import os
import subprocess
import time
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.figures import Figure, figure
from benchmarks.key_echo import echoes
from benchmarks.program import CHORUS, CLEAR_LINE, SIGN
from benchmarks.pseudo_terminal import PseudoTerminal
from benchmarks.surroundings import isolated, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ECHO_GOAL = 5
MEMORY_GOAL = 1.2
_ROUNDS, _QUICK_ROUNDS = 5, 2
_KEYS = 100
_ERRANDS_SECONDS = 3.0
_PRINTING_SECONDS = 3.0


class _State(NamedTuple):
    seconds: float
    megabytes: float


def measure(*, quick: bool) -> Iterator[Figure]:
    """Type in fresh processes, first while nothing goes on and then while a job prints."""
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    with temporary_folder() as home:
        environment = {**isolated(os.environ, home), "CHORUS_MODEL": "chorus/eliza", "SHELL": "/bin/sh"}
        # The first round makes the home and writes bytecode that is missing.
        pairs = [_round(environment) for _ in range(rounds + 1)][1:]
    echo = [(printing.seconds, idle.seconds) for printing, idle in pairs]
    yield figure("key → echo, during /run yes", "idle", echo, ECHO_GOAL)
    yield Figure(
        name="memory after 3 s of /run yes",
        value=median(printing.megabytes for printing, _ in pairs),
        reference="before",
        reference_value=median(idle.megabytes for _, idle in pairs),
        unit="MB",
        pair_ratio=median(printing.megabytes / idle.megabytes for printing, idle in pairs),
        goal=MEMORY_GOAL,
    )


def _round(environment: Mapping[str, str]) -> tuple[_State, _State]:
    """Return the state of one process while a job prints, and that before."""
    with PseudoTerminal(CHORUS, environment) as terminal:
        terminal.wait_for_prompt(SIGN)
        # The commands are loaded, and the errands of a start are over.
        terminal.type(CLEAR_LINE + b"/jobs\r")
        terminal.wait_for(b"No job has run yet.")
        time.sleep(_ERRANDS_SECONDS)
        idle = _state(terminal)
        terminal.type(CLEAR_LINE + b"/run yes\r")
        terminal.wait_for(b"Job #1 is running: yes")
        time.sleep(_PRINTING_SECONDS)
        printing = _state(terminal)
        terminal.type(CLEAR_LINE + b"/jobs kill 1\r")
        terminal.wait_for(b"stopped after")
        terminal.type(CLEAR_LINE + b"\x04")
        terminal.wait_for_end()
    return printing, idle


def _state(terminal: PseudoTerminal) -> _State:
    seconds = median(echo.seconds for echo in islice(echoes(terminal), _KEYS))
    return _State(seconds, _megabytes(terminal.process_id))


def _megabytes(process_id: int) -> float:
    """Return the resident memory of a process."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(process_id)], capture_output=True, text=True, check=True)
    return int(told.stdout) / 1024
