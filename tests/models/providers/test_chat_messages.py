"""Which models want markers in a prompt, and which messages get them."""

from __future__ import annotations

import pytest

from chorus_cli.models.providers.chat_messages import chat_message, marked_messages, reply_limit, wants_markers
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.rules.declaration import Tool
from chorus_cli.models.rules.request import ModelRequest, PromptMessage

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
