"""A pooler of connections in transaction mode, as PgBouncer has: clients take turns with those to the server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_STARTUP_OF_SSL = 80877103
_STARTUP_OF_GSS = 80877104
_READY = b"Z"
_IDLE = b"I"


@contextmanager
def pooling(port: int, user: str, database: str) -> Iterator[int]:
    """Yield a port at which all clients take turns with the one connection to the server at ``port``."""
    with socket.create_server(("127.0.0.1", 0)) as entry, socket.create_connection(("127.0.0.1", port)) as server:
        words = b"".join(word.encode() + b"\0" for word in ("user", user, "database", database, ""))
        server.sendall((len(words) + 8).to_bytes(4, "big") + (196608).to_bytes(4, "big") + words)
        greeting = b"".join(kind + body for kind, body in _until_ready(server) if kind != b"K")
        pool = _Pool(server, greeting)
        threading.Thread(target=pool.let_in, args=(entry,), daemon=True).start()
        yield entry.getsockname()[1]
        entry.shutdown(socket.SHUT_RDWR)


class _Pool:
    def __init__(self, server: socket.socket, greeting: bytes) -> None:
        self._server, self._greeting = server, greeting
        self._taken = threading.Lock()
        self._clients = 0

    def let_in(self, entry: socket.socket) -> None:
        # It ends when the entry is shut.
        with suppress(OSError):
            while True:
                client, _ = entry.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError), client:
            while int.from_bytes((startup := _body(client))[:4], "big") in {_STARTUP_OF_SSL, _STARTUP_OF_GSS}:
                client.sendall(b"N")
            assert startup
            self._clients += 1
            at = self._greeting.rindex(_READY)
            key = b"K" + (12).to_bytes(4, "big") + self._clients.to_bytes(4, "big") + bytes(4)
            client.sendall(self._greeting[:at] + key + self._greeting[at:])
            while True:
                self._serve_transaction(client, *_message(client))

    def _serve_transaction(self, client: socket.socket, kind: bytes, body: bytes) -> None:
        with self._taken:
            while kind != b"X":
                self._server.sendall(kind + body)
                if kind in {b"Q", b"S"}:
                    answer = [*_until_ready(self._server)]
                    client.sendall(b"".join(kind + body for kind, body in answer))
                    if answer[-1][1][4:] == _IDLE:
                        return
                kind, body = _message(client)
        raise EOFError


def _until_ready(server: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    kind = b""
    while kind != _READY:
        kind, body = _message(server)
        yield kind, body


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    """Return the kind of a message, and its length with its body."""
    kind = _read(source, 1)
    length = _read(source, 4)
    return kind, length + _read(source, int.from_bytes(length, "big") - 4)


def _body(source: socket.socket) -> bytes:
    return _read(source, int.from_bytes(_read(source, 4), "big") - 4)


def _read(source: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        if not (part := source.recv(size - len(read))):
            raise EOFError
        read += part
    return read
