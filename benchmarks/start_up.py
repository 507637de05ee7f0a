"""From the start of the process to a prompt that takes a key, against the smallest prompt there is."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from benchmarks.figures import figure
from benchmarks.program import A_PROVIDERS_MODEL, CHORUS, SIGN
from benchmarks.pseudo_terminal import seconds_to_prompt
from benchmarks.surroundings import isolated, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.figures import Figure, Pair

GOAL = 1.4
_ROUNDS, _QUICK_ROUNDS = 21, 7
_TINY = [sys.executable, "-m", "benchmarks.tiny_repl"]


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time the start with the embedded model, and with a provider's, for which httpx is loaded behind the prompt."""
    with temporary_folder() as home:
        environment = isolated(os.environ, home)
        rounds = _QUICK_ROUNDS if quick else _ROUNDS
        yield figure("spawn → key, ELIZA", "tiny prompt_toolkit REPL", _pairs(environment, rounds), GOAL)
        provider = {**environment, "CHORUS_MODEL": A_PROVIDERS_MODEL}
        yield figure("spawn → key, a provider's model", "tiny prompt_toolkit REPL", _pairs(provider, rounds), GOAL)


def _pairs(environment: Mapping[str, str], rounds: int) -> list[Pair]:
    # The first pair makes the home and writes bytecode that is missing.
    return [_pair(environment) for _ in range(rounds + 1)][1:]


def _pair(environment: Mapping[str, str]) -> Pair:
    return seconds_to_prompt(CHORUS, environment, SIGN), seconds_to_prompt(_TINY, environment, SIGN)
