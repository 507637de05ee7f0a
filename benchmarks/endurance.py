"""Ten thousand turns in one run: its last turns, memory and descriptors against those around turn 100.

The window holds the same number of turns all the time, because it slides with the clock. The last turns alternate with
those around turn 100 of a run in a fresh home, so that a slow moment of the machine concerns both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.figures import Figure, figure
from benchmarks.loopback import Quiet, listening
from benchmarks.program import A_PROVIDERS_MODEL
from benchmarks.surroundings import isolated, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GOAL = 1.2
EARLY_TURN = 100
TURNS, _QUICK_TURNS = 10_000, 600
_COMPARED_TURNS = 100
_REPLY = "The ferryman remembered the argument, and the bridge was impossible afterwards. " * 3
_ENDLESS_TALK = (sys.executable, "-m", "benchmarks.endless_talk")


class Stretch(NamedTuple):
    """Some turns: the seconds of each, and the memory and the open descriptors of the process after them."""

    seconds: Sequence[float]
    mebibytes: float
    descriptors: int


class Talk:
    """A running talk, which is told how many turns to take."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def take(self, turns: int) -> Stretch:
        """Take turns.

        Raises:
            RuntimeError: the talk has ended.
        """
        print(turns, file=self._process.stdin, flush=True)
        line = next(iter(self._process.stdout or ()), "")
        if not line:
            raise RuntimeError(f"The talk ended with {self._process.wait()}.")
        return Stretch(**json.loads(line))


def measure(*, quick: bool) -> Iterator[Figure]:
    """Measure one run, and another beside its end."""
    return compare(_QUICK_TURNS if quick else TURNS, _COMPARED_TURNS)


def compare(turns: int, compared: int, early_turn: int = EARLY_TURN) -> Iterator[Figure]:
    """Yield the figures of a run of so many turns, of which the last ones are ``compared``."""
    with serving() as address, talking(address) as long, talking(address) as fresh:
        early = long.take(early_turn)
        long.take(turns - early_turn - compared)
        fresh.take(max(0, early_turn - compared // 2))
        pairs, late = [], early
        for _ in range(compared):
            late = long.take(1)
            pairs.append((late.seconds[0], fresh.take(1).seconds[0]))
    then, now = f"turn {early_turn}", f"turn {turns:,}"
    yield figure(now, then, pairs, GOAL)
    for what, unit, ours, reference in (
        ("memory", "MiB", late.mebibytes, early.mebibytes),
        ("open descriptors", "open", late.descriptors, early.descriptors),
    ):
        yield Figure(f"{what} after {now}", ours, f"after {then}", reference, unit, ours / reference, GOAL)


@contextmanager
def talking(address: str) -> Iterator[Talk]:
    """Start a talk in a home of its own with the model at ``address``; it ends with the context."""
    provider = {"CHORUS_MODEL": A_PROVIDERS_MODEL, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-of-nobody"}
    with temporary_folder() as home:
        environment = isolated(os.environ, home) | provider
        with subprocess.Popen(
            _ENDLESS_TALK, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            yield Talk(process)


class _Handler(Quiet, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Stream a reply of some words."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        body = b"".join(_event({"content": f"{word} "}) for word in _REPLY.split()) + _event({}, "stop")
        body += b"data: [DONE]\n\n"
        self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))


def _event(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n".encode()


@contextmanager
def serving() -> Iterator[str]:
    """Start a model server in threads of this process and yield its address as OpenAI's clients want it."""
    with listening(_Handler) as address:
        yield f"{address}/v1"
