"""Measures and prints: ``python -m benchmarks [--quick] [--only ROW] [--json] [--talks FILE]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from benchmarks import (
    assembly,
    cache,
    context_edit,
    context_report,
    endurance,
    evidence,
    first_character,
    first_message,
    imports,
    interrupt,
    jobs,
    key_echo,
    long_log,
    memory,
    one_question,
    recall,
    round_trips,
    search,
    start_up,
    streaming,
    streams_at_once,
    syncs,
)
from benchmarks.figures import Figure, Skipped, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class _Row(Protocol):
    def __call__(self, *, quick: bool) -> Iterator[Figure | Skipped]: ...


# Rows that time processes from outside come first: imports and threads of the others would disturb them.
_ROWS: Mapping[str, _Row] = {
    "start-up": start_up.measure,
    "one-question": one_question.measure,
    "syncs": syncs.measure,
    "round-trips": round_trips.measure,
    "first-message": first_message.measure,
    "memory": memory.measure,
    "key-echo": key_echo.measure,
    "interrupt": interrupt.measure,
    "jobs": jobs.measure,
    "streams-at-once": streams_at_once.measure,
    "long-log": long_log.measure,
    "assembly": assembly.measure,
    "recall": recall.measure,
    "context": context_report.measure,
    "context-edit": context_edit.measure,
    "search": search.measure,
    "import": imports.measure,
    "streaming": streaming.measure,
    "first-character": first_character.measure,
    "endurance": endurance.measure,
    "cache": cache.measure,
}


_EVIDENCE = "evidence"


def main(arguments: Sequence[str]) -> None:
    """Measure the rows that were chosen and print them, in the order of the table."""
    chosen = _parser().parse_args(arguments)
    # httpx and litellm would look for a proxy on the way to this machine too.
    os.environ.update(dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"))
    figures: list[Figure | Skipped] = []
    rows = {**_ROWS, _EVIDENCE: lambda **_quick: evidence.measure(chosen.talks)}
    for name in [name for name in rows if not chosen.only or name in chosen.only]:
        print(f"measuring {name} …", file=sys.stderr)
        figures.extend(rows[name](quick=chosen.quick))
    if chosen.json:
        print(json.dumps({"machine": _machine(), "figures": [shown.as_json() for shown in figures]}, indent=2))
    else:
        print(_machine(), table(figures), sep="\n\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Each figure beside its reference.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes")
    parser.add_argument(
        "--only", metavar="ROW", action="append", choices=(*_ROWS, _EVIDENCE), help=", ".join((*_ROWS, _EVIDENCE))
    )
    parser.add_argument("--talks", metavar="FILE", type=Path, help="a file of LoCoMo, for the row evidence")
    parser.add_argument("--json", action="store_true", help="as one JSON value")
    return parser


def _machine() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"


if __name__ == "__main__":
    main(sys.argv[1:])
