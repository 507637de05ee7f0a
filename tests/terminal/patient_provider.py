"""A provider on loopback that answers slowly: in the middle of a reply, or before it, it waits until it may go on."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from tests.adapters.models.fault_server import DONE, chunk

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG, LATE = "long", "late"
"""A message with the first is answered with a word and the rest later; one with the second wholly later."""

WORD = "Hm,"
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 60


class PatientProvider:
    """A running server: its address, and ``may_go_on``, which sets free the replies that wait."""

    def __init__(self) -> None:
        self.address = ""
        self.may_go_on = threading.Event()

    def pieces(self, said: str) -> Iterator[bytes]:
        """Yield the pieces of the reply to a message."""
        if LONG in said:
            # litellm holds a piece back until the next one.
            yield chunk(WORD)
            yield chunk(" ")
            yield chunk(" ")
        if LONG in said or LATE in said:
            self.may_go_on.wait(_PATIENCE_SECONDS)
        yield chunk(f"noted: {said.rsplit(maxsplit=1)[-1]}.")
        yield chunk(finish_reason="stop") + DONE


@contextmanager
def patient() -> Iterator[PatientProvider]:
    """Start the server in threads of this process."""
    provider = PatientProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with suppress(ConnectionError):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for piece in provider.pieces(str(asked["messages"][-1]["content"])):
                    self.wfile.write(piece)
                    self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        # A client that is still connected in the end is not waited for.
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, args=(_LOOK_SECONDS,), daemon=True).start()
        provider.address = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield provider
        finally:
            provider.may_go_on.set()
            server.shutdown()
