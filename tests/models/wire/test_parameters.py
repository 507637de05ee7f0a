"""Parameters that a provider or a model takes in a way of its own, and those that a server refuses by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.litellm import library
from chorus_cli.models.providers.failures import Failure, Trouble
from chorus_cli.models.providers.parameters import Dialect, dialect, refused_parameter
from chorus_cli.models.providers.providers import PROVIDERS, ProtocolName, endpoint
from chorus_cli.models.rules.events import Notice, ReplyEnd, TextDelta
from tests.calling_provider import calling
from tests.models.providers.asked_models import BY_LITELLM
from tests.models.providers.ways import MODEL_MAP
from tests.models.wire.wire_talk import ASKING, client_of, events_of

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


OPTIONAL = frozenset({"temperature", "max_tokens", "stream_options", "tool_choice"})
OK = [TextDelta("ok"), ReplyEnd("stop")]
NO_TEMPERATURE = "Unsupported parameter: 'temperature' is not supported with this model."
NO_MAX_TOKENS = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."


@pytest.mark.parametrize(
    ("status", "body", "name"),
    [
        (400, {"error": {"message": NO_TEMPERATURE, "param": "temperature"}}, "temperature"),
        (400, {"error": {"message": NO_MAX_TOKENS, "code": "unsupported_parameter"}}, "max_tokens"),
        (400, {"error": {"message": "Unsupported value: 'temperature' does not support 0.2."}}, "temperature"),
        (400, {"error": {"type": "invalid_request_error", "message": "`temperature` is deprecated."}}, "temperature"),
        (
            422,
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "input": {"temperature": 1}}]},
            "stream_options",
        ),
        (400, {"message": "Extra inputs are not permitted", "param": "stream_options"}, "stream_options"),
        (400, {"error": {"message": "body.tool_choice: Extra inputs are not permitted"}}, "tool_choice"),
        (400, {"error": "This server does not support tool choice."}, "tool_choice"),
        (500, "unknown field: max_tokens", "max_tokens"),
        (400, {"error": {"message": "temperature must be between 0 and 1"}}, None),
        (400, {"error": {"message": "maximum context length is 9; you asked for 8 and max_tokens of 2"}}, None),
        (400, {"error": {"message": "reasoning_effort is not supported"}}, None),
        (400, {"error": {"message": "'tools' is not supported with this model"}}, None),
        (401, {"error": {"message": NO_TEMPERATURE}}, None),
        (400, None, None),
    ],
)  # fmt: skip
def test_the_parameter_is_found_by_its_name(status: int, body: object, name: str | None) -> None:
    assert refused_parameter(Failure(status=status, body=body), OPTIONAL) == name


def test_a_lost_connection_refuses_nothing() -> None:
    assert refused_parameter(Failure(Trouble.BROKE_OFF, 400, NO_TEMPERATURE), OPTIONAL) is None


async def test_a_request_is_repeated_without_it_and_the_next_ones_are_sent_without_it() -> None:
    warm = replace(ASKING, temperature=0.2)
    with calling() as provider:
        provider.refuse(400, NO_TEMPERATURE)
        async with client_of(provider.address) as client:
            assert await events_of(client, warm) == [
                Notice("openai/m does not accept temperature, so it is left out."), *OK,
            ]  # fmt: skip
            assert await events_of(client, warm) == OK
            assert await events_of(client, replace(warm, model="openai/other")) == OK
    assert [body.get("temperature") for body in provider.asked] == [0.2, None, None, 0.2]


async def test_the_limit_of_the_reply_is_sent_by_its_newer_name_where_the_older_is_refused() -> None:
    with calling() as provider:
        provider.refuse(400, NO_MAX_TOKENS)
        async with client_of(provider.address) as client:
            events = await events_of(client, replace(ASKING, max_output_tokens=9))
    assert events == OK
    sent = [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in provider.asked]
    assert sent == [(9, None), (None, 9)]


async def test_a_server_that_refuses_on_and_on_is_told_of() -> None:
    with calling() as provider:
        for _ in range(9):
            provider.refuse(400, NO_TEMPERATURE)
        async with client_of(provider.address) as client:
            with pytest.raises(ModelError, match="rejected the request"):
                await events_of(client, replace(ASKING, temperature=0.2))
    assert len(provider.asked) == 2
