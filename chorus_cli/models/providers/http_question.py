"""One HTTP request with a strict deadline.

There is no proxy and no redirect, and one deadline for everything, including the name lookup.
"""

from __future__ import annotations

import io
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

    from _typeshed import WriteableBuffer

_Found = TypeVar("_Found")

SCHEME_PORTS = {"http": 80, "https": 443}

_THIS_MACHINE = {4: "127.0.0.1", 6: "::1"}
# A thousand models make half a megabyte; no answer expected here is longer than this.
_LONGEST_ANSWER_BYTES = 4_000_000
_OK = 200


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
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415 - it takes long, and few starts ask

    server = _server_at(address)
    body = None if question.body is None else json.dumps(question.body).encode("ascii")
    with _connection(server, deadline) as connection:
        asking = HTTPConnection(server.host, server.port)
        asking.sock = _Timed(connection, deadline)
        try:
            asking.request("GET" if body is None else "POST", server.root + question.path, body, _headers(question))
            answer = asking.getresponse()
            content = answer.read(_LONGEST_ANSWER_BYTES + 1)
        except HTTPException as error:
            raise ValueError(address) from error
    if answer.status != _OK or len(content) > _LONGEST_ANSWER_BYTES:
        raise ValueError(address)
    return json.loads(content)


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


def _headers(question: Question) -> dict[str, str]:
    headers = {"Accept": "application/json", "Connection": "close"}
    if question.body is not None:
        headers["Content-Type"] = "application/json"
    if question.key:
        if not question.key.isascii():
            raise ValueError("The key is no header.")
        headers["Authorization"] = f"Bearer {question.key}"
    return headers


def _connection(server: _Server, deadline: float) -> socket.socket:
    connection = socket.create_connection((server.host, server.port), timeout=_seconds_left(deadline))
    if server.scheme == "http":
        return connection
    return ssl.create_default_context().wrap_socket(connection, server_hostname=server.host)


class _Timed(io.RawIOBase):
    """A socket for ``http.client``, with one deadline."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        self._connection.settimeout(_seconds_left(self._deadline))
        self._connection.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a file of what arrives, which stays open when the library closes its socket."""
        return io.BufferedReader(_Timed(self._connection, self._deadline))

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Wait for the next piece, and return its length."""
        self._connection.settimeout(_seconds_left(self._deadline))
        return self._connection.recv_into(buffer)


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
