"""Requests to a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from chorus_cli.log.rules.attachments import Attachment
    from chorus_cli.log.rules.messages import Thoughts
    from chorus_cli.models.rules.declaration import Tool

PromptRole = Literal["system", "user", "assistant", "tool"]


class PromptMessage(NamedTuple):
    """One message of a request: a tuple, as `Message` is.

    ``tool_calls`` is JSON text in the shape of the OpenAI API, on assistant messages that call tools;
    ``tool_call_id`` names the call that a tool message answers. ``attachments`` are the files that go before the
    content of a user's message; the model takes them. ``thoughts`` are the model's own, in the form that it sent.
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

    ``context_tokens`` is the budget for the request and its reply together, which some servers need to know;
    ``prompt_tokens`` is the expected size of the request. ``tools`` are offered to the model; without ``may_call`` they
    are declared all the same, as they belong to what a provider's cache knows, but must not be called. ``effort`` says
    how much the model should think: none, low, medium or high; ``None`` leaves that to the provider.
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
