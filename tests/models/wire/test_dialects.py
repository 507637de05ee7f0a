"""Parameters that a provider or a model takes in a way of its own, also as litellm sends them."""

from __future__ import annotations

from typing import Any

import pytest

from chorus_cli.models.litellm import library
from chorus_cli.models.providers.parameters import Dialect, dialect
from chorus_cli.models.providers.providers import PROVIDERS, ProtocolName, endpoint
from tests.models.providers.asked_models import BY_LITELLM
from tests.models.providers.ways import MODEL_MAP

CHATS = sorted(prefix for prefix, each in PROVIDERS.items() if each.protocol is ProtocolName.CHAT_COMPLETIONS)
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
PARAMETERS: dict[str, Any] = {
    "temperature": 0.5,
    "max_tokens": 9,
    "stream": True,
    "stream_options": {"include_usage": True},
    "tools": [TOOL],
    "tool_choice": "none",
}
# Whether these models take tools, or a ban on their use, litellm reads off its map, which the chat has done before.
BY_THE_MAP = {"fireworks_ai", "sambanova"}
# The map does not say that it takes a ban on calls; where a server refuses one, the wire leaves it out.
UNTOLD = {"gpt-6-cyber"}


def of(model: str, environment: dict[str, str] | None = None) -> Dialect:
    asked = endpoint(model, environment or {})
    assert asked is not None
    return dialect(asked)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai/gpt-4o", Dialect()),
        ("openai/mine", Dialect()),
        ("openai/gpt-5-chat-latest", Dialect()),
        ("openai/gpt-5-mini", Dialect("max_completion_tokens", frozenset({"temperature"}))),
        ("o4-mini", Dialect("max_completion_tokens", frozenset({"temperature"}))),
        ("openai/gpt-5.4-mini", Dialect("max_completion_tokens")),
        ("openai/gpt-6-sol", Dialect("max_completion_tokens", frozenset({"temperature"}))),
        ("openai/gpt-6-astra", Dialect("max_completion_tokens", frozenset({"temperature"}))),
        ("moonshot/kimi-k2.6", Dialect(omitted=frozenset({"temperature"}))),
        ("moonshot/moonshot-v1-8k", Dialect()),
        ("perplexity/sonar", Dialect(omitted=frozenset({"stream_options", "tools", "tool_choice"}))),
    ],
)
def test_some_models_take_parameters_in_their_own_way(model: str, expected: Dialect) -> None:
    assert of(model) == expected


class TestAsLiteLLM:
    """Of each model in litellm's map, and of one that it does not know, the same parameters are sent."""

    pytestmark = BY_LITELLM

    @pytest.mark.parametrize("prefix", CHATS)
    def test_the_same_parameters_are_sent(self, prefix: str) -> None:
        litellm = library.load()
        calling = {
            MODEL_MAP.meant(f"{prefix}/{name.removeprefix(f'{prefix}/')}").removeprefix(f"{prefix}/"): entry.get(
                "supports_function_calling", False
            )
            for name, entry in litellm.model_cost.items()
            if entry.get("litellm_provider") == prefix and entry.get("mode") == "chat"
        }
        for name, calls in {"unknown": True, **calling}.items():
            theirs = litellm.utils.get_optional_params(
                model=name, custom_llm_provider=prefix, drop_params=True, **PARAMETERS
            )
            sent = {name for name, value in theirs.items() if value and name in {*PARAMETERS, "max_completion_tokens"}}
            # The others are never offered tools.
            ignored = set() if calls and prefix not in BY_THE_MAP else {"tools", "tool_choice"}
            ignored |= {"tool_choice"} if name in UNTOLD else set()
            assert sent - ignored == sent_by_the_wire(prefix, name) - ignored, name


def sent_by_the_wire(prefix: str, name: str) -> set[str]:
    spoken = of(f"{prefix}/{name}")
    return {spoken.reply_limit, *PARAMETERS.keys() - {"max_tokens"}} - spoken.omitted
