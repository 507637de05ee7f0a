"""Tools by way of litellm: offered in the request, assembled from the chunks of a stream, refused by a provider."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chorus_cli.adapters.models.chat_messages import accepted_messages, chat_messages
from chorus_cli.adapters.models.litellm.client import LiteLLMClient
from chorus_cli.adapters.models.tool_calling import refuses_tools, takes_tools, tool_arguments
from chorus_cli.core.errors import ToolsRefusedError
from chorus_cli.core.models.events import ReplyEnd
from chorus_cli.core.models.exchange import ModelRequest, PromptMessage
from chorus_cli.core.tools.calls import ToolCall
from chorus_cli.core.tools.declaration import Parameter, Tool
from tests.adapters.models.asked_models import BY_LITELLM, HELLO, MODEL_MAP
from tests.adapters.models.fault_server import DONE, STREAM_HEAD, chunk, failure, serving
from tests.calling_provider import call_chunk, calling, piece, split_call

pytestmark = [*BY_LITELLM, pytest.mark.usefixtures("test_key")]

ECHO = Tool("echo", "Say a text again.", (Parameter("text", "Any text."),))
OFFERING = ModelRequest("openai/m", HELLO, tools=(ECHO,))


async def end_of(*chunks: bytes, reason: str = "tool_calls") -> ReplyEnd:
    async with serving(STREAM_HEAD, *chunks, chunk(finish_reason=reason), DONE) as server:
        client = LiteLLMClient({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "sk-test"}, MODEL_MAP)
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
    chunks: list[list[dict[str, Any]]], calls: list[tuple[str, str, str]]
) -> None:
    end = await end_of(*(call_chunk(*pieces) for pieces in chunks))
    assert list(end.calls) == calls
    assert end.finish_reason == "tool_calls"


async def test_words_come_before_the_calls() -> None:
    end = await end_of(chunk("Let me see."), call_chunk(piece("{}", id_="a", name="f")), reason="stop")
    assert end.calls == (ToolCall("a", "f", "{}"),)
    assert end.finish_reason


@pytest.mark.parametrize(
    ("request_", "choice"), [(OFFERING, None), (replace(OFFERING, may_call=False), "none")], ids=["auto", "none"]
)
async def test_tools_are_offered_in_the_shape_of_the_openai_api(request_: ModelRequest, choice: str | None) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), chunk(finish_reason="stop"), DONE) as server:
        client = LiteLLMClient({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "sk-test"}, MODEL_MAP)
        _ = [event async for event in client.stream(request_)]
    (asked,) = server.asked
    assert asked.body["tools"] == [ECHO.declaration]
    assert asked.body.get("tool_choice") == choice
    assert not any(name.startswith("_") for name in asked.body)


async def test_without_tools_the_request_says_nothing_of_them() -> None:
    assert tool_arguments(ModelRequest("openai/m", HELLO)) == {}
    assert tool_arguments(replace(OFFERING, model="ollama_chat/llama3", may_call=False)) == {}


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
async def test_a_provider_that_refuses_tools_is_understood(status: int, message: str) -> None:
    async with serving(failure(status, {"error": {"message": message, "type": "invalid_request_error"}})) as server:
        client = LiteLLMClient({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "sk-test"}, MODEL_MAP)
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
async def test_a_server_without_tool_choice_is_asked_without_it_and_keeps_its_tools(message: str) -> None:
    with calling() as provider:
        provider.refuse(400, message)
        client = LiteLLMClient({"OPENAI_BASE_URL": provider.address, "OPENAI_API_KEY": "sk-test"}, MODEL_MAP)
        *_, end = [event async for event in client.stream(replace(OFFERING, may_call=False))]
    assert isinstance(end, ReplyEnd)
    assert [body.get("tool_choice") for body in provider.asked] == ["none", None]
    assert provider.asked[0]["tools"] == provider.asked[1]["tools"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Invalid parameter: messages with role 'tool' must be a response to a preceding message."),
        (400, "This model's maximum context length is 4096 tokens; 9 in the tools."),
        (400, "temperature is not supported with this model"),
        (401, "Incorrect API key; tools are not supported."),
        (429, "Too many tool calls are not supported on this plan"),
        (None, "tools are not supported"),
    ],
)
def test_other_errors_are_no_refusal(status: int | None, message: str) -> None:
    assert not refuses_tools(status, message)


@pytest.mark.parametrize(
    ("model", "offered"),
    [
        ("openai/gpt-4o", True),
        ("anthropic/claude-sonnet-4-5", True),
        ("openai/a-model-of-tomorrow", True),
        ("ollama_chat/anything", True),
        ("perplexity/sonar", False),
        ("ollama/llama3.1", False),
        ("chorus/eliza", False),
    ],
)
def test_tools_are_offered_unless_the_map_says_no(model: str, *, offered: bool) -> None:
    assert takes_tools(model, MODEL_MAP) is offered


CALLED = (
    PromptMessage("user", "hello"),
    PromptMessage("assistant", "Let me see."),
    PromptMessage("assistant", "", tool_calls=f"{ToolCall('c1', 'echo', '{}').as_json}"),
    PromptMessage("tool", "gold", tool_call_id="c1"),
)


def test_words_and_the_call_after_them_are_one_message_as_the_model_sent_them() -> None:
    sent = chat_messages(CALLED, with_markers=False)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[1]["content"] == "Let me see."
    assert sent[1]["tool_calls"]


@pytest.mark.parametrize(
    ("model", "tools", "roles"),
    [
        ("openai/m", (), ["user", "assistant", "tool"]),
        ("anthropic/claude-x", (ECHO,), ["user", "assistant", "tool"]),
        ("anthropic/claude-x", (), ["user", "assistant", "assistant", "user"]),
    ],
)
def test_claude_gets_calls_in_words_where_no_tools_are_offered(
    model: str, tools: tuple[Tool, ...], roles: list[str]
) -> None:
    accepted = accepted_messages(ModelRequest(model, CALLED, tools=tools))
    assert [message["role"] for message in chat_messages(accepted, with_markers=False)] == roles
    assert "gold" in accepted[-1].content
