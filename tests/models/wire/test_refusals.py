"""A parameter that a server refuses by name is left out, once and for all, and the user is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.providers.failures import Failure, Trouble
from chorus_cli.models.providers.parameters import refused_parameter
from chorus_cli.models.rules.events import Notice, ReplyEnd, TextDelta
from tests.calling_provider import calling
from tests.models.wire.wire_talk import ASKING, client_of, events_of

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
