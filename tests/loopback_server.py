"""A server on loopback, in threads of this process, that answers what is posted to it."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from benchmarks.loopback import Quiet, listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@contextmanager
def serving(answer: Callable[[dict[str, Any]], tuple[int, Iterable[bytes]]]) -> Iterator[str]:
    """Serve status and pieces of the body that ``answer`` gives for a posted body; yields the address.

    Each piece is sent when it comes. Clients that are still connected in the end are not waited for.
    """

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, pieces = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            with suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
                self.end_headers()
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()

    with listening(Handler) as address:
        yield f"{address}/v1"
