"""Addresses and keys of model servers, where litellm does not find them by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli.adapters.models import ollama
from chorus_cli.adapters.models.http_question import ip

if TYPE_CHECKING:
    from collections.abc import Mapping

_OLLAMA = ("ollama/", "ollama_chat/")
_OLLAMA_VARIABLES = ("OLLAMA_API_BASE", "OLLAMA_HOST")
_SCHEMES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class _Server:
    """The variables that may hold a provider's address, and the address to use if none is set."""

    variables: tuple[str, ...]
    default: str = ""


_SERVERS = {
    "openai": _Server(("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "lm_studio": _Server(("LM_STUDIO_API_BASE",), "http://localhost:1234/v1"),
    "hosted_vllm": _Server(("HOSTED_VLLM_API_BASE",), "http://localhost:8000/v1"),
    "llamafile": _Server(("LLAMAFILE_API_BASE",), "http://127.0.0.1:8080/v1"),
}


def is_ollama(model: str) -> bool:
    """Return whether ``model`` is served by Ollama."""
    return model.startswith(_OLLAMA)


def server_address(model: str, environment: Mapping[str, str]) -> str:
    """Return the address of the server of ``model``; empty if only litellm knows it."""
    if is_ollama(model):
        return ollama.server_address(environment)
    prefix, slash, _ = model.partition("/")
    server = _SERVERS.get(prefix) if slash else None
    if server is None:
        return ""
    named = (environment.get(variable, "").strip() for variable in server.variables)
    return next(filter(None, named), server.default)


def address_problem(model: str, environment: Mapping[str, str]) -> str:
    """Return a sentence if the address set for ``model`` is not a URL, else an empty text."""
    address = server_address(model, environment)
    if not address or address.lower().startswith(_SCHEMES):
        return ""
    variables = _OLLAMA_VARIABLES if is_ollama(model) else _SERVERS[model.partition("/")[0]].variables
    variable = next(variable for variable in variables if environment.get(variable, "").strip())
    return f"The address of {model}, {address}, is not an http:// or https:// URL. Correct {variable}."


def server_key(model: str, environment: Mapping[str, str]) -> str:
    """Return the key that litellm sends to the server of ``model``, or an empty text."""
    provider = "ollama" if is_ollama(model) else model.partition("/")[0]
    return environment.get(f"{provider.upper()}_API_KEY", "").strip()


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
