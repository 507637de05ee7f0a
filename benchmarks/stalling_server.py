"""A local model server that sends the first words of a reply and then nothing, until the client disconnects."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_WORDS = "Once upon a time"
_LOOK_SECONDS = 0.02
_CHOICE = {"index": 0, "delta": {"role": "assistant", "content": FIRST_WORDS}, "finish_reason": None}
_CHUNK = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "stalling", "choices": [_CHOICE]}


class _Handler(BaseHTTPRequestHandler):
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

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def stalling() -> Iterator[str]:
    """Start the server in threads of this process and yield its address as OpenAI's clients want it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        # Open connections are not waited for at the end.
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, args=(_LOOK_SECONDS,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
