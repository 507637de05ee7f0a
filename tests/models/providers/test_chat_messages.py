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


def test_a_claude_that_keeps_prompts_wants_markers() -> None:
    wanting = (
        *("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5", "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        *("anthropic.claude-haiku-4-5-20251001-v1:0", "vertex_ai/claude-sonnet-4-5", "azure_ai/claude-sonnet-4-5"),
        "anthropic/claude-of-tomorrow",
    )
    others = (
        *("anthropic/claude-1-of-old", "bedrock/anthropic.claude-v1", "databricks/databricks-claude-sonnet-4-5"),
        *("replicate/anthropic/claude-4-sonnet", "openai/claude-sonnet-4-5", "openai/gpt-4o", "gpt-4o", "chorus/eliza"),
    )
    assert [name for name in (*wanting, *others) if wants_markers(name, ModelMap())] == list(wanting)


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


def test_pictures_and_pdfs_are_sent_unless_the_map_says_no() -> None:
    seeing = ("openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash", "openai/a-model-of-tomorrow")
    reading = ("openai/gpt-3.5-turbo", "deepseek/deepseek-chat", "local/model.gguf")
    assert {accepted_kinds(name, MODEL_MAP) for name in seeing} == {ALL_SENT}
    assert {accepted_kinds(name, MODEL_MAP) for name in reading} == {frozenset({Kind.TEXT})}
    assert accepted_kinds("chorus/eliza", MODEL_MAP) == frozenset()


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


def test_tools_are_offered_unless_the_map_says_no() -> None:
    offered = ("openai/gpt-4o", "anthropic/claude-sonnet-4-5", "openai/a-model-of-tomorrow", "ollama_chat/anything")
    others = ("perplexity/sonar", "ollama/llama3.1", "chorus/eliza")
    assert [name for name in (*offered, *others) if takes_tools(name, MODEL_MAP)] == list(offered)


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
