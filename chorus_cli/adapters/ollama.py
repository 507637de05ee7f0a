"""Asks an Ollama on this machine, or wherever its variables point, which models it has and which was used last.

The answer decides which model a first message goes to, so it never takes long: there is one limit for everything, the
look-up of the name included, and whatever goes wrong is the same as no Ollama at all.
"""

from __future__ import annotations

import ipaddress
import json
import time
from datetime import datetime
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeGuard
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

PATIENCE_SECONDS = 0.3

_DEFAULT_ADDRESS = "http://localhost:11434"
_DEFAULT_PORT = 11434
_SCHEME_PORTS = {"http": 80, "https": 443}
_HIGHEST_PORT = 65_535
_PORT_DIGITS = 5
_THIS_MACHINE = {4: "127.0.0.1", 6: "::1"}
# litellm's two ways to Ollama: this one takes messages with roles, the other a text to be continued.
_PREFIX = "ollama_chat/"
# A thousand models make half a megabyte; whoever sends more than this is no Ollama.
_LONGEST_ANSWER_BYTES = 4_000_000
_PIECE_BYTES = 65_536
# Servers older than the list of capabilities let one guess what cannot chat: by the family, or by a name that says so.
_EMBEDDING_FAMILY = "bert"
_EMBEDDING_NAMES = ("embed", "rerank")


class _Listing(NamedTuple):
    """A list that Ollama gives, and the field in it that says which model comes first."""

    path: str
    moment: str


class _Server(NamedTuple):
    """Where Ollama listens; ``root`` is what stands before ``/api`` in its paths."""

    scheme: str
    host: str
    port: int
    root: str


# A model in memory stays there for a fixed time after its last use: what expires last was used last.
_IN_MEMORY = _Listing("/api/ps", "expires_at")
_STORED = _Listing("/api/tags", "modified_at")


def most_recent_model(environment: Mapping[str, str], patience_seconds: float = PATIENCE_SECONDS) -> str | None:
    """Return the model that Ollama used last, as litellm names it, or ``None`` if nobody answers within the patience.

    With none in memory it is the one that was fetched or made last. Models that cannot chat do not count.
    """
    return next(iter(_answered(environment, patience_seconds, (_IN_MEMORY, _STORED))), None)


def models(environment: Mapping[str, str], patience_seconds: float = PATIENCE_SECONDS) -> tuple[str, ...]:
    """Return all models of Ollama that can chat, newest first, as litellm names them; none if nobody answers."""
    return _answered(environment, patience_seconds, (_STORED,))


def server_address(environment: Mapping[str, str]) -> str:
    """Return the address of the Ollama that is meant: ``OLLAMA_API_BASE``, else ``OLLAMA_HOST``, else the usual one.

    litellm reads the first, Ollama itself the second, in forms that are no address yet: ``host``, ``host:port``,
    ``:port``, an IP address, each with or without a scheme. Without one the port is 11434, with one the scheme's own.
    """
    named = environment.get("OLLAMA_API_BASE", "").strip().rstrip("/")
    if named:
        return named
    host = environment.get("OLLAMA_HOST", "").strip().strip("\"'")
    return _address_of(host) if host else _DEFAULT_ADDRESS


