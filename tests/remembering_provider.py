"""A provider on loopback whose summaries keep every word with an exclamation mark; it fails and waits as it is told."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.adapters.models.fault_server import DONE, chunk
from tests.remembering import summary_of, wants_summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Messages = Sequence[dict[str, Any]]

_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 20


@dataclass(slots=True)
class RememberingProvider:
    """A running server: its address, what it was asked, oldest first, and how it treats whoever wants a summary.

    ``status`` is what that is answered with, and ``is_mute`` makes it an answer without a word. As long as
    ``may_write`` is clear it is kept waiting; ``writes_once`` clears it when a summary was written. The talk is
    answered with the first word of what was said.
    """

    address: str = ""
    asked: list[Messages] = field(default_factory=list)
    status: int = 200
    is_mute: bool = False
    writes_once: bool = False
    may_write: threading.Event = field(default_factory=threading.Event)

    def answer(self, messages: Messages) -> tuple[int, bytes]:
        """Return status and body for a request."""
        self.asked.append(messages)
        said = str(messages[-1]["content"])
        if not is_for_summary(messages):
            return 200, _reply(f"Noted: {said.split(maxsplit=1)[0]}")
        self.may_write.wait(_PATIENCE_SECONDS)
        if self.writes_once:
            self.may_write.clear()
        return self.status, _reply("" if self.is_mute else summary_of(said))


def is_for_summary(messages: Messages) -> bool:
    """Return whether a request is for a summary, and no part of the talk."""
    return wants_summary(str(messages[0]["content"]))


@contextmanager
def remembering() -> Iterator[RememberingProvider]:
    """Start the server in threads of this process."""
    provider = RememberingProvider()
    provider.may_write.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = provider.answer(asked["messages"])
            with suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(body if status == 200 else b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        # Whoever is still connected in the end is not waited for.
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, args=(_LOOK_SECONDS,), daemon=True).start()
        provider.address = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield provider
        finally:
            provider.may_write.set()
            server.shutdown()


def _reply(text: str) -> bytes:
    return chunk(text) + chunk(finish_reason="stop") + DONE
