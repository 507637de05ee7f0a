"""Tools: offered in the request, called in the stream of a reply, refused by a provider."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from chorus_cli.core.errors import ToolsRefusedError
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.declaration import Parameter, Tool
from chorus_cli.models.rules.events import ReplyEnd
from chorus_cli.models.rules.request import ModelRequest
from tests.calling_provider import call_chunk, calling, piece, split_call
from tests.models.providers.asked_models import BY_LITELLM, HELLO
from tests.models.providers.fault_server import DONE, STREAM_HEAD, chunk, failure, serving

if TYPE_CHECKING:
    from tests.models.providers.ways import MakeClient

pytestmark = [*BY_LITELLM, pytest.mark.usefixtures("test_key")]

ECHO = Tool("echo", "Say a text again.", (Parameter("text", "Any text."),))
OFFERING = ModelRequest("openai/m", HELLO, tools=(ECHO,))


async def end_of(make_client: MakeClient, *chunks: bytes, reason: str = "tool_calls") -> ReplyEnd:
    async with serving(STREAM_HEAD, *chunks, chunk(finish_reason=reason), DONE) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "sk-test"})
        *_, end = [event async for event in client.stream(OFFERING)]
    assert isinstance(end, ReplyEnd)
    return end


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        ([[one] for one in split_call("echo", {"text": "gold"})], [("c1", "echo", '{"text": "gold"}')]),
        (
            [[one] for one in split_call("echo", "{}", "a")] + [[one] for one in split_call("echo", "[]", "b", 1)],
            [("a", "echo", "{}"), ("b", "echo", "[]")],
        ),
        (
            [
                [piece('{"t', id_="a", name="f"), piece('{"u', index=1, id_="b", name="g")],
                [piece('":1}'), piece("}", index=1)],
            ],
            [("a", "f", '{"t":1}'), ("b", "g", '{"u}')],
        ),
        ([[piece("{}", id_="a", name="f"), piece("{}", id_="b", name="f")]], [("a", "f", "{}"), ("b", "f", "{}")]),
        ([[piece("{}", name="f")], [piece("{}", name="f")]], [("", "f", "{}"), ("", "f", "{}")]),
        (
            [[piece("{}", index=None, id_="a", name="f"), piece("{}", index=None, id_="b", name="g")]],
            [("a", "f", "{}"), ("b", "g", "{}")],
        ),
        ([[piece('{"a"', id_="x", name="f")], [piece(":1}", id_="x", name="f")]], [("x", "f", '{"a":1}')]),
        ([[piece('{"a":1', id_="x", name="f")]], [("x", "f", '{"a":1')]),
    ],
    ids=[
        "split over many chunks",
        "two calls",
        "two calls in turns",
        "whole calls, all numbered 0",
        "whole calls without ids",
        "whole calls without numbers",
        "id and name repeated",
        "not whole",
    ],
)  # fmt: skip
async def test_calls_are_assembled_from_the_chunks(
    make_client: MakeClient, chunks: list[list[dict[str, Any]]], calls: list[tuple[str, str, str]]
) -> None:
    end = await end_of(make_client, *(call_chunk(*pieces) for pieces in chunks))
    assert list(end.calls) == calls
    assert end.finish_reason == "tool_calls"


async def test_words_come_before_the_calls(make_client: MakeClient) -> None:
    end = await end_of(make_client, chunk("Let me see."), call_chunk(piece("{}", id_="a", name="f")), reason="stop")
    assert end.calls == (ToolCall("a", "f", "{}"),)
    assert end.finish_reason


@pytest.mark.parametrize(
    ("request_", "choice"), [(OFFERING, None), (replace(OFFERING, may_call=False), "none")], ids=["auto", "none"]
)
async def test_tools_are_offered_in_the_shape_of_the_openai_api(
    make_client: MakeClient, request_: ModelRequest, choice: str | None
) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), chunk(finish_reason="stop"), DONE) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "sk-test"})
        _ = [event async for event in client.stream(request_)]
    (asked,) = server.asked
    assert asked.body["tools"] == [ECHO.declaration]
    assert asked.body.get("tool_choice") == choice
    assert not any(name.startswith("_") for name in asked.body)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, "Unsupported parameter: 'tools' is not supported with this model."),
        (400, "`tool calling` is not supported with this model"),
        (400, "Function calling is not enabled for models/gemma-3-27b-it"),
        (400, "deepseek-reasoner does not support Function Calling"),
        (400, "This model doesn't support tool use in streaming mode."),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (404, "No endpoints found that support tool use. To learn more, see the documentation."),
        (400, "body.tools: Extra inputs are not permitted"),
        (500, "tools param requires --jinja flag"),
    ],
)
async def test_a_provider_that_refuses_tools_is_understood(make_client: MakeClient, status: int, message: str) -> None:
    async with serving(failure(status, {"error": {"message": message, "type": "invalid_request_error"}})) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "sk-test"})
        with pytest.raises(ToolsRefusedError):
            _ = [event async for event in client.stream(OFFERING)]


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'tool_choice' is not supported with this model.",
        "body.tool_choice: Extra inputs are not permitted",
        "This server does not support tool choice.",
    ],
)
async def test_a_server_without_tool_choice_is_asked_without_it_and_keeps_its_tools(
    make_client: MakeClient, message: str
) -> None:
    with calling() as provider:
        provider.refuse(400, message)
        client = make_client({"OPENAI_BASE_URL": provider.address, "OPENAI_API_KEY": "sk-test"})
        *_, end = [event async for event in client.stream(replace(OFFERING, may_call=False))]
    assert isinstance(end, ReplyEnd)
    assert [body.get("tool_choice") for body in provider.asked] == ["none", None]
    assert provider.asked[0]["tools"] == provider.asked[1]["tools"]
