"""Tools and calls in the shapes that providers take, and the models that are offered them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.providers.chat_messages import marked_messages, refuses_tools, takes_tools, tool_arguments
from chorus_cli.models.rules.declaration import Parameter, Tool
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from tests.models.providers.asked_models import BY_LITELLM, HELLO
from tests.models.providers.ways import MODEL_MAP

pytestmark = [*BY_LITELLM, pytest.mark.usefixtures("test_key")]

ECHO = Tool("echo", "Say a text again.", (Parameter("text", "Any text."),))
OFFERING = ModelRequest("openai/m", HELLO, tools=(ECHO,))


async def test_without_tools_the_request_says_nothing_of_them() -> None:
    assert tool_arguments(ModelRequest("openai/m", HELLO)) == {}
    assert tool_arguments(replace(OFFERING, model="ollama_chat/llama3", may_call=False)) == {}


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
    PromptMessage("assistant", "Let me see.", tool_calls=ToolCall("c1", "echo", "{}").as_json),
    PromptMessage("tool", "gold", tool_call_id="c1"),
)


@pytest.mark.parametrize(
    ("model", "tools", "roles"),
    [
        ("openai/m", (), ["user", "assistant", "tool"]),
        ("anthropic/claude-x", (ECHO,), ["user", "assistant", "tool"]),
        ("anthropic/claude-x", (), ["user", "assistant", "user"]),
    ],
)
def test_claude_gets_calls_in_words_where_no_tools_are_offered(
    model: str, tools: tuple[Tool, ...], roles: list[str]
) -> None:
    accepted = [marked.message for marked in marked_messages(ModelRequest(model, CALLED, tools=tools), MODEL_MAP)]
    assert [message.role for message in accepted] == roles
    assert "gold" in accepted[-1].content
