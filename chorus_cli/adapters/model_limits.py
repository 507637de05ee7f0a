"""How many tokens a model's context holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.adapters.server_addresses import is_on_this_machine, server_address
from chorus_cli.core.budget import Limit
from chorus_cli.core.model_choice import ELIZA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.adapters.model_map import ModelMap

DEFAULT_LIMIT_TOKENS = 128_000
LOOPBACK_LIMIT_TOKENS = 8192


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
