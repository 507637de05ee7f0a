"""Earlier turns in plain words, for a provider that refuses a history because of what came with its text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.log.rules.attachments import with_lines
from chorus_cli.log.rules.calls import calls_in_words
from chorus_cli.models.rules.request import PromptMessage

if TYPE_CHECKING:
    from chorus_cli.models.rules.request import ModelRequest


def without_calls(message: PromptMessage) -> PromptMessage:
    """Return a message with its calls of tools, or the result that it is, in words."""
    if message.role == "tool":
        return PromptMessage("user", f"[tool result: {message.content}]")
    if message.tool_calls is None:
        return message
    called = f"[tool call: {calls_in_words(message.tool_calls)}]"
    return PromptMessage(message.role, f"{message.content}\n{called}".strip())


def with_plain_history(request: ModelRequest) -> ModelRequest:
    """Return a request in which every turn but the newest is plain words: no calls, no thoughts, no attachments."""
    asked = max((place for place, message in enumerate(request.messages) if message.role == "user"), default=0)
    return replace(request, messages=(*map(_plain, request.messages[:asked]), *request.messages[asked:]))


def _plain(message: PromptMessage) -> PromptMessage:
    worded = without_calls(message)
    return PromptMessage(worded.role, with_lines(worded.content, message.attachments))
