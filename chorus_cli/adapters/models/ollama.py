"""Asks an Ollama on this machine, or wherever its variables point, which models it has and which was used last.

The answer decides which model a first message goes to, so it never takes long, and whatever goes wrong is the same as
no Ollama at all.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from chorus_cli.adapters.models.http_question import SCHEME_PORTS, Question, connectable, ip, json_answer, within

if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE_SECONDS = 0.3

_DEFAULT_ADDRESS = "http://localhost:11434"
_DEFAULT_PORT = 11434
_HIGHEST_PORT = 65_535
_PORT_DIGITS = 5
# litellm's two ways to Ollama: this one takes messages with roles, the other a text to be continued.
_PREFIX = "ollama_chat/"
# Servers older than the list of capabilities let one guess what cannot chat: by the family, or by a name that says so.
_EMBEDDING_FAMILY = "bert"
_EMBEDDING_NAMES = ("embed", "rerank")


class _Listing(NamedTuple):
    """A list that Ollama gives, and the field in it that says which model comes first."""

    path: str
    moment: str


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
    default_port = SCHEME_PORTS.get(scheme, _DEFAULT_PORT) if separator else _DEFAULT_PORT
    place, _, path = rest.partition("/")
    host, port = _host_and_port(place, default_port)
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}/{path}".rstrip("/")


def _host_and_port(place: str, default_port: int) -> tuple[str, int]:
    """Split ``host:port``; an IPv6 address may stand in brackets, and must if a port follows."""
    if ip(place.strip("[]")) is not None:
        return connectable(place.strip("[]")), default_port
    host, _, port = place.rpartition(":") if ":" in place else (place, "", "")
    is_port = port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS and int(port) <= _HIGHEST_PORT
    return connectable(host.strip("[]")), int(port) if is_port else default_port


def _answered(
    environment: Mapping[str, str], patience_seconds: float, listings: tuple[_Listing, ...]
) -> tuple[str, ...]:
    """Return the models of the first listing that has any, or none once the patience is over."""

    def ask(deadline: float) -> tuple[str, ...]:
        address = server_address(environment)
        answers = ((json_answer(address, Question(listing.path), deadline), listing.moment) for listing in listings)
        return next(filter(None, (_names(document, moment) for document, moment in answers)), ())

    return within(patience_seconds, ask) or ()


def _names(document: object, moment: str) -> tuple[str, ...]:
    """Return what a listing names, latest ``moment`` first, without what cannot chat."""
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
