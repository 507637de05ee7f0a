"""A server on loopback, in threads of this process, that answers what is posted to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from benchmarks.loopback import Quiet, listening


class Asked(NamedTuple):
    """A request as it came; the names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@contextmanager
def runner(answer: Callable[[Asked], tuple[int, Iterable[bytes]]]) -> Iterator[str]:
    """Serve status and pieces of the body that ``answer`` gives for what is posted; yields the address.

    Each piece is sent when it comes. Clients that are still connected in the end are not waited for.
    """

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, pieces = answer(Asked(self.path, headers, body))
            with suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
                self.end_headers()
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()

    with listening(Handler) as address:
        yield address


@contextmanager
def serving(answer: Callable[[dict[str, Any]], tuple[int, Iterable[bytes]]]) -> Iterator[str]:
    """Serve as ``answering`` does what ``answer`` gives for the body alone; yields the address with its version."""
    with runner(lambda asked: answer(asked.body)) as address:
        yield f"{address}/v1"
