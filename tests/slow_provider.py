"""A provider on loopback that begins every reply at once and ends it when it is told to."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.adapters.models.fault_server import DONE, chunk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 60


@dataclass(slots=True)
class SlowProvider:
    """A running server: its address, and the requests it got, oldest first.

    The reply to a message whose last line begins with ``word`` is ``About word``, and ``: all.`` after it is finished.
    """

    address: str = ""
    asked: list[list[dict[str, Any]]] = field(default_factory=list)
    _may_finish: dict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of a chat that talks to it."""
        return {"OPENAI_BASE_URL": self.address, "OPENAI_API_KEY": "sk-of-nobody", "CHORUS_MODEL": "openai/slow"}

    def finish(self, *words: str) -> None:
        """End the replies to these messages, also those to come."""
        for word in words:
            self._may_finish[word].set()

    def request_of(self, word: str) -> list[dict[str, Any]]:
        """Return the messages of the newest request whose last message begins with ``word``."""
        return next(messages for messages in reversed(self.asked) if _word(messages) == word)

    def wait_for(self, word: str) -> None:
        self._may_finish[word].wait(_PATIENCE_SECONDS)


def _word(messages: list[dict[str, Any]]) -> str:
    return str(messages[-1]["content"]).rsplit("\n", 1)[-1].split()[0]


@contextmanager
def slow() -> Iterator[SlowProvider]:
    """Start the server in threads of this process."""
    provider = SlowProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
            provider.asked.append(messages)
            word = _word(messages)
            with suppress(ConnectionError):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(chunk(f"About {word}"))
                provider.wait_for(word)
                self.wfile.write(chunk(": all.") + chunk(finish_reason="stop") + DONE)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.block_on_close = False
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(_LOOK_SECONDS,), daemon=True).start()
        provider.address = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield provider
        finally:
            server.shutdown()
