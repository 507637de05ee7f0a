"""Writes and reads OpenAI's Responses protocol: items, including encrypted thoughts that the model wants back."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.log.rules.calls import CallPiece
from chorus_cli.models.providers.chat_messages import content_of, not_stored, reply_limit
from chorus_cli.models.providers.echoes import SAID, Called, Said, replayed
from chorus_cli.models.providers.failures import FailedError, Failure
from chorus_cli.models.providers.parameters import NO_EFFORT, chosen_effort, dialect
from chorus_cli.models.wire import protocol as wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.models.providers.chat_messages import Load, Part
    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.rules.declaration import Tool
    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.rules.request import ModelRequest, PromptMessage

_FORM, _SUMMARY = "responses", "reasoning.summary"
_OPTIONAL = frozenset({"temperature", "tool_choice", "max_output_tokens", "include"})
# All clients use the finish reasons of OpenAI's older protocol, chat completions.
_FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
_PARAGRAPH = "\n\n"
_UNKNOWN_ITEM = re.compile(r"\bitem with id\b", re.IGNORECASE)


class ResponsesReply(wire.ReplyReader):
    """Reads one reply, item by item: each item is added, then grows by pieces, and then is done."""

    form = _FORM
    ends_by_mark = True

    def __init__(self) -> None:
        super().__init__()
        self._grown: set[int | None] = set()
        self._speaking: int | None = None

    def _event(self, event: wire.JsonObject) -> Iterator[ModelEvent]:
        match wire.text_at(event, "type"):
            case "response.completed" | "response.incomplete":
                self._end_for(wire.object_at(event, "response"))
                yield from self.end()
            case "response.failed":
                raise FailedError(Failure(body=wire.object_at(event, "response")))
            case "error":
                raise FailedError(Failure(body=wire.object_at(event, "error") or event))
            case kind:
                yield from self._piece(kind, event, wire.place_of(event.get("output_index")))

    def _piece(self, kind: str, event: wire.JsonObject, index: int | None) -> Iterator[ModelEvent]:
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._grown.add(index)
                yield from self._spoken(wire.text_at(event, "delta"), index)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._grown.add(index)
                yield from self._thought(wire.text_at(event, "delta"))
            case "response.reasoning_summary_part.added" if wire.count_at(event, "summary_index"):
                yield from self._thought(_PARAGRAPH)
            case "response.output_item.added":
                self._begun(wire.object_at(event, "item"), index)
            case "response.function_call_arguments.delta":
                self._grown.add(index)
                self._call(CallPiece(index, arguments=wire.text_at(event, "delta")))
            case "response.output_item.done":
                yield from self._ended(wire.object_at(event, "item"), index)

    def _spoken(self, text: str, index: int | None) -> Iterator[ModelEvent]:
        """Yield a piece of a message, with a blank line before it if an earlier message of the reply has text."""
        if text and self._speaking not in {None, index}:
            yield from self._text(_PARAGRAPH)
            # The provider gets its message back without the blank line.
            self._own.said("", is_apart=True)
        self._speaking = index if text else self._speaking
        yield from self._text(text)

    def _begun(self, item: wire.JsonObject, index: int | None) -> None:
        if item.get("type") == "function_call":
            self._call(CallPiece(index, wire.text_at(item, "call_id", "id"), wire.text_at(item, "name")))

    def _ended(self, item: wire.JsonObject, index: int | None) -> Iterator[ModelEvent]:
        """Yield the texts of a whole item if they did not come in pieces, and record the parts to send back."""
        has_come = index in self._grown
        match item.get("type"):
            case "reasoning":
                if not has_come:
                    parts = wire.objects_at(item, "summary") or wire.objects_at(item, "content")
                    yield from self._thought(_PARAGRAPH.join(wire.text_at(part, "text") for part in parts))
                # The provider stores nothing, so it could not find thoughts that are sent back without their content.
                if item.get("encrypted_content") or item.get("content"):
                    self._own.add(item)
            case "function_call" if not has_come:
                self._call(CallPiece(index, arguments=wire.text_at(item, "arguments")))
            case "message":
                for part in [] if has_come else wire.objects_at(item, "content"):
                    yield from self._spoken(wire.text_at(part, "text", "refusal"), index)
                if phase := wire.text_at(item, "phase"):
                    self._own.sign(SAID, {"phase": phase})

    def _end_for(self, response: wire.JsonObject) -> None:
        reason = wire.text_at(wire.object_at(response, "incomplete_details"), "reason")
        self._finish_reason = _FINISH_REASONS.get(reason, "length") if reason else wire.STOP
        self._counts = wire.object_at(response, "usage")

    def _usage(self, counts: wire.JsonObject) -> dict[str, int]:
        prompt, completion = wire.count_at(counts, "input_tokens"), wire.count_at(counts, "output_tokens")
        details = wire.object_at(counts, "input_tokens_details")
        cached, written = wire.count_at(details, "cached_tokens"), wire.count_at(details, "cache_write_tokens")
        thought = wire.count_at(wire.object_at(counts, "output_tokens_details"), "reasoning_tokens")
        total = wire.count_at(counts, "total_tokens")
        return wire.usage_of(prompt, completion, total, cached=cached, written=written, thought=thought)


class OpenAIResponses:
    """Writes requests that ask the provider to store nothing; ``model_map`` knows which models think."""

    reader = ResponsesReply

    def __init__(self, model_map: ModelMap, load: Load = not_stored) -> None:
        self._model_map = model_map
        self._encoded = wire.EncodedMessages(partial(_items_json, load=load))

    def post(self, request: ModelRequest, endpoint: Endpoint) -> wire.Post:
        """Return the HTTP request that asks for a reply as a stream."""
        said = [message for message in request.messages if message.role != "system" and wire.is_filled(message)]
        system = [each.content for each in request.messages if each.role == "system" and each.content.strip()]
        effort = NO_EFFORT if self._model_map.thinks(request.model) is False else chosen_effort(request, endpoint)
        fields: dict[str, object] = {"model": endpoint.model, "stream": True, "store": False}
        fields |= {"instructions": _PARAGRAPH.join(system)} if system else {}
        told: dict[str, object] = {
            "include": ["reasoning.encrypted_content"],
            "temperature": request.temperature,
            "max_output_tokens": reply_limit(request, self._model_map),
        } | wire.offered(request, _declaration, {"tool_choice": "none"})
        left_out = dialect(endpoint).omitted | endpoint.refused
        fields |= {name: value for name, value in told.items() if value is not None and name not in left_out}
        fields |= _reasoning(effort.parameters, endpoint)
        optional = {name: name for name in _OPTIONAL & fields.keys()} | effort.optional | {_SUMMARY: _SUMMARY}
        body = wire.object_bytes("input", self._encoded.joined(said), fields)
        return wire.Post("/responses", wire.openai_headers(endpoint), body, optional)


def has_no_responses(failure: Failure) -> bool:
    """Return whether a failure shows that the server does not speak this protocol."""
    return failure.status in {404, 405} and not _UNKNOWN_ITEM.search(str(failure.body))


def _reasoning(parameters: dict[str, wire.JsonObject], endpoint: Endpoint) -> dict[str, object]:
    """Return the parameters for thinking, without the summary if the server has refused it."""
    if _SUMMARY not in endpoint.refused or "reasoning" not in parameters:
        return {**parameters}
    rest = {name: value for name, value in parameters["reasoning"].items() if name != "summary"}
    return {"reasoning": rest} if rest else {}


def _declaration(tool: Tool) -> dict[str, object]:
    declared = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", **declared, "strict": False}


def _items_json(message: PromptMessage, load: Load) -> bytes:
    return b",".join(map(wire.json_bytes, _items(message, load)))


def _items(message: PromptMessage, load: Load) -> Iterator[dict[str, object]]:
    if message.role == "tool":
        id_ = wire.bare_id(message.tool_call_id or "")
        yield {"type": "function_call_output", "call_id": id_, "output": message.content}
    elif message.role == "assistant":
        yield from _said(message)
    else:
        parts, text = content_of(message, load)
        said: list[dict[str, object]] = [{"type": "input_text", "text": text}] if text.strip() else []
        yield {"type": "message", "role": "user", "content": [*map(_part, parts), *said] if parts else text}


def _said(message: PromptMessage) -> Iterator[dict[str, object]]:
    """Yield the items of a reply, without thoughts that no text or call follows, because the server refuses them."""
    thoughts: list[dict[str, object]] = []
    for part in replayed(message, _FORM):
        match part:
            case Said(text, own):
                items = [{"type": "message", "role": "assistant", "content": text, **own}] if text.strip() else []
            case Called(call):
                id_ = wire.bare_id(call.id)
                items = [{"type": "function_call", "call_id": id_, "name": call.name, "arguments": call.arguments}]
            case _:
                thoughts.append(part)
                continue
        if items:
            yield from (*thoughts, *items)
            thoughts = []


def _part(part: Part) -> dict[str, object]:
    if part.is_picture:
        return {"type": "input_image", "image_url": part.address, "detail": "auto"}
    return {"type": "input_file", "filename": join_surrogates(part.attachment.name), "file_data": part.address}
