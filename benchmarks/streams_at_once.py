"""Eight replies that stream at once in the background of one chat, 50 tokens a second each.

A key's echo is measured while they stream, against its echo at the idle prompt of the same chat afterwards; each
reply's end, as it stands in the log, against the moment at which the server sent its last token. The CPU time of the
chat meanwhile is printed as it is, beside the seconds that the replies took.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
import time
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, figure
from benchmarks.key_echo import Echo, echoes
from benchmarks.loopback import Quiet, listening
from benchmarks.program import A_PROVIDERS_MODEL, CHORUS, CLEAR_LINE, SIGN
from benchmarks.pseudo_terminal import PseudoTerminal
from benchmarks.surroundings import isolated, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


ECHO_GOAL, LATENESS_GOAL, CPU_GOAL = 5, 1, 1
_REPLIES = 8
_TOKENS_A_SECOND = 50
_SECONDS, _QUICK_SECONDS = 10.0, 4.0
_LATEST_SECONDS = 0.2
_KEYS = 60
_LOOK_SECONDS = 0.02
_ERRANDS_SECONDS = 3.0
_PATIENCE_SECONDS = 60.0
_WHOLE = (
    "SELECT question.content FROM messages AS reply JOIN messages AS question ON question.id = reply.turn_id "
    "WHERE reply.role = 'assistant' AND reply.status = 'complete'"
)
_QUESTION = re.compile(r"story (\d+)")


class Streams:
    """A server on loopback that holds every request until all have come, and then streams its replies at once.

    ``ends`` are the times of the last tokens by the numbers of the questions, in seconds since the epoch.
    """

    def __init__(self, seconds: float) -> None:
        self.address = ""
        self.ends: dict[int, float] = {}
        self.tokens = int(seconds * _TOKENS_A_SECOND)
        self.all_came = threading.Barrier(_REPLIES + 1)

    def wait_until_held(self) -> None:
        """Wait until all requests have come.

        Raises:
            RuntimeError: they never do.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self.all_came.n_waiting < _REPLIES:
            if time.monotonic() > deadline:
                raise RuntimeError(f"Only {self.all_came.n_waiting} of {_REPLIES} replies were asked for.")
            time.sleep(_LOOK_SECONDS)

    def number_of(self, body: bytes) -> int:
        """Return the number of a question."""
        found = _QUESTION.search(str(json.loads(body)["messages"][-1]["content"]))
        return int(found[1]) if found else -1


@contextmanager
def streaming(seconds: float) -> Iterator[Streams]:
    """Start the server in threads of this process."""
    streams = Streams(seconds)

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Stream a reply, each token at its time."""
            number = streams.number_of(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            with suppress(ConnectionError, threading.BrokenBarrierError):
                streams.all_came.wait(_PATIENCE_SECONDS)
                begun = time.monotonic()
                for position in range(streams.tokens):
                    time.sleep(max(0.0, begun + position / _TOKENS_A_SECOND - time.monotonic()))
                    self.wfile.write(_chunk({"content": f" word{position}"}))
                streams.ends[number] = time.time()
                self.wfile.write(_chunk({}, "stop") + _usage(streams.tokens) + b"data: [DONE]\n\n")

    with listening(Handler) as address:
        streams.address = f"{address}/v1"
        try:
            yield streams
        finally:
            streams.all_came.abort()


class _Ends:
    """Notes in seconds since the epoch when the reply to each question was stored whole.

    The log is read only once a reply has been sent whole, because reading delays the writes of the chat.
    """

    def __init__(self, database: Path, streams: Streams) -> None:
        self.stored: dict[int, float] = {}
        self._database = database
        self._streams = streams
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until all replies are stored.

        Raises:
            RuntimeError: they never are.
        """
        self._thread.join(_PATIENCE_SECONDS)
        if len(self.stored) < _REPLIES:
            raise RuntimeError(f"Only {len(self.stored)} of {_REPLIES} replies were stored.")

    def _watch(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self._streams.ends and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        with closing(sqlite3.connect(self._database)) as connection:
            while len(self.stored) < _REPLIES and time.monotonic() < deadline:
                for (question,) in connection.execute(_WHOLE).fetchall():
                    if found := _QUESTION.search(question):
                        self.stored.setdefault(int(found[1]), time.time())
                time.sleep(_LOOK_SECONDS)


def measure(*, quick: bool) -> Iterator[Figure]:
    """Begin eight replies by ``/bg`` in the real program, and type while they stream."""
    seconds = _QUICK_SECONDS if quick else _SECONDS
    with temporary_folder() as home, streaming(seconds) as streams:
        environment = {
            **isolated(os.environ, home),
            "CHORUS_MODEL": A_PROVIDERS_MODEL,
            "OPENAI_API_KEY": "sk-of-nobody",
            "OPENAI_BASE_URL": streams.address,
        }
        with PseudoTerminal(CHORUS, environment) as terminal:
            terminal.wait_for_prompt(SIGN)
            for number in range(_REPLIES):
                terminal.type(CLEAR_LINE + f"/bg Tell me story {number}.\r".encode())
                terminal.wait_for(b"in the background")
                terminal.wait_for_prompt(SIGN)
            ends = _Ends(home / "chorus.db", streams)
            streams.wait_until_held()
            # The imports behind the prompt are over, and the errands of a start.
            time.sleep(_ERRANDS_SECONDS)
            streams.all_came.wait(_PATIENCE_SECONDS)
            cpu_before, until = _cpu_seconds(terminal.process_id), time.monotonic() + seconds - 1
            busy = list(seconds_until(until, echoes(terminal)))
            ends.join()
            cpu = _cpu_seconds(terminal.process_id) - cpu_before
            idle = [echo.seconds for echo in islice(echoes(terminal), _KEYS)]
    late = max(ends.stored[number] - sent for number, sent in streams.ends.items())
    yield figure("key → echo, eight replies streaming", "an idle prompt", [(median(busy), median(idle))], ECHO_GOAL)
    yield figure("last token → reply stored, the latest of eight", "0.2 s", [(late, _LATEST_SECONDS)], LATENESS_GOAL)
    yield figure("CPU of eight replies and the keys", "the time they stream", [(cpu, seconds)], CPU_GOAL)


def seconds_until(moment: float, typed: Iterable[Echo]) -> Iterator[float]:
    """Yield the seconds of the keys that are shown before a moment of the monotonic clock, and of the next one.

    So there is always one, however slow the machine is.
    """
    for echo in typed:
        yield echo.seconds
        if time.monotonic() >= moment:
            return


def _chunk(delta: Mapping[str, str], finish_reason: str | None = None) -> bytes:
    return _event(choices=[{"index": 0, "delta": delta, "finish_reason": finish_reason}])


def _usage(tokens: int) -> bytes:
    """Return the last chunk, which Chorus asks for; litellm would load a vocabulary to estimate a missing usage."""
    return _event(choices=[], usage={"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens})


def _event(choices: Sequence[object], usage: Mapping[str, int] | None = None) -> bytes:
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "streams"}
    return f"data: {json.dumps({**head, 'choices': choices, 'usage': usage})}\n\n".encode()


def _cpu_seconds(process_id: int) -> float:
    """Return the CPU time of a process so far, as Linux tells it."""
    fields = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
