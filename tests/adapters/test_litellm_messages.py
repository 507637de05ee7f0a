"""Which models want markers in a prompt, and which messages get them."""

from __future__ import annotations

import pytest

from chorus_cli.adapters.litellm_messages import litellm_messages, wants_markers
from chorus_cli.adapters.model_map import ModelMap
from chorus_cli.core.exchange import PromptMessage

CALL = '[{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]'
MESSAGES = {
    "s": PromptMessage("system", "Be kind."),
    "u": PromptMessage("user", "hello"),
    "a": PromptMessage("assistant", "hi"),
    "c": PromptMessage("assistant", "", tool_calls=CALL),
    "t": PromptMessage("tool", "found", tool_call_id="c1"),
    "_": PromptMessage("system", " \n"),
}


@pytest.mark.parametrize(
    ("model", "wants"),
    [
        ("anthropic/claude-sonnet-4-5", True),
        ("claude-sonnet-4-5", True),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", True),
        ("vertex_ai/claude-sonnet-4-5", True),
        ("azure_ai/claude-sonnet-4-5", True),
        ("anthropic/claude-of-tomorrow", False),
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
    translated = litellm_messages(prompt, with_markers=True)
    marker = {"cache_control": {"type": "ephemeral"}}
    for message, sent, mark in zip(prompt, translated, markers.ljust(len(prompt)), strict=True):
        block = [{"type": "text", "text": message.content, **marker}]
        assert sent["content"] == (block if mark == "^" else message.content)
    assert [sent["role"] for sent in translated] == [message.role for message in prompt]
    plain = litellm_messages(prompt, with_markers=False)
    assert [sent["content"] for sent in plain] == [message.content for message in prompt]


def test_a_request_begins_as_the_one_before_it_up_to_its_marker() -> None:
    before = litellm_messages([MESSAGES[letter] for letter in "suau"], with_markers=True)
    after = litellm_messages([MESSAGES[letter] for letter in "suauau"], with_markers=True)
    assert after[0] == before[0]
    assert after[3] == before[3]
