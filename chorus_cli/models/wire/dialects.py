"""How providers and models differ in the parameters of a chat completion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from chorus_cli.models.providers.providers import Endpoint

_STREAM_OPTIONS = frozenset({"stream_options"})
_TEMPERATURE = frozenset({"temperature"})
_TOOLS = frozenset({"tools", "tool_choice"})


class Dialect(NamedTuple):
    """How a model takes the parameters of a chat completion.

    ``reply_limit`` is the name of the parameter that limits the reply, ``omitted`` are parameters that are never sent.
    """

    reply_limit: str = "max_tokens"
    omitted: frozenset[str] = frozenset()


_USUAL = Dialect()
_REASONING = Dialect("max_completion_tokens", _TEMPERATURE)

_BY_PROVIDER = {
    "mistral": Dialect(omitted=_STREAM_OPTIONS),
    "cerebras": Dialect(omitted=_STREAM_OPTIONS),
    "nvidia_nim": Dialect(omitted=_STREAM_OPTIONS),
    "deepinfra": Dialect(omitted=_STREAM_OPTIONS | {"tool_choice"}),
    "perplexity": Dialect(omitted=_STREAM_OPTIONS | _TOOLS),
}
# The first match counts.
_BY_MODEL = {
    "openai": (
        (r"o\d", _REASONING),
        (r"gpt-5-chat", _USUAL),
        (r"gpt-5.*search", Dialect("max_completion_tokens", _TEMPERATURE | _TOOLS)),
        (r"gpt-5\.[124](?!.*chat)", Dialect("max_completion_tokens")),
        (r"gpt-[56]", _REASONING),
    ),
    "moonshot": ((r"kimi-(?:k2\.[5-9]|k[3-9])", Dialect(omitted=_TEMPERATURE)),),
}


def dialect(endpoint: Endpoint) -> Dialect:
    """Return how the model of ``endpoint`` takes its parameters."""
    families = _BY_MODEL.get(endpoint.provider, ())
    by_provider = _BY_PROVIDER.get(endpoint.provider, _USUAL)
    return next((family for pattern, family in families if re.match(pattern, endpoint.model)), by_provider)
