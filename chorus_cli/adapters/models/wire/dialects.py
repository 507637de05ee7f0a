"""How providers and models differ in the parameters of a chat completion."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.adapters.models.providers import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.adapters.models.providers import Endpoint

_NOTHING: Mapping[str, object] = MappingProxyType({})
_STREAM_OPTIONS = frozenset({"stream_options"})
_TEMPERATURE = frozenset({"temperature"})
_TOOLS = frozenset({"tools", "tool_choice"})


class Dialect(NamedTuple):
    """How a model takes the parameters of a chat completion.

    ``reply_limit`` is the name of the parameter that limits the reply, ``omitted`` are parameters that are never sent.
    ``with_tools`` is added to a request that offers tools. A model that ``wants_thoughts`` refuses a call of a tool in
    the conversation without the reasoning that led to it.
    """

    reply_limit: str = "max_tokens"
    omitted: frozenset[str] = frozenset()
    with_tools: Mapping[str, object] = _NOTHING
    wants_thoughts: bool = False


_USUAL = Dialect()
_REASONING = Dialect("max_completion_tokens", _TEMPERATURE)
# Chat completions take no functions while these models reason.
_NO_REASONING: Mapping[str, object] = MappingProxyType({"reasoning_effort": "none"})

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
        (r"gpt-5\.[12](?!.*chat)", Dialect("max_completion_tokens")),
        (r"gpt-5\.4", Dialect("max_completion_tokens", with_tools=_NO_REASONING)),
        # These cannot but reason; the provider refuses tools, and they are asked without any.
        (r"gpt-6-astra|gpt-6\.1-sol", _REASONING),
        (r"gpt-(?:5\.[5-9]|6)", _REASONING._replace(with_tools=_NO_REASONING)),
        (r"gpt-5", _REASONING),
    ),
    "moonshot": ((r"kimi-(?:k2\.[5-9]|k[3-9])", Dialect(omitted=_TEMPERATURE, wants_thoughts=True)),),
}


def dialect(endpoint: Endpoint) -> Dialect:
    """Return how the model of ``endpoint`` takes its parameters."""
    families = _BY_MODEL.get(endpoint.provider, ())
    by_provider = _BY_PROVIDER.get(endpoint.provider, _USUAL)
    found = next((family for pattern, family in families if re.match(pattern, endpoint.model)), by_provider)
    if endpoint.address != PROVIDERS[endpoint.provider].address:
        # A server of another make under OpenAI's prefix knows no such rule.
        return found._replace(with_tools=_NOTHING)
    return found
