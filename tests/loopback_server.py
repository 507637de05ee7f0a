"""A server on loopback, in threads of this process, that answers what is posted to it."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_LOOK_SECONDS = 0.02


@contextmanager
def serving(answer: Callable[[dict[str, Any]], tuple[int, Iterable[bytes]]]) -> Iterator[str]:
    """Serve status and pieces of the body that ``answer`` gives for a posted body; yields the address.

    Each piece is sent when it comes. Clients that are still connected in the end are not waited for.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, pieces = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            with suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
                self.end_headers()
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.block_on_close = False
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(_LOOK_SECONDS,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
