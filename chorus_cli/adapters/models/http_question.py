"""One HTTP request with a strict deadline.

Straight from a socket: no proxy, no redirect, and one deadline for everything, including the name lookup.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_Found = TypeVar("_Found")

SCHEME_PORTS = {"http": 80, "https": 443}

_THIS_MACHINE = {4: "127.0.0.1", 6: "::1"}
# A thousand models make half a megabyte; no answer expected here is longer than this.
_LONGEST_ANSWER_BYTES = 4_000_000
_PIECE_BYTES = 65_536


class Question(NamedTuple):
    """A request: ``path`` is below the server's address, ``body`` is posted as JSON, ``key`` is the API key."""

    path: str
    body: object = None
    key: str = ""


class _Server(NamedTuple):
    """A server's address, taken apart; ``root`` is the path prefix."""

    scheme: str
    host: str
    port: int
    root: str


def within(patience_seconds: float, ask: Callable[[float], _Found]) -> _Found | None:
    """Return the result of ``ask``, which is given the deadline; ``None`` if it fails or takes longer.

    It runs in a thread of its own, because a name lookup cannot be limited otherwise.
    """
    deadline = time.monotonic() + patience_seconds
    found: SimpleQueue[_Found | None] = SimpleQueue()

    def find() -> None:
        try:
            found.put(ask(deadline))
        except (OSError, ValueError, RecursionError):
            # Refused, silent, or another kind of server; or an answer nested too deep.
            found.put(None)

    Thread(target=find, name="question", daemon=True).start()
    with suppress(Empty):
        return found.get(timeout=patience_seconds)
    return None


def json_answer(address: str, question: Question, deadline: float) -> object:
    """Return the JSON answer of the server at ``address``.

    Raises:
        OSError, ValueError, RecursionError: there is no answer in time, or it is not valid JSON.
    """
    server = _server_at(address)
    answer = bytearray()
    with _connection(server, deadline) as connection:
        connection.sendall(_request(server, question))
        while piece := _received(connection, deadline):
            answer += piece
            if len(answer) > _LONGEST_ANSWER_BYTES:
                raise ValueError(len(answer))
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    if head.split(maxsplit=2)[1:2] != [b"200"]:
        raise ValueError(head[:100])
    return json.loads(body)


def connectable(host: str) -> str:
    """Return the host to connect to for a server that listens at ``host``: for 0.0.0.0 or none, this machine."""
    address = ip(host)
    if address is not None and address.is_unspecified:
        return _THIS_MACHINE[address.version]
    return host or _THIS_MACHINE[4]


def ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that ``text`` is, or ``None`` for a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _server_at(address: str) -> _Server:
    parts = urlsplit(address)
    if parts.scheme not in SCHEME_PORTS or not parts.hostname:
        raise ValueError(address)
    port = parts.port or SCHEME_PORTS[parts.scheme]
    return _Server(parts.scheme, connectable(parts.hostname), port, parts.path.rstrip("/"))


def _request(server: _Server, question: Question) -> bytes:
    """Return the request, in HTTP/1.0, because its answers come in one piece and end with the connection."""
    body = b"" if question.body is None else json.dumps(question.body).encode("ascii")
    lines = [
        f"{'POST' if body else 'GET'} {server.root}{question.path} HTTP/1.0",
        f"Host: {server.host}",
        "Accept: application/json",
        "Connection: close",
    ]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if question.key:
        lines.append(f"Authorization: Bearer {question.key}")
    if not all(map(str.isprintable, lines)):
        # A line break in a path or a key would begin another header.
        raise ValueError(question.path)
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _connection(server: _Server, deadline: float) -> socket.socket:
    connection = socket.create_connection((server.host, server.port), timeout=_seconds_left(deadline))
    if server.scheme == "http":
        return connection
    return ssl.create_default_context().wrap_socket(connection, server_hostname=server.host)


def _received(connection: socket.socket, deadline: float) -> bytes:
    connection.settimeout(_seconds_left(deadline))
    return connection.recv(_PIECE_BYTES)


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
