"""Providers that speak a protocol of the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.adapters.models.server_addresses import is_on_this_machine, server_address
from chorus_cli.adapters.models.wire.protocol import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "openai/"
_ADDRESS = "https://api.openai.com/v1"


def endpoint(model: str, environment: Mapping[str, str]) -> Endpoint | None:
    """Return where ``model`` is asked over the wire; ``None`` if only litellm reaches it."""
    if not model.startswith(_PREFIX):
        return None
    address = (server_address(model, environment) or _ADDRESS).rstrip("/")
    key = environment.get("OPENAI_API_KEY", "").strip()
    return Endpoint("openai", model.removeprefix(_PREFIX), address, key)


def lacks_key(asked: Endpoint) -> bool:
    """Return whether the provider requires a key and none is set."""
    return not asked.key and not is_on_this_machine(asked.address)
