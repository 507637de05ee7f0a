"""Writes a prompt in the shape of the OpenAI API, which litellm translates for every provider.

The providers of Claude cache the beginning of a prompt for some minutes, at a tenth of its price, but only up to
explicit markers. The others recognise a repeated beginning by themselves.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.text.surrogates import join_surrogates
from chorus_cli.models.providers.attached import content_of, not_stored
from chorus_cli.models.rules.plain_history import without_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.models.providers.attached import Load, Part
    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.rules.request import ModelRequest, PromptMessage

# Providers to which litellm passes markers on; others may refuse them, or messages that are not plain text.
_PROVIDERS_BY_MARKER = ("anthropic", "azure_ai", "bedrock", "bedrock_converse", "vertex_ai")
_CLAUDE = "claude"
_MARKER = {"type": "ephemeral"}
# The newest question, up to where the next request will repeat this one, and the one before, up to where this request
# repeats the last. With the system message that makes three of the four markers that a request may have.
_MARKED_QUESTIONS = 2
_MISJUDGED = 1.05
"""Safety factor for token estimates, which may be too small."""


class MarkedMessage(NamedTuple):
    """A message to be sent, and whether it bears a cache marker."""

    message: PromptMessage
    is_marked: bool


def wants_markers(model: str, model_map: ModelMap) -> bool:
    """Return whether ``model`` is a Claude whose provider caches prompts up to markers."""
    prefix, slash, _ = model.partition("/")
    if _CLAUDE not in model or (slash and prefix not in _PROVIDERS_BY_MARKER):
        return False
    return model_map.caches_prompts(model)


def reply_limit(request: ModelRequest, model_map: ModelMap) -> int | None:
    """Return the maximum length of the reply, in tokens; ``None`` if the provider need not be told.

    By default litellm asks Claude for its longest possible reply, and a request that leaves no room for that would be
    refused. Of a Claude that its map does not list it asks for a short one.
    """
    longest = model_map.output_tokens(request.model)
    if request.max_output_tokens is not None or request.context_tokens is None or request.prompt_tokens is None:
        return request.max_output_tokens
    # The user's limit for a request does not tell the model's own limit.
    holds = model_map.limit_tokens(request.model) or request.context_tokens
    room = holds - int(request.prompt_tokens * _MISJUDGED)
    if longest is None or not wants_markers(request.model, model_map):
        return None
    if room >= longest:
        return longest if model_map.relative(request.model) else None
    return max(1, room)


def accepted_messages(request: ModelRequest) -> tuple[PromptMessage, ...]:
    """Return the messages of a request as its model accepts them.

    Claude refuses calls of tools and their results in a request that offers no tools, so they are put into words.
    """
    if request.tools or _CLAUDE not in request.model:
        return request.messages
    return tuple(map(without_calls, request.messages))


def marked_messages(messages: Sequence[PromptMessage], *, with_markers: bool) -> list[MarkedMessage]:
    """Return ``messages`` as they are sent, those up to which the prompt is cached marked if asked for."""
    marked = _marked(messages) if with_markers else frozenset()
    return [MarkedMessage(message, is_marked=place in marked) for place, message in enumerate(messages)]


def chat_message(marked: MarkedMessage, load: Load = not_stored) -> dict[str, object]:
    """Return a message in the shape of the OpenAI API; ``load`` returns the bytes of attachments."""
    message = marked.message
    translated: dict[str, object] = {"role": message.role, "content": _content(marked, load)}
    if message.tool_calls is not None:
        translated["tool_calls"] = json.loads(message.tool_calls)
    if message.tool_call_id is not None:
        translated["tool_call_id"] = message.tool_call_id
    return translated


def _content(marked: MarkedMessage, load: Load) -> object:
    """Return the content of a message: a text, or a list if it has a marker or parts."""
    content = content_of(marked.message, load)
    text = join_surrogates(content.text)
    if not content.parts and not marked.is_marked:
        return text
    block: dict[str, object] = {"type": "text", "text": text} if text.strip() or not content.parts else {}
    if block and marked.is_marked:
        block["cache_control"] = _MARKER
    return [*map(_part, content.parts), *([block] if block else [])]


def _part(part: Part) -> dict[str, object]:
    if part.is_picture:
        return {"type": "image_url", "image_url": {"url": part.address}}
    return {"type": "file", "file": {"filename": join_surrogates(part.attachment.name), "file_data": part.address}}


def _marked(messages: Sequence[PromptMessage]) -> frozenset[int]:
    """Return the indexes of the messages to mark; a marker on an empty text would be refused."""
    filled = [(place, message.role) for place, message in enumerate(messages) if message.content.strip()]
    systems = [place for place, role in filled if role == "system"]
    questions = [place for place, role in filled if role == "user"]
    return frozenset(systems[:1] + questions[-_MARKED_QUESTIONS:])
