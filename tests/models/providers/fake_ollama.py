"""A stand-in for Ollama on loopback, and for any other server at its address."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

Answer = Callable[[socket.socket, str], None]


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


OK = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"


@contextmanager
def listening(answer: Answer, received: list[Received] | None = None) -> Iterator[str]:
    """Give every connection and its path to ``answer``, in a thread; requests are put into ``received``."""
    connections: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = _request(connection)
            if received is not None:
                received.append(request)
            answer(connection, request.path)

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


def _request(connection: socket.socket) -> Received:
    head, body = b"", b""
    while b"\r\n\r\n" not in head:
        head += _received(connection)
    head, _, body = head.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += _received(connection)
    method, path, _ = first.split(" ")
    return Received(method, path, headers, body)


def _received(connection: socket.socket) -> bytes:
    """Return the next bytes; raise at the end of a connection, which would otherwise be read for ever."""
    piece = connection.recv(4096)
    if not piece:
        raise ConnectionResetError
    return piece


def entry(name: str, moment: str = "", **more: object) -> dict[str, object]:
    """Return a model as both lists of Ollama have it."""
    return {"name": name, "model": name, "expires_at": moment, "modified_at": moment, **more}


def ollama(
    *, in_memory: object = (), stored: object = (), root: str = "", reply: str = "", shown: object = None
) -> Answer:
    """Answer as Ollama does: with its lists of models, the details of one, or ``reply``."""
    documents = {
        f"{root}/api/ps": {"models": in_memory},
        f"{root}/api/tags": {"models": stored},
        f"{root}/api/show": shown,
    }
    said = {"message": {"role": "assistant", "content": reply}, "done": False}
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}

    def answer(connection: socket.socket, path: str) -> None:
        if path == f"{root}/api/chat":
            connection.sendall(
                OK + b"".join(json.dumps({"model": "x", **line}).encode() + b"\n" for line in (said, end))
            )
        else:
            connection.sendall(OK + json.dumps(documents.get(path)).encode())

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
