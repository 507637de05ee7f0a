"""One question from the shell: from the start of the process to the first character of the answer.

The references are a script of a few lines, and ``llm``, the best-known program of this kind, in an environment of its
own, made for this row; where it cannot be installed that comparison is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Pair, Skipped, figure
from benchmarks.model_server import serving
from benchmarks.program import A_PROVIDERS_MODEL, CHORUS
from benchmarks.surroundings import isolated, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


SCRIPT_GOAL, LLM_GOAL, OPEN_GOAL = 3, 0.7, 1.05
_ROUNDS, _QUICK_ROUNDS = 21, 7
_INSTALLING_SECONDS = 300
_NAME = "chorus ask: spawn → first character"
_QUESTION = "hi"
_SCRIPT = (sys.executable, "-m", "benchmarks.httpx_script", _QUESTION)
_MODEL_OF_LLM = "loopback"


def measure(*, quick: bool) -> Iterator[Figure | Skipped]:
    """Ask the same server by Chorus and by each reference in turn."""
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    with temporary_folder() as home, serving(isolated(os.environ, home)) as address:
        environment = {
            **isolated(os.environ, home),
            "CHORUS_MODEL": A_PROVIDERS_MODEL,
            "OPENAI_BASE_URL": address,
            "OPENAI_API_KEY": "sk-of-nobody",
        }
        ours = (*CHORUS, "ask", _QUESTION)
        going_on = (*CHORUS, "ask", "-c", _QUESTION)
        yield figure(_NAME, "ask in an open thread", _pairs(ours, going_on, environment, rounds), OPEN_GOAL)
        yield figure(_NAME, "an httpx script", _pairs(ours, _SCRIPT, environment, rounds), SCRIPT_GOAL)
        try:
            llm = installed_llm(home, address)
        except (subprocess.SubprocessError, OSError) as error:
            yield Skipped(f"{_NAME}, against llm", f"llm cannot be installed: {_last_line(error)}")
            return
        environment["LLM_USER_PATH"] = str(home / "llm")
        yield figure(_NAME, "llm", _pairs(ours, llm, environment, rounds), LLM_GOAL)


def seconds_to_first_character(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return how long a program takes from its start until it writes something to its output; it may end by itself.

    Raises:
        RuntimeError: it ended without a word.
    """
    begun = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as program:
        if program.stdout is None or not os.read(program.stdout.fileno(), 1):
            raise RuntimeError(f"{' '.join(command)} wrote nothing.")
        taken = time.perf_counter() - begun
        program.stdout.read()
    return taken


def installed_llm(folder: Path, address: str, package: str = "llm") -> Sequence[str]:
    """Install ``llm`` in an environment of its own, tell it the server, and return the command that asks.

    Raises:
        subprocess.SubprocessError, OSError: it cannot be installed.
    """
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    install = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    subprocess.run(install, check=True, capture_output=True, text=True, timeout=_INSTALLING_SECONDS)
    (folder / "llm").mkdir()
    # JSON is YAML too.
    model = {"model_id": _MODEL_OF_LLM, "model_name": "gpt-4o-mini", "api_base": address}
    (folder / "llm" / "extra-openai-models.yaml").write_text(json.dumps([model]), encoding="utf-8")
    return (str(programs / "llm"), "-m", _MODEL_OF_LLM, _QUESTION)


def _pairs(ours: Sequence[str], reference: Sequence[str], environment: Mapping[str, str], rounds: int) -> list[Pair]:
    # The first pair makes the home and writes bytecode that is missing.
    return [
        (seconds_to_first_character(ours, environment), seconds_to_first_character(reference, environment))
        for _ in range(rounds + 1)
    ][1:]


def _last_line(error: Exception) -> str:
    output = str(getattr(error, "stderr", None) or error)
    return output.strip().splitlines()[-1]
