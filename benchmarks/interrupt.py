"""From Ctrl-C on a reply that has stalled to a prompt that takes a key, against the second that a user may wait."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, figure
from benchmarks.program import A_PROVIDERS_MODEL, CHORUS, CLEAR_LINE, SIGN
from benchmarks.pseudo_terminal import PseudoTerminal
from benchmarks.stalling_server import FIRST_WORDS, stalling
from benchmarks.surroundings import isolated, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


GOAL = 1
_A_SECOND = 1.0
_ROUNDS, _QUICK_ROUNDS = 21, 7
_QUESTION = b"Tell me a story."


def measure(*, quick: bool) -> Iterator[Figure]:
    """Stop one reply after the other in a chat with a provider's model whose server falls silent."""
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    with temporary_folder() as home, stalling() as address:
        environment = {**isolated(os.environ, home), "CHORUS_MODEL": A_PROVIDERS_MODEL, "OPENAI_BASE_URL": address}
        with PseudoTerminal(CHORUS, environment) as terminal:
            terminal.wait_for_prompt(SIGN)
            # The first reply waits for the imports behind the prompt.
            taken = [_seconds(terminal) for _ in range(rounds + 1)][1:]
    yield figure("Ctrl-C on a stalled reply → key", "a second", [(seconds, _A_SECOND) for seconds in taken], GOAL)


def _seconds(terminal: PseudoTerminal) -> float:
    terminal.type(CLEAR_LINE + _QUESTION + b"\r")
    terminal.wait_for(FIRST_WORDS.encode())
    begun = time.perf_counter()
    terminal.type(b"\x03")
    terminal.wait_for_prompt(SIGN)
    return time.perf_counter() - begun
