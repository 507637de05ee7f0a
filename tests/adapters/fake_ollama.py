"""A stand-in for an Ollama on loopback, and for whatever else may listen where one is expected."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Answer = Callable[[socket.socket, str], None]

OK = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"


@contextmanager
def listening(answer: Answer) -> Iterator[str]:
    """Give every connection and the path asked for to ``answer``, each in a thread; yield the address."""
    connections: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(4096)
            answer(connection, request.split(b" ")[1].decode())

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connections.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for each in (listener, *connections):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            acceptor.join(timeout=5)


def entry(name: str, moment: str = "", **more: object) -> dict[str, object]:
    """Return a model as both lists of Ollama have it."""
    return {"name": name, "model": name, "expires_at": moment, "modified_at": moment, **more}


def ollama(*, in_memory: object = (), stored: object = (), root: str = "", reply: str = "") -> Answer:
    """Answer as Ollama does: with its lists of models, and whatever is said with ``reply``."""
    lists = {f"{root}/api/ps": in_memory, f"{root}/api/tags": stored}
    said = {"message": {"role": "assistant", "content": reply}, "done": False}
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}

    def answer(connection: socket.socket, path: str) -> None:
        if path == f"{root}/api/chat":
            connection.sendall(
                OK + b"".join(json.dumps({"model": "x", **line}).encode() + b"\n" for line in (said, end))
            )
        else:
            # litellm asks for what a model can do, and takes silence for an answer.
            connection.sendall(OK + json.dumps({"models": lists[path]} if path in lists else {}).encode())

    return answer


def sending(*pieces: bytes, pause_seconds: float = 0, hangs: bool = False) -> Answer:
    """Answer every path with ``pieces``, and keep the connection open if it ``hangs``."""

    def answer(connection: socket.socket, _: str) -> None:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause_seconds)
        if hangs:
            connection.recv(1)

    return answer
