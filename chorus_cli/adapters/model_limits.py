"""How many tokens a model's context holds, and the address of the server that answers for a model."""

from __future__ import annotations

import ipaddress
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli.adapters.litellm_library import installation_folder
from chorus_cli.core.budget import Limit
from chorus_cli.core.errors import ModelError
from chorus_cli.core.model_choice import ELIZA

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEFAULT_LIMIT_TOKENS = 128_000
LOOPBACK_LIMIT_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class _Server:
    """The variables that name a provider's address, and the address that is meant when none is set."""

    variables: tuple[str, ...]
    default: str = ""


_SERVERS = {
    "openai": _Server(("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "ollama": _Server(("OLLAMA_API_BASE",), "http://localhost:11434"),
    "ollama_chat": _Server(("OLLAMA_API_BASE",), "http://localhost:11434"),
    "lm_studio": _Server(("LM_STUDIO_API_BASE",), "http://localhost:1234/v1"),
    "hosted_vllm": _Server(("HOSTED_VLLM_API_BASE",), "http://localhost:8000/v1"),
    "llamafile": _Server(("LLAMAFILE_API_BASE",), "http://127.0.0.1:8080/v1"),
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """What one entry of litellm's map says."""

    provider: str
    limit_tokens: int


class ModelMap:
    """litellm's map of models, read from its file at the first question; a map that cannot be read is empty."""

    def __init__(self, path: Path | None = None) -> None:
        """Read ``path``, or the map that litellm ships."""
        self._path = path
        self._entries: dict[str, _Entry] | None = None
        self._reading = threading.Lock()

    def limit_tokens(self, model: str) -> int | None:
        """Return the input tokens that ``model`` takes, or ``None`` if the map has no figure for it.

        The map names many models without their provider: ``anthropic/claude-x`` is found under ``claude-x`` if that
        entry's provider is ``anthropic`` or one of its kinds, as ``vertex_ai-language-models`` is of ``vertex_ai``.
        """
        entries = self._read()
        if model in entries:
            return entries[model].limit_tokens
        prefix, _, name = model.partition("/")
        entry = entries.get(name)
        return entry.limit_tokens if entry and _is_kind_of(entry.provider, prefix) else None

    def _read(self) -> dict[str, _Entry]:
        with self._reading:
            if self._entries is None:
                self._entries = _entries_of(self._path)
            return self._entries


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


def _is_kind_of(provider: str, prefix: str) -> bool:
    return provider == prefix or provider.startswith((f"{prefix}-", f"{prefix}_"))


def _entries_of(path: Path | None) -> dict[str, _Entry]:
    try:
        path = path or installation_folder() / "model_prices_and_context_window_backup.json"
        document = json.loads(path.read_bytes())
    except (ModelError, OSError, ValueError):
        # A limit can be set by hand, and the first request says what is wrong with litellm.
        return {}
    if not isinstance(document, dict):
        return {}
    found = ((name, _entry_of(value)) for name, value in document.items())
    return {name: entry for name, entry in found if entry is not None}


def _entry_of(value: object) -> _Entry | None:
    """Read one entry; the map's own sample has sentences where others have figures."""
    if not isinstance(value, dict):
        return None
    figures = (value.get("max_input_tokens"), value.get("max_tokens"))
    tokens = next((figure for figure in figures if isinstance(figure, int) and figure > 0), None)
    return _Entry(str(value.get("litellm_provider", "")), tokens) if tokens else None
