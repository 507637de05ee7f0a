"""From the start of the process to a prompt that takes a key, against the smallest prompt there is."""

from __future__ import annotations

import json
import os
import socket
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Pair, Skipped, figure
from benchmarks.program import A_PROVIDERS_MODEL, CHORUS, SIGN
from benchmarks.pseudo_terminal import PseudoTerminal, seconds_to_prompt
from benchmarks.surroundings import isolated, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


GOAL, IMPORT_GOAL = 1.4, 0.65
_ROUNDS, _QUICK_ROUNDS = 21, 7
_SILENT_SERVERS = {f"silent{number}": {"command": sys.executable, "args": ["-c", "input()"]} for number in range(3)}
_TINY = [sys.executable, "-m", "benchmarks.tiny_repl"]


def measure(*, quick: bool) -> Iterator[Figure | Skipped]:
    """Time the start with ELIZA, a provider's model, servers of tools, and a log behind a line that says nothing."""
    with temporary_folder() as home:
        environment = isolated(os.environ, home)
        rounds = _QUICK_ROUNDS if quick else _ROUNDS
        yield figure("spawn → key, ELIZA", "tiny prompt_toolkit REPL", _pairs(environment, rounds), GOAL)
        provider = {**environment, "CHORUS_MODEL": A_PROVIDERS_MODEL}
        yield figure("spawn → key, a provider's model", "tiny prompt_toolkit REPL", _pairs(provider, rounds), GOAL)
        (home / "config.jsonc").write_text(json.dumps({"mcpServers": _SILENT_SERVERS}), encoding="utf-8")
        yield figure("spawn → key, three silent servers", "tiny prompt_toolkit REPL", _pairs(provider, rounds), GOAL)
        (home / "config.jsonc").unlink()
        if find_spec("psycopg") is None:
            yield Skipped("spawn → key, a log on a silent server", "psycopg is missing")
        else:
            with socket.create_server(("127.0.0.1", 0)) as silent:
                log = {**provider, "CHORUS_LOG": f"postgresql://127.0.0.1:{silent.getsockname()[1]}/chorus"}
                pairs = _pairs(log, rounds)
            yield figure("spawn → key, a log on a silent server", "tiny prompt_toolkit REPL", pairs, GOAL)
        pairs = [_import_seconds(environment, home / "imports") for _ in range(rounds + 1)][1:]
        yield figure("imports of our modules before the prompt", "imports of prompt_toolkit's", pairs, IMPORT_GOAL)


def _pairs(environment: Mapping[str, str], rounds: int) -> list[Pair]:
    # The first pair makes the home and writes bytecode that is missing.
    return [_pair(environment) for _ in range(rounds + 1)][1:]


def _pair(environment: Mapping[str, str]) -> Pair:
    return seconds_to_prompt(CHORUS, environment, SIGN), seconds_to_prompt(_TINY, environment, SIGN)


def _import_seconds(environment: Mapping[str, str], report: Path) -> Pair:
    """Return the time that Python reports for the bodies of our modules and of prompt_toolkit's until the prompt."""
    command = ("/bin/sh", "-c", f'exec "$0" "$@" 2>{report}', *CHORUS)
    with PseudoTerminal(command, {**environment, "PYTHONPROFILEIMPORTTIME": "1"}) as terminal:
        terminal.wait_for(SIGN)
        lines = report.read_text(encoding="utf-8").splitlines()
    # Each line: "import time: <microseconds of its own> | <microseconds with its imports> | <name>".
    columns = [line.partition(":")[2].split("|") for line in lines if line.startswith("import time:")]
    seconds = {name.strip(): int(own) / 1e6 for own, _, name in columns if own.strip().isdigit()}
    return _sum_of("chorus_cli", seconds), _sum_of("prompt_toolkit", seconds)


def _sum_of(package: str, seconds: Mapping[str, float]) -> float:
    return sum(each for name, each in seconds.items() if name.partition(".")[0] == package)
