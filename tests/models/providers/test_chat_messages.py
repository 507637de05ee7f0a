"""Messages as they are sent: markers, calls and tools, and the attachments that a model takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chorus_cli.log.rules.attachments import ALL_SENT, Kind
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.providers.chat_messages import (
    accepted_kinds,
    chat_message,
    marked_messages,
    refuses_tools,
    reply_limit,
    takes_tools,
    tool_arguments,
    wants_markers,
)
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.rules.declaration import Parameter, Tool
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from tests.models.providers.asked_models import HELLO
from tests.models.providers.ways import MODEL_MAP

CALL = '[{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]'
MESSAGES = {
    "s": PromptMessage("system", "Be kind."),
    "u": PromptMessage("user", "hello"),
    "a": PromptMessage("assistant", "hi"),
    "c": PromptMessage("assistant", "", tool_calls=CALL),
    "t": PromptMessage("tool", "found", tool_call_id="c1"),
    "_": PromptMessage("system", " \n"),
}


def translated(letters: str, model: str = "claude-sonnet-4-5") -> list[dict[str, object]]:
    request = ModelRequest(model, tuple(MESSAGES[letter] for letter in letters), tools=(Tool("f", "Find."),))
    return [chat_message(marked) for marked in marked_messages(request, ModelMap())]


@pytest.mark.parametrize(
    ("model", "wants"),
    [
        ("anthropic/claude-sonnet-4-5", True),
        ("claude-sonnet-4-5", True),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", True),
        ("vertex_ai/claude-sonnet-4-5", True),
        ("azure_ai/claude-sonnet-4-5", True),
        ("anthropic/claude-of-tomorrow", True),
        ("anthropic/claude-1-of-old", False),
        ("bedrock/anthropic.claude-v1", False),
        ("databricks/databricks-claude-sonnet-4-5", False),
        ("replicate/anthropic/claude-4-sonnet", False),
        ("openai/claude-sonnet-4-5", False),
        ("openai/gpt-4o", False),
        ("gpt-4o", False),
        ("chorus/eliza", False),
    ],
)
def test_a_claude_that_keeps_prompts_wants_markers(model: str, wants: bool) -> None:  # noqa: FBT001 - a table
    assert wants_markers(model, ModelMap()) is wants


@pytest.mark.parametrize(
    ("messages", "markers"),
    [
        ("su", "^^"),
        ("suau", "^^ ^"),
        ("suauau", "^  ^ ^"),
        ("suauauau", "^    ^ ^"),
        ("suuu", "^ ^^"),
        ("uau", "^ ^"),
        ("_uau", " ^ ^"),
        ("suauct", "^^ ^"),
        ("suctau", "^^   ^"),
        ("s", "^"),
        ("a", ""),
        ("", ""),
    ],
)
def test_the_system_message_and_the_two_newest_questions_are_marked(messages: str, markers: str) -> None:
    prompt = [MESSAGES[letter] for letter in messages]
    marked = translated(messages)
    marker = {"cache_control": {"type": "ephemeral"}}
    for message, sent, mark in zip(prompt, marked, markers.ljust(len(prompt)), strict=True):
        block = [{"type": "text", "text": message.content, **marker}]
        assert sent["content"] == (block if mark == "^" else message.content)
    assert [sent["role"] for sent in marked] == [message.role for message in prompt]
    plain = translated(messages, "gpt-4o")
    assert [sent["content"] for sent in plain] == [message.content for message in prompt]


def test_a_request_begins_as_the_one_before_it_up_to_its_marker() -> None:
    before = translated("suau")
    after = translated("suauau")
    assert after[0] == before[0]
    assert after[3] == before[3]


@pytest.mark.parametrize(
    ("model", "most", "limit", "prompt", "told"),
    [
        pytest.param("claude-sonnet-4-5", None, 200_000, 1_000, None, id="there is room for the longest reply"),
        pytest.param("claude-sonnet-4-5", None, 200_000, 160_000, 32_000, id="there is not"),
        pytest.param("claude-sonnet-4-5", None, 200_000, 195_000, 1, id="there is hardly any"),
        pytest.param("claude-sonnet-4-5", None, 4_000, 3_900, None, id="the user's limit is for requests"),
        pytest.param("claude-sonnet-4-5", 500, 200_000, 160_000, 500, id="the user has said"),
        pytest.param("claude-sonnet-4-5", None, None, None, None, id="nobody knows"),
        pytest.param("claude-haiku-4-5-next", None, 200_000, 1_000, 64_000, id="litellm does not know the longest"),
        pytest.param("claude-haiku-4-5-next", None, 200_000, 160_000, 32_000, id="nor that there is no room for it"),
        pytest.param("gpt-4o", None, 128_000, 120_000, None, id="another provider"),
        pytest.param("gpt-4o", 500, 128_000, 120_000, 500, id="another provider is told too"),
    ],
)
def test_a_reply_is_promised_no_more_than_there_is_room_for(
    model: str, most: int | None, limit: int | None, prompt: int | None, told: int | None
) -> None:
    request = ModelRequest(model, (), max_output_tokens=most, context_tokens=limit, prompt_tokens=prompt)
    assert reply_limit(request, ModelMap()) == told


TEXT, NO_PDF = frozenset({Kind.TEXT}), ALL_SENT - {Kind.PDF}


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        ("openai/gpt-4o", ALL_SENT),
        ("anthropic/claude-sonnet-4-5", ALL_SENT),
        ("gemini/gemini-2.5-flash", ALL_SENT),
        ("openai/gpt-3.5-turbo", TEXT),
        ("deepseek/deepseek-chat", TEXT),
        ("openai/a-model-of-tomorrow", ALL_SENT),
        ("local/model.gguf", TEXT),
        ("chorus/eliza", frozenset()),
    ],
)
def test_pictures_and_pdfs_are_sent_unless_the_map_says_no(model: str, kinds: frozenset[Kind]) -> None:
    assert accepted_kinds(model, MODEL_MAP) == kinds


ECHO = Tool("echo", "Say a text again.", (Parameter("text", "Any text."),))
OFFERING = ModelRequest("openai/m", HELLO, tools=(ECHO,))


def test_without_tools_the_request_says_nothing_of_them() -> None:
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
