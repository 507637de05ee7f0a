"""A first message that is typed as soon as the prompt is there, against one that is typed a second later."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, figure
from benchmarks.program import A_PROVIDERS_MODEL, CHORUS, SIGN
from benchmarks.pseudo_terminal import PseudoTerminal
from benchmarks.stalling_server import FIRST_WORDS, stalling
from benchmarks.surroundings import isolated, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


GOAL = 1.2
_ROUNDS, _QUICK_ROUNDS = 15, 5
_EARLY_SECONDS, _LATER_SECONDS = 0.2, 1.2


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time Enter → first character of the first message in fresh processes, each with a home of its own."""
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    with stalling() as address:
        # The first pair writes bytecode that is missing.
        pairs = [(_seconds(address, _EARLY_SECONDS), _seconds(address, _LATER_SECONDS)) for _ in range(rounds + 1)][1:]
    yield figure("first message 0.2 s after the prompt → first character", "1 s later", pairs, GOAL)


def _seconds(address: str, pause_seconds: float) -> float:
    provider = {"CHORUS_MODEL": A_PROVIDERS_MODEL, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-of-nobody"}
    # In a home that was used before, the greeting may show the words that are waited for.
    with temporary_folder() as home, PseudoTerminal(CHORUS, isolated(os.environ, home) | provider) as terminal:
        terminal.wait_for_prompt(SIGN)
        time.sleep(pause_seconds)
        begun = time.perf_counter()
        terminal.type(b"\r")
        terminal.wait_for(FIRST_WORDS.encode())
        return time.perf_counter() - begun