def _address_of(text: str) -> str:
    """Return the address that ``OLLAMA_HOST`` means, by the rules of Ollama's own ``envconfig``."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    default_port = _SCHEME_PORTS.get(scheme, _DEFAULT_PORT) if separator else _DEFAULT_PORT
    place, _, path = rest.partition("/")
    host, port = _host_and_port(place, default_port)
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}/{path}".rstrip("/")


def _host_and_port(place: str, default_port: int) -> tuple[str, int]:
    """Split ``host:port``; an IPv6 address may stand in brackets, and must if a port follows."""
    if _ip(place.strip("[]")) is not None:
        return _connectable(place.strip("[]")), default_port
    host, _, port = place.rpartition(":") if ":" in place else (place, "", "")
    is_port = port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS and int(port) <= _HIGHEST_PORT
    return _connectable(host.strip("[]")), int(port) if is_port else default_port


def _connectable(host: str) -> str:
    """Return where to ask a server that listens at ``host``: everywhere, or nowhere in particular, is here."""
    ip = _ip(host)
    if ip is not None and ip.is_unspecified:
        return _THIS_MACHINE[ip.version]
    return host or _THIS_MACHINE[4]


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _answered(
    environment: Mapping[str, str], patience_seconds: float, listings: tuple[_Listing, ...]
) -> tuple[str, ...]:
    """Return the models of the first listing that has any, or none once the patience is over.

    In a thread of its own, because nothing else puts a limit on looking up the name of a server.
    """
    deadline = time.monotonic() + patience_seconds
    answers: SimpleQueue[tuple[str, ...]] = SimpleQueue()

    def ask() -> None:
        answers.put(_first_with_models(environment, listings, deadline))

    Thread(target=ask, name="ollama", daemon=True).start()
    try:
        return answers.get(timeout=patience_seconds)
    except Empty:
        return ()


def _first_with_models(
    environment: Mapping[str, str], listings: tuple[_Listing, ...], deadline: float
) -> tuple[str, ...]:
    try:
        server = _server_at(server_address(environment))
        found = (_names(_body(server, listing.path, deadline), listing.moment) for listing in listings)
        return next(filter(None, found), ())
    except (OSError, ValueError, RecursionError):
        # Refused, silent, or no Ollama; and lists nested too deep to be read.
        return ()


def _server_at(address: str) -> _Server:
    parts = urlsplit(address)
    if parts.scheme not in _SCHEME_PORTS or not parts.hostname:
        raise ValueError(address)
    port = parts.port or _SCHEME_PORTS[parts.scheme]
    return _Server(parts.scheme, _connectable(parts.hostname), port, parts.path.rstrip("/"))


def _body(server: _Server, path: str, deadline: float) -> bytes:
    """Return what the server answers at ``path``, straight from the socket: no proxy, no redirect.

    HTTP/1.0, because its answers come in one piece and end with the connection.
    """
    request = f"GET {server.root}{path} HTTP/1.0\r\nHost: {server.host}\r\nAccept: application/json\r\n\r\n"
    answer = bytearray()
    with _connection(server, deadline) as connection:
        connection.sendall(request.encode("ascii"))
        while piece := _received(connection, deadline):
            answer += piece
            if len(answer) > _LONGEST_ANSWER_BYTES:
                raise ValueError(len(answer))
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    if head.split(maxsplit=2)[1:2] != [b"200"]:
        raise ValueError(head[:100])
    return body


def _connection(server: _Server, deadline: float) -> socket.socket:
    # Only who has neither named a model nor set a key asks an Ollama.
    import socket  # noqa: PLC0415

    connection = socket.create_connection((server.host, server.port), timeout=_seconds_left(deadline))
    if server.scheme == "http":
        return connection
    # Loading it, and the certificates, takes longer than asking over HTTP.
    import ssl  # noqa: PLC0415

    return ssl.create_default_context().wrap_socket(connection, server_hostname=server.host)


def _received(connection: socket.socket, deadline: float) -> bytes:
    connection.settimeout(_seconds_left(deadline))
    return connection.recv(_PIECE_BYTES)


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _names(body: bytes, moment: str) -> tuple[str, ...]:
    """Return what a listing names, latest ``moment`` first, without what cannot chat."""
    document = json.loads(body)
    listed = document.get("models") if isinstance(document, dict) else None
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    entries.sort(key=lambda entry: _seconds(entry.get(moment)), reverse=True)
    named = ((entry.get("model") or entry.get("name"), entry) for entry in entries)
    return tuple(_PREFIX + name for name, entry in named if _is_name(name) and _can_chat(name, entry))


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value != "" and value.isprintable() and " " not in value


def _can_chat(name: str, entry: Mapping[str, object]) -> bool:
    """Return whether the model answers messages, which newer servers say and older ones let one guess."""
    capabilities = entry.get("capabilities")
    if isinstance(capabilities, list) and capabilities:
        return "completion" in capabilities
    details = entry.get("details")
    family = details.get("family") if isinstance(details, dict) else None
    return _EMBEDDING_FAMILY not in str(family) and not any(word in name.casefold() for word in _EMBEDDING_NAMES)


def _seconds(value: object) -> float:
    """Return the moment that a text like ``2026-02-12T09:30:00.123456789+01:00`` names, in seconds since 1970."""
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else 0
    except (ValueError, OverflowError, OSError):
        return 0
