"""Requests to a model, the thoughts in them, and a history as plain text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple

from chorus_cli.log.rules.attachments import Attachment, with_lines
from chorus_cli.log.rules.calls import calls_in_words

if TYPE_CHECKING:
    from chorus_cli.log.rules.messages import Thoughts
    from chorus_cli.models.rules.declaration import Tool

PromptRole = Literal["system", "user", "assistant", "tool"]


class PromptMessage(NamedTuple):
    """One message of a request; ``tool_calls`` is JSON text in the shape of the OpenAI API.

    ``tool_call_id`` names the call that a tool message answers. ``attachments``, which the model takes, go before the
    content of a user's message. ``thoughts`` are the model's own, in the form that it sent.
    """

    role: PromptRole
    content: str
    tool_calls: str | None = None
    tool_call_id: str | None = None
    attachments: tuple[Attachment, ...] = ()
    thoughts: Thoughts | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: the model's name as litellm knows it, the messages, and the sampling settings that were set.

    ``context_tokens`` is the budget for the request and its reply together, ``prompt_tokens`` the expected size of the
    request. Without ``may_call`` the ``tools`` are declared all the same, as providers cache them, but must not be
    called. ``effort`` is how much to think: none, low, medium or high; ``None`` leaves that to the provider.
    """

    model: str
    messages: tuple[PromptMessage, ...]
    temperature: float | None = None
    max_output_tokens: int | None = None
    context_tokens: int | None = None
    prompt_tokens: int | None = None
    tools: tuple[Tool, ...] = ()
    may_call: bool = True
    effort: str | None = None


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
    earlier = ((without_calls(message), message.attachments) for message in request.messages[:asked])
    plain = (PromptMessage(worded.role, with_lines(worded.content, files)) for worded, files in earlier)
    return replace(request, messages=(*plain, *request.messages[asked:]))


class Span(Enum):
    """How long a model is sent its own thoughts again."""

    NEVER = "never"
    TURN = "within the turn"
    EVER = "for ever"


class Echo(NamedTuple):
    """Which thoughts a model is sent again: for how long, and of all replies or of ``calls_only``.

    Thoughts that are ``is_bound`` hold while everything before them stays. With ``own_calls_only`` the model takes no
    call of another one.
    """

    span: Span = Span.NEVER
    calls_only: bool = True
    is_bound: bool = False
    own_calls_only: bool = False


NO_ECHO = Echo()
