"""Addresses and keys of model servers: Ollama's, and those of the table of providers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli.models.providers import ollama
from chorus_cli.models.providers.http_question import ip
from chorus_cli.models.providers.providers import PROVIDERS, address_variable, base_address, named, provider_key

if TYPE_CHECKING:
    from collections.abc import Mapping

_OLLAMA = ("ollama/", "ollama_chat/")
_OLLAMA_VARIABLES = ("OLLAMA_API_BASE", "OLLAMA_HOST")
_SCHEMES = ("http", "https")


def is_ollama(model: str) -> bool:
    """Return whether ``model`` is served by Ollama."""
    return model.startswith(_OLLAMA)


def request_address(model: str, environment: Mapping[str, str]) -> str:
    """Return the address that the user has set for ``model``, or a local server's; empty for a provider's own."""
    if is_ollama(model):
        return ollama.server_address(environment)
    prefix = named(model).provider
    if not prefix or not (PROVIDERS[prefix].is_local or address_variable(prefix, environment)):
        return ""
    return base_address(prefix, environment)


def server_address(model: str, environment: Mapping[str, str]) -> str:
    """Return the address of a server of any make that serves ``model``; empty for a known provider, also by a proxy."""
    prefix = named(model).provider
    is_of_any_make = is_ollama(model) or prefix == "openai" or (bool(prefix) and PROVIDERS[prefix].is_local)
    return request_address(model, environment) if is_of_any_make else ""


def request_problem(model: str, environment: Mapping[str, str]) -> str:
    """Return a sentence if the address or the key set for ``model`` makes a request impossible, else an empty text."""
    return address_problem(model, environment) or key_problem(model, environment)


def address_problem(model: str, environment: Mapping[str, str]) -> str:
    """Return a sentence if the address set for ``model`` is not a URL, else an empty text."""
    address = request_address(model, environment)
    if not address or _is_url(address):
        return ""
    if is_ollama(model):
        variable = next(variable for variable in _OLLAMA_VARIABLES if environment.get(variable, "").strip())
    else:
        variable = address_variable(named(model).provider, environment)
        address = environment[variable].strip()
    return f"The address of {model}, {address}, is not an http:// or https:// URL. Correct {variable}."


def key_problem(model: str, environment: Mapping[str, str]) -> str:
    """Return a sentence if the key set for ``model`` has characters that no header may have, else an empty text."""
    prefix = named(model).provider
    key = provider_key(prefix, environment) if prefix else ""
    if key.isascii() and key.isprintable():
        return ""
    variable = next(name for name in PROVIDERS[prefix].key_variables if environment.get(name, "").strip())
    return f"The key for {model} has characters that no key has, so it cannot be sent. Set {variable} again."


def server_key(model: str, environment: Mapping[str, str]) -> str:
    """Return the key that is sent to the server of ``model``, or an empty text."""
    if is_ollama(model):
        return environment.get("OLLAMA_API_KEY", "").strip()
    prefix = named(model).provider
    return provider_key(prefix, environment) if prefix else ""


def is_on_this_machine(address: str) -> bool:
    """Return whether ``address``, with or without a scheme, is on this machine's loopback."""
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    number = ip(host)
    # A server told to listen everywhere is often asked at 0.0.0.0 too, which means this machine.
    return number is not None and (number.is_loopback or number.is_unspecified)


def _is_url(address: str) -> bool:
    """Return whether ``address`` is the URL of a server."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    is_named = parts.scheme in _SCHEMES and bool(parts.hostname) and port != 0
    return is_named and not any(character.isspace() for character in address)
