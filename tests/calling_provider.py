"""A provider on loopback that answers by a script, tools and all, and keeps every request as it came."""

from __future__ import annotations

import json
import threading
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.adapters.models.fault_server import DONE, chunk, event

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOOK_SECONDS = 0.02


@dataclass(slots=True)
class CallingProvider:
    """A running server: its address, the requests it got, oldest first, and the answers to come.

    Without an answer left it says ``ok``.
    """

    address: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    _script: deque[tuple[int, bytes]] = field(default_factory=deque)

    def say(self, text: str) -> None:
        self._script.append((200, chunk(text) + chunk(finish_reason="stop") + DONE))

    def call(self, *pieces: dict[str, Any], before: str = "", reason: str = "tool_calls") -> None:
        """Enqueue a reply whose calls come in these pieces, a chunk each."""
        words = chunk(before) if before else b""
        chunks = b"".join(call_chunk(piece) for piece in pieces)
        self._script.append((200, words + chunks + chunk(finish_reason=reason) + DONE))

    def refuse(self, status: int, message: str) -> None:
        self._script.append((status, json.dumps({"error": {"message": message}}).encode()))

    def answer(self, body: dict[str, Any]) -> tuple[int, bytes]:
        self.asked.append(body)
        if self._script:
            return self._script.popleft()
        return 200, chunk("ok") + chunk(finish_reason="stop") + DONE


def piece(
    arguments: str | None = None, *, index: int | None = 0, id_: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """Return a piece of a call in the shape of the OpenAI API, without what is ``None``."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    whole = {"index": index, "id": id_, "type": "function" if id_ else None, "function": function}
    return {key: value for key, value in whole.items() if value is not None}


def call_chunk(*pieces: dict[str, Any]) -> bytes:
    """Return one chunk with pieces of calls."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": None, "tool_calls": list(pieces)}}
    return event(
        {
            "id": "1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice | {"finish_reason": None}],
        }
    )


def split_call(name: str, arguments: object, id_: str = "c1", index: int = 0) -> list[dict[str, Any]]:
    """Return a call in as many pieces as its arguments have characters, and one before them."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return [piece("", index=index, id_=id_, name=name), *(piece(sign, index=index) for sign in written)]


@contextmanager
def calling() -> Iterator[CallingProvider]:
    """Start the server in threads of this process."""
    provider = CallingProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = provider.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            with suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

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
            server.shutdown()
