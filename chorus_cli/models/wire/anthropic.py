"""Writes requests in Anthropic's Messages protocol, with cache markers, and reads the streamed replies."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from chorus_cli.log.rules.calls import CallPiece
from chorus_cli.models.providers.chat_messages import MARKER, content_of, marked_messages, not_stored, reply_limit
from chorus_cli.models.providers.echoes import Called, Pieces, Said, replayed
from chorus_cli.models.providers.failures import FailedError, Failure
from chorus_cli.models.providers.parameters import chosen_effort
from chorus_cli.models.wire import protocol as wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chorus_cli.models.providers.chat_messages import Load
    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.rules.declaration import Tool
    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.rules.request import ModelRequest, PromptMessage

_FORM, _PATH = "anthropic", "/v1/messages"
# The protocol requires a limit for the reply. This limit is sent if neither the request nor the map of models has one.
_DEFAULT_REPLY_TOKENS = 4096
_ONLY_TEMPERATURE = 1
_BAN: dict[str, object] = {"tool_choice": {"type": "none"}}
_OPTIONAL = frozenset({"temperature", "tool_choice"})
_LEAST_BUDGET_TOKENS, _LEAST_REPLY_TOKENS = 1024, 1024
_FORBIDDEN_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")

# All clients use the finish reasons of the OpenAI API. A reason that is not listed here means a normal end, ``stop``.
_FINISH_REASONS = {
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded", "compaction"), "length"),
    # The last two come from servers that translate another protocol into this one.
    **dict.fromkeys(("refusal", "content_filter", "content_filtered"), "content_filter"),
    "tool_use": "tool_calls",
}
_PROMPT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicReply(wire.ReplyReader):
    """Reads one reply, which arrives as content blocks in pieces."""

    form = _FORM

    def __init__(self) -> None:
        super().__init__()
        self._thinking: dict[str, Pieces] = {}

    def _event(self, event: wire.JsonObject) -> Iterator[ModelEvent]:
        match event.get("type"):
            case "message_start":
                self._count(wire.object_at(event, "message"))
            case "content_block_start":
                yield from self._begun(wire.object_at(event, "content_block"), event.get("index"))
            case "content_block_delta":
                yield from self._piece(wire.object_at(event, "delta"), event.get("index"))
            case "message_delta":
                self._count(event)
                self._end_for(wire.object_at(event, "delta"))
            case "message_stop":
                self._finish_reason = self._finish_reason or wire.STOP
                yield from self.end()
            case "error":
                raise FailedError(Failure(body=event))

    def _begun(self, block: wire.JsonObject, index: object) -> Iterator[ModelEvent]:
        match block.get("type"):
            case "text":
                yield from self._text(wire.text_at(block, "text"))
            case "thinking":
                self._thinking = {name: Pieces([wire.text_at(block, name)]) for name in ("thinking", "signature")}
                self._own.add(block | self._thinking)
                yield from self._thought(wire.text_at(block, "thinking"))
            case "redacted_thinking":
                self._own.add(block)
            case "tool_use":
                given, id_ = wire.object_at(block, "input"), wire.text_at(block, "id")
                arguments = json.dumps(given, ensure_ascii=False) if given else ""
                self._call(CallPiece(wire.place_of(index), id_, wire.text_at(block, "name"), arguments))

    def _piece(self, delta: wire.JsonObject, index: object) -> Iterator[ModelEvent]:
        match delta.get("type"):
            case "text_delta":
                yield from self._text(wire.text_at(delta, "text"))
            case "thinking_delta" if self._thinking:
                self._thinking["thinking"].append(wire.text_at(delta, "thinking"))
                yield from self._thought(wire.text_at(delta, "thinking"))
            case "signature_delta" if self._thinking:
                self._thinking["signature"].append(wire.text_at(delta, "signature"))
            case "input_json_delta":
                self._call(CallPiece(wire.place_of(index), arguments=wire.text_at(delta, "partial_json")))

    def _count(self, event: wire.JsonObject) -> None:
        """Merge token counts, because a later event has newer counts but may leave some of them out."""
        self._counts |= {name: count for name, count in wire.object_at(event, "usage").items() if count is not None}

    def _end_for(self, said: wire.JsonObject) -> None:
        if reason := wire.text_at(said, "stop_reason"):
            self._finish_reason = _FINISH_REASONS.get(reason, wire.STOP)

    def _usage(self, counts: wire.JsonObject) -> dict[str, int]:
        new, written, cached = (wire.count_at(counts, name) for name in _PROMPT_COUNTS)
        thought = wire.count_at(wire.object_at(counts, "output_tokens_details"), "thinking_tokens")
        reply = wire.count_at(counts, "output_tokens")
        return wire.usage_of(new + written + cached, reply, cached=cached, written=written, thought=thought)


class AnthropicMessages:
    """The protocol for ``anthropic/…`` models; ``model_map`` has their longest replies and their abilities."""

    reader = AnthropicReply

    def __init__(self, model_map: ModelMap, load: Load = not_stored) -> None:
        self._model_map = model_map
        self._encoded = wire.EncodedMessages(partial(_message_json, load=load))

    def post(self, request: ModelRequest, endpoint: Endpoint) -> wire.Post:
        """Return the HTTP request that asks for a reply as a stream."""
        marked = marked_messages(request, self._model_map)
        system = [_text_block(each) for each in marked if each.role == "system" and each.content.strip()]
        most = reply_limit(request, self._model_map) or self._model_map.output_tokens(request.model)
        most = most or _DEFAULT_REPLY_TOKENS
        fields: dict[str, object] = {"model": endpoint.model, "max_tokens": most, "stream": True}
        fields |= {"system": system} if system else {}
        effort = chosen_effort(request, endpoint)
        thinking = _thinking(effort.parameters, most)
        told = wire.offered(request, _declaration, _BAN)
        # A request for thinking takes only the temperature 1, and some models never take another temperature.
        takes_any = not thinking and self._model_map.takes_temperature(request.model)
        if request.temperature is not None and (takes_any or request.temperature == _ONLY_TEMPERATURE):
            told["temperature"] = request.temperature
        fields |= {name: value for name, value in told.items() if name not in _OPTIONAL & endpoint.refused} | thinking
        body = wire.object_bytes("messages", self._encoded.joined(_said(marked)), fields)
        optional = {name: name for name in _OPTIONAL & fields.keys()} | effort.optional
        headers = {"anthropic-version": "2023-06-01", "accept": "application/json", "content-type": "application/json"}
        headers |= ({"x-api-key": endpoint.key} if endpoint.key else {}) | dict(endpoint.headers)
        # The address may already end in a part of the path.
        begun = next((part for part in (_PATH, "/v1") if endpoint.address.endswith(part)), "")
        return wire.Post(_PATH.removeprefix(begun), headers, body, optional)


def _declaration(tool: Tool) -> dict[str, object]:
    return {"name": tool.name, "input_schema": tool.schema, "type": "custom", "description": tool.description}


def _said(messages: Sequence[PromptMessage]) -> Iterator[tuple[PromptMessage, ...]]:
    """Yield each run of messages from one side as a group, because the roles must alternate; leave out system messages.

    Claude refuses a blank message. It also refuses to continue a reply that ends with blanks.
    """
    said = [message for message in messages if message.role != "system" and wire.is_filled(message)]
    if said and said[-1].role == "assistant":
        said[-1] = said[-1]._replace(content=said[-1].content.rstrip())
    for _, group in groupby(said, lambda message: message.role == "assistant"):
        yield tuple(group)


def _message_json(group: tuple[PromptMessage, ...], load: Load) -> bytes:
    role = "assistant" if group[0].role == "assistant" else "user"
    return wire.json_bytes({"role": role, "content": [block for message in group for block in _blocks(message, load)]})


def _blocks(message: PromptMessage, load: Load) -> Iterator[dict[str, object]]:
    if message.role == "tool":
        id_ = _call_id(message.tool_call_id or "")
        yield {"type": "tool_result", "tool_use_id": id_, "content": message.content}
        return
    if message.attachments:
        parts, told = content_of(message, load)
        for part in parts:
            source = {"type": "base64", "media_type": part.attachment.media_type, "data": part.data}
            titled: wire.JsonObject = {"type": "document", "source": source, "title": part.attachment.name}
            yield {"type": "image", "source": source} if part.is_picture else titled
        message = message._replace(content=told)
    if message.role != "assistant":
        if message.content.strip():
            yield _text_block(message)
        return
    for each in replayed(message, _FORM):
        match each:
            case Said(text):
                # Claude refuses a blank text.
                if text.strip():
                    yield {"type": "text", "text": text}
            case Called(call):
                given = wire.argument_object(call.arguments)
                yield {"type": "tool_use", "id": _call_id(call.id), "name": call.name, "input": given}
            case _:
                yield each


def _thinking(parameters: dict[str, Any], reply_tokens: int) -> dict[str, Any]:
    """Return the parameters for thinking, with the budget cut below ``reply_tokens``; none if too little remains."""
    budget = wire.object_at(parameters, "thinking").get("budget_tokens")
    if not isinstance(budget, int):
        return parameters
    budget = min(budget, reply_tokens - _LEAST_REPLY_TOKENS)
    thinking = {"type": "enabled", "budget_tokens": budget}
    return {"thinking": thinking} if budget >= _LEAST_BUDGET_TOKENS else {}


def _text_block(message: PromptMessage) -> dict[str, object]:
    block: dict[str, object] = {"type": "text", "text": message.content}
    return block | {"cache_control": MARKER} if message.is_marked else block


def _call_id(id_: str) -> str:
    return _FORBIDDEN_IN_IDS.sub("_", wire.bare_id(id_)) or "call"
