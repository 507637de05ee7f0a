"""OpenAI's chat completions, which most providers and local servers speak."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.adapters.models.attached import not_stored
from chorus_cli.adapters.models.chat_messages import (
    accepted_messages,
    chat_message,
    marked_messages,
    reply_limit,
    wants_markers,
)
from chorus_cli.adapters.models.failures import FailedError, Failure, Trouble
from chorus_cli.adapters.models.wire.dialects import dialect
from chorus_cli.adapters.models.wire.encoded import EncodedMessages
from chorus_cli.adapters.models.wire.protocol import Post
from chorus_cli.adapters.models.wire.received import (
    ReplyParts,
    cache_counts,
    count_at,
    json_objects,
    object_at,
    objects_at,
    text_at,
)
from chorus_cli.adapters.models.wire.refusals import NEWER_NAMES
from chorus_cli.adapters.models.wire.thinking import ThinkTags
from chorus_cli.adapters.models.wire.writing import json_bytes, object_bytes, unsigned
from chorus_cli.core.tools.calls import CallPiece

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.adapters.models.attached import Load
    from chorus_cli.adapters.models.chat_messages import MarkedMessage
    from chorus_cli.adapters.models.model_map import ModelMap
    from chorus_cli.adapters.models.providers import Endpoint
    from chorus_cli.adapters.models.wire.dialects import Dialect
    from chorus_cli.adapters.models.wire.received import JsonObject
    from chorus_cli.core.models.events import ModelEvent
    from chorus_cli.core.models.exchange import ModelRequest

_FORM = "chat"
_PATH = "/chat/completions"
_DONE = "[DONE]"
_FIRST = (0, None)
_USAGE_NAMES = ("prompt_tokens", "completion_tokens", "total_tokens")
# Names that only some providers have for a reason.
_FINISH_REASONS = {
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "sensitive": "content_filter",
}
_ERROR_REASONS = ("error", "network_error", "insufficient_system_resource")
_OPTIONAL = frozenset(
    {"temperature", "stream_options", "tool_choice", "reasoning_effort", *NEWER_NAMES, *NEWER_NAMES.values()}
)


class ChatCompletions:
    """The protocol; ``model_map`` tells how long replies may be, and which models cache prompts.

    ``load`` returns the bytes of attachments.
    """

    def __init__(self, model_map: ModelMap, load: Load = not_stored) -> None:
        self._model_map = model_map
        self._messages = EncodedMessages(partial(_encoded_message, load=load))
        self._messages_with_thoughts = EncodedMessages(partial(_encoded_with_thoughts, load=load))

    def post(self, request: ModelRequest, endpoint: Endpoint) -> Post:
        """Return the HTTP request that asks for a reply as a stream."""
        headers = {"Content-Type": "application/json"}
        if endpoint.key:
            headers["Authorization"] = f"Bearer {endpoint.key}"
        headers |= endpoint.headers
        marked = marked_messages(accepted_messages(request), with_markers=wants_markers(request.model, self._model_map))
        # The messages, the longest part by far, are joined from the bytes of each.
        spoken = dialect(endpoint)
        parameters = self._parameters(request, endpoint, spoken)
        messages = self._messages_with_thoughts if spoken.wants_thoughts else self._messages
        body = object_bytes("messages", messages.joined(marked), parameters)
        return Post(_PATH, headers, body, _OPTIONAL & parameters.keys())

    def reader(self) -> ChatReader:
        """Return a reader for the reply to one request."""
        return ChatReader()

    def _parameters(self, request: ModelRequest, endpoint: Endpoint, spoken: Dialect) -> dict[str, object]:
        """Return everything in the body but the messages, without the parameters that the server does not take."""
        parameters: dict[str, object] = {
            "model": endpoint.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": request.temperature,
            _reply_limit_name(spoken, endpoint): reply_limit(request, self._model_map),
        }
        if request.tools:
            parameters["tools"] = [tool.declaration for tool in request.tools]
            parameters["tool_choice"] = None if request.may_call else "none"
            parameters |= spoken.with_tools
        left_out = spoken.omitted | endpoint.refused
        return {name: value for name, value in parameters.items() if value is not None and name not in left_out}


class ChatReader:
    """Reads one reply; of several choices only the first counts."""

    def __init__(self) -> None:
        self._tags = ThinkTags()
        self._parts = ReplyParts(_FORM)
        self._finish_reason: str | None = None
        self._usage: JsonObject = {}

    def events(self, data: str) -> Iterator[ModelEvent]:
        """Yield the events in the data of one server-sent event; at ``[DONE]`` the end of the reply.

        Raises:
            FailedError: the event tells of an error, or is no chunk of a reply.
        """
        for chunk in json_objects(data):
            if chunk.get("error") or chunk.get("object") == "error":
                raise FailedError(Failure(body=chunk))
            self._usage = object_at(chunk, "usage") or self._usage
            choices = objects_at(chunk, "choices")
            yield from self._added(next((choice for choice in choices if choice.get("index") in _FIRST), {}))
        if data.strip() == _DONE:
            # A server that ends the stream as it should may leave out the reason.
            self._finish_reason = self._finish_reason or "stop"
            yield from self.end()

    def end(self) -> Iterator[ModelEvent]:
        """Yield the remaining text, and the end: without a finish reason, as no ``[DONE]`` came either."""
        for is_reasoning, text in self._tags.rest():
            yield from self._said(text, is_reasoning=is_reasoning)
        usage = {name: figure for name in _USAGE_NAMES if isinstance(figure := self._usage.get(name), int)}
        yield from self._parts.end(self._finish_reason, usage | cache_counts(*_cached(self._usage)))

    def _added(self, choice: JsonObject) -> Iterator[ModelEvent]:
        """Yield the texts of a choice, and keep its calls and its finish reason for the end.

        Raises:
            FailedError: its finish reason is an error.
        """
        reason = text_at(choice, "finish_reason")
        if reason in _ERROR_REASONS:
            raise FailedError(Failure(Trouble.INVALID_RESPONSE, words="error at the provider"))
        self._finish_reason = _FINISH_REASONS.get(reason, reason) or self._finish_reason
        # A server that does not stream sends the whole message.
        delta = object_at(choice, "delta") or object_at(choice, "message")
        for piece in _call_pieces(delta):
            self._parts.call(piece)
        # Some providers send their reasoning by one name, some by the other, some by both.
        yield from self._parts.reasoning(text_at(delta, "reasoning_content") or text_at(delta, "reasoning"))
        for is_reasoning, text in _texts(delta.get("content")):
            for is_thought, piece_of_text in [(True, text)] if is_reasoning else self._tags.split(text):
                yield from self._said(piece_of_text, is_reasoning=is_thought)
        yield from self._parts.text(text_at(delta, "refusal"))

    def _said(self, text: str, *, is_reasoning: bool) -> Iterator[ModelEvent]:
        return self._parts.reasoning(text) if is_reasoning else self._parts.text(text)


def _cached(usage: JsonObject) -> tuple[int, int]:
    """Return the tokens that the cache served and stored: OpenAI, OpenRouter and others say both, DeepSeek one."""
    details = object_at(usage, "prompt_tokens_details")
    cached = count_at(details, "cached_tokens") or count_at(usage, "prompt_cache_hit_tokens")
    return cached, count_at(details, "cache_write_tokens")


def _reply_limit_name(spoken: Dialect, endpoint: Endpoint) -> str:
    """Return the parameter that limits the reply: the newer one if the server refuses the older."""
    name = spoken.reply_limit
    return NEWER_NAMES.get(name, name) if name in endpoint.refused else name


def _encoded_message(marked: MarkedMessage, load: Load) -> bytes:
    return json_bytes(_shaped(marked, load))


def _encoded_with_thoughts(marked: MarkedMessage, load: Load) -> bytes:
    """Return a message for a model that wants its thoughts back: the log has none, and a blank stands for them."""
    message = _shaped(marked, load)
    return json_bytes(message | {"reasoning_content": " "} if "tool_calls" in message else message)


def _shaped(marked: MarkedMessage, load: Load) -> dict[str, object]:
    return chat_message(marked._replace(message=unsigned(marked.message)), load)


def _texts(content: object) -> Iterator[tuple[bool, str]]:
    """Yield the texts of a content, which may be a list of parts, and whether each is reasoning."""
    if isinstance(content, str):
        yield False, content
    for part in content if isinstance(content, list) else []:
        match part:
            case {"type": "thinking", "thinking": [*thoughts]}:
                yield from ((True, text) for _, text in _texts(thoughts))
            case {"type": "thinking", "thinking": str(text)}:
                yield True, text
            case {"text": str(text)} | str(text):
                yield False, text
            case _:
                pass


def _call_pieces(delta: JsonObject) -> Iterator[CallPiece]:
    """Yield the pieces of calls in a chunk, also of the single call of OpenAI's older protocol."""
    pieces = objects_at(delta, "tool_calls")
    for piece in pieces:
        index = piece.get("index")
        yield _call_piece(index if isinstance(index, int) else None, text_at(piece, "id"), object_at(piece, "function"))
    if not pieces and (function := object_at(delta, "function_call")):
        yield _call_piece(0, "", function)


def _call_piece(index: int | None, id_: str, function: JsonObject) -> CallPiece:
    arguments = function.get("arguments") or ""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return CallPiece(index, id_, text_at(function, "name"), written)
