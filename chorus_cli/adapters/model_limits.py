"""How many tokens a model's context holds, and the address of the server that answers for a model."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli.adapters import ollama
from chorus_cli.core.budget import Limit
from chorus_cli.core.model_choice import ELIZA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.adapters.model_map import ModelMap

DEFAULT_LIMIT_TOKENS = 128_000
LOOPBACK_LIMIT_TOKENS = 8192

_OLLAMA = ("ollama", "ollama_chat")


@dataclass(frozen=True, slots=True)
class _Server:
    """The variables that name a provider's address, and the address that is meant when none is set."""

    variables: tuple[str, ...]
    default: str = ""


_SERVERS = {
    "openai": _Server(("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "lm_studio": _Server(("LM_STUDIO_API_BASE",), "http://localhost:1234/v1"),
    "hosted_vllm": _Server(("HOSTED_VLLM_API_BASE",), "http://localhost:8000/v1"),
    "llamafile": _Server(("LLAMAFILE_API_BASE",), "http://127.0.0.1:8080/v1"),
}


def context_limit(model: str, environment: Mapping[str, str], model_map: ModelMap) -> Limit:
    """Return what ``model``'s context holds, as far as that is known without asking its server."""
    if model == ELIZA:
        return Limit(DEFAULT_LIMIT_TOKENS, "the embedded ELIZA")
    tokens = model_map.limit_tokens(model)
    if tokens is not None:
        return Limit(tokens, "litellm's model map")
    if is_on_this_machine(server_address(model, environment)):
        return Limit(LOOPBACK_LIMIT_TOKENS, "a server on this machine")
    return Limit(DEFAULT_LIMIT_TOKENS, "the default")


def server_address(model: str, environment: Mapping[str, str]) -> str:
    """Return the address of the server that answers for ``model``, or nothing where only litellm knows it."""
    prefix, slash, _ = model.partition("/")
    if slash and prefix in _OLLAMA:
        return ollama.server_address(environment)
    server = _SERVERS.get(prefix) if slash else None
    if server is None:
        return ""
    named = (environment.get(variable, "").strip() for variable in server.variables)
    return next(filter(None, named), server.default)


def is_on_this_machine(address: str) -> bool:
    """Return whether ``address``, with or without a scheme, leads to this machine's own loopback."""
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    # A server told to listen everywhere is often asked at 0.0.0.0 too, which means this machine.
    return ip.is_loopback or ip.is_unspecified
