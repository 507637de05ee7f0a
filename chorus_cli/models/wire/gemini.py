"""Writes requests in Gemini's own protocol, as contents made of parts, and reads the streamed replies."""

from __future__ import annotations

import json
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from chorus_cli.log.rules.calls import SIGNED, CallPiece, stored_calls
from chorus_cli.models.providers.chat_messages import content_of, not_stored
from chorus_cli.models.providers.echoes import CALLED, SAID, Called, Said, replayed
from chorus_cli.models.providers.failures import FailedError, Failure
from chorus_cli.models.providers.parameters import NO_EFFORT, chosen_effort
from chorus_cli.models.wire import protocol as wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chorus_cli.models.providers.chat_messages import Load
    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.rules.declaration import Tool
    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.rules.request import ModelRequest, PromptMessage

# Models before the third generation refuse ids of calls. A name without a number is newer only if it ends in -latest.
_OLDER, _UNNUMBERED = ("gemini-1", "gemini-2", "gemini-exp"), ("gemini-pro", "gemini-flash")

_FORM, _SIGNATURE = "gemini", "thoughtSignature"
_TEMPERATURE, _CALLS_FORBIDDEN = "temperature", "tool_config"

_FILTERED = "content_filter"
# All clients use the finish reasons of the OpenAI API. A reason that is not listed here means a normal end, ``stop``.
_FILTERS = (
    *("SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ESCALATION"),
    *("NO_IMAGE", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER"),
)
_FINISH_REASONS = {"MAX_TOKENS": "length"} | dict.fromkeys(_FILTERS, _FILTERED)


class _Part(NamedTuple):
    """A message to send; ``tool`` names the tool of a result, and ``has_ids`` says whether ids of calls are sent."""

    message: PromptMessage
    tool: str
    has_ids: bool


class GeminiReply(wire.ReplyReader):
    """Reads one reply: each event has the next parts of the first candidate, and the last event the finish reason."""

    form = _FORM

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    def _event(self, event: wire.JsonObject) -> Iterator[ModelEvent]:
        if error := wire.object_at(event, "error"):
            raise FailedError(Failure(status=wire.count_at(error, "code") or None, body=event))
        self._counts = wire.object_at(event, "usageMetadata") or self._counts
        if wire.text_at(wire.object_at(event, "promptFeedback"), "blockReason"):
            self._finish_reason = _FILTERED
        for candidate in wire.objects_at(event, "candidates"):
            if not candidate.get("index"):
                yield from self._candidate(candidate)

    def _candidate(self, candidate: wire.JsonObject) -> Iterator[ModelEvent]:
        for part in wire.objects_at(wire.object_at(candidate, "content"), "parts"):
            signature = wire.text_at(part, _SIGNATURE, "thought_signature")
            if call := wire.object_at(part, "functionCall", "function_call"):
                arguments = json.dumps(wire.object_at(call, "args"), ensure_ascii=False)
                self._call(CallPiece(self._calls, wire.text_at(call, "id"), wire.text_at(call, "name"), arguments))
                self._calls += 1
                if signature:
                    self._own.sign(CALLED, {_SIGNATURE: signature})
            elif part.get("thought") is True:
                yield from self._thought(wire.text_at(part, "text"))
            elif signature:
                # A signature belongs to one part, which may be empty, so the part is not joined to its neighbours.
                self._own.said("", is_apart=True)
                yield from self._text(wire.text_at(part, "text"))
                self._own.sign(SAID, {_SIGNATURE: signature})
            else:
                yield from self._text(wire.text_at(part, "text"))
        if reason := wire.text_at(candidate, "finishReason"):
            self._finish_reason = _FINISH_REASONS.get(reason, wire.STOP)

    def _usage(self, counts: wire.JsonObject) -> dict[str, int]:
        prompt, total = wire.count_at(counts, "promptTokenCount"), wire.count_at(counts, "totalTokenCount")
        completion, thought = wire.count_at(counts, "candidatesTokenCount"), wire.count_at(counts, "thoughtsTokenCount")
        if prompt + completion != total:
            completion += thought
        prompt += wire.count_at(counts, "toolUsePromptTokenCount")
        cached = wire.count_at(counts, "cachedContentTokenCount")
        return wire.usage_of(prompt, completion, total, cached=cached, thought=thought)


class GeminiContents:
    """The protocol for ``gemini/…`` models; ``model_map`` knows which models take system messages and which think."""

    reader = GeminiReply

    def __init__(self, model_map: ModelMap, load: Load = not_stored) -> None:
        self._model_map = model_map
        self._encoded = wire.EncodedMessages(partial(_content_json, load=load))

    def post(self, request: ModelRequest, endpoint: Endpoint) -> wire.Post:
        """Return the HTTP request that asks for a reply as a stream."""
        system = [message for message in request.messages if message.role == "system" and message.content.strip()]
        said = [message for message in request.messages if message.role != "system" and wire.is_filled(message)]
        effort = chosen_effort(request, endpoint) if self._model_map.thinks(request.model) else NO_EFFORT
        wanted = {_TEMPERATURE: request.temperature, "maxOutputTokens": request.max_output_tokens, **effort.parameters}
        told = {name: value for name, value in wanted.items() if value is not None and name not in endpoint.refused}
        fields: dict[str, object] = {"generationConfig": told} if told else {}
        optional = {_TEMPERATURE: _TEMPERATURE} if _TEMPERATURE in told else {}
        if request.tools:
            fields["tools"] = [{"functionDeclarations": [*map(_declaration, request.tools)]}]
        if request.tools and not request.may_call and _CALLS_FORBIDDEN not in endpoint.refused:
            fields["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
            optional[_CALLS_FORBIDDEN] = _CALLS_FORBIDDEN
        takes_system = self._model_map.supports(request.model, "system_messages")
        if system and (endpoint.model.startswith("gemini") if takes_system is None else takes_system):
            fields["systemInstruction"] = {"parts": [{"text": message.content} for message in system]}
        else:
            said = [message._replace(role="user") for message in system] + said
        contents = self._encoded.joined(_grouped(said, has_ids=_takes_ids(endpoint.model)))
        path = f"/models/{quote(endpoint.model)}:streamGenerateContent?alt=sse"
        headers = {"content-type": "application/json"} | ({"x-goog-api-key": endpoint.key} if endpoint.key else {})
        body = wire.object_bytes("contents", contents, fields)
        return wire.Post(path, headers | dict(endpoint.headers), body, optional | effort.optional)


def _declaration(tool: Tool) -> dict[str, object]:
    """Return the declaration of a tool; Gemini refuses empty fields in ``parameters``."""
    if tool.origin is not None:
        return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}
    schema = {name: value for name, value in tool.schema.items() if value}
    return {"name": tool.name, "description": tool.description, "parameters": schema}


def _takes_ids(model: str) -> bool:
    """Return whether calls and results are sent to ``model`` with the ids of the calls."""
    if model.startswith(_UNNUMBERED):
        return model.endswith("-latest")
    return model.startswith("gemini-") and not model.startswith(_OLDER)


def _grouped(messages: Sequence[PromptMessage], *, has_ids: bool) -> Iterator[tuple[_Part, ...]]:
    """Yield each run of messages of one role as a group; results of tools have a role of their own."""
    calling = (message.tool_calls for message in messages if message.tool_calls)
    names = {call.id: call.name for written in calling for call in stored_calls(written)}
    for _, group in groupby(messages, lambda message: message.role):
        yield tuple(_Part(message, names.get(message.tool_call_id or "", "tool"), has_ids) for message in group)


def _content_json(group: tuple[_Part, ...], load: Load) -> bytes:
    role = "model" if group[0].message.role == "assistant" else "user"
    return wire.json_bytes({"role": role, "parts": [part for message in group for part in _parts(message, load)]})


def _parts(part: _Part, load: Load) -> Iterator[dict[str, object]]:
    message = part.message
    if message.role == "tool":
        # Gemini wants an object as a result: the object that the tool wrote, or an object around the tool's text.
        written = wire.argument_object(message.content) if message.content.lstrip().startswith("{") else {}
        result: dict[str, object] = {"name": part.tool, "response": written or {"content": message.content}}
        yield {"functionResponse": result | _id(message.tool_call_id or "", part)}
        return
    if message.role != "assistant":
        parts, text = content_of(message, load)
        for inline in parts:
            yield {"inlineData": {"mimeType": inline.attachment.media_type, "data": inline.data}}
        if text.strip():
            yield {"text": text}
        return
    # Each part is sent with its own signature; a part that came without a signature gets none.
    for each in replayed(message, _FORM):
        match each:
            case Said(text, own):
                if text.strip() or own:
                    yield {"text": text, **own}
            case Called(call, own):
                called = {"name": call.name, "args": wire.argument_object(call.arguments)} | _id(call.id, part)
                signature = call.id.partition(SIGNED)[2]
                yield {"functionCall": called, **({_SIGNATURE: signature} if signature else {}), **own}
            case _:
                pass


def _id(id_: str, part: _Part) -> dict[str, object]:
    return {"id": wire.bare_id(id_)} if part.has_ids and wire.bare_id(id_) else {}
