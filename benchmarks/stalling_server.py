"""A local model server that sends the first words of a reply and then nothing, until the client disconnects."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from benchmarks.loopback import Quiet, listening

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_WORDS = "Once upon a time"
_CHOICE = {"index": 0, "delta": {"role": "assistant", "content": FIRST_WORDS}, "finish_reason": None}
_CHUNK = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "stalling", "choices": [_CHOICE]}


class _Handler(Quiet, BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Answer any request with the first words."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(_CHUNK)}\n\n".encode())
        with suppress(ConnectionError):
            # Nothing comes any more but the end of the connection.
            self.rfile.read(1)


@contextmanager
def stalling() -> Iterator[str]:
    """Start the server in threads of this process and yield its address as OpenAI's clients want it."""
    with listening(_Handler) as address:
        yield f"{address}/v1"
