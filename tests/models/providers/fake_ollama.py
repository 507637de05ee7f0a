"""A stand-in for Ollama on loopback, and for any other server at its address."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

from benchmarks import loopback

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

    class Handler(loopback.Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if received is not None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                received.append(Received(self.command, self.path, headers, body))
            with suppress(OSError):
                answer(self.connection, self.path)

        def do_POST(self) -> None:
            self.do_GET()

    with loopback.listening(Handler) as address:
        yield address


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
