"""Writes and reads OpenAI's chat completions, with thoughts; most providers and local servers use this protocol."""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.log.rules.calls import CallPiece
from chorus_cli.models.providers.chat_messages import chat_message, marked_messages, not_stored, reply_limit
from chorus_cli.models.providers.echoes import CALLED, NO_RULE, Called, EchoRule, Filler, Pieces, echo_rule, replayed
from chorus_cli.models.providers.failures import FailedError, Failure, Trouble
from chorus_cli.models.providers.parameters import NEWER_NAMES, chosen_effort, dialect
from chorus_cli.models.providers.servers import is_ollama
from chorus_cli.models.wire import protocol as wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.models.providers.chat_messages import Load
    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.rules.request import ModelRequest, PromptMessage

FORM = "chat"
FIELDS = ("reasoning_content", "reasoning")
"""The fields in which providers send readable thoughts; some providers send the same text in both."""

_DETAILS, _CONTENT, _CAME_IN = "reasoning_details", "content", "came_in"
_READABLE = ("text", "summary")
_GROWING = (*_READABLE, "data")
_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")


def with_thoughts(message: PromptMessage, shaped: wire.JsonObject, rule: EchoRule) -> wire.JsonObject:
    """Return ``shaped`` with the thoughts of ``message``, or a blank in place of missing ones, as ``rule`` requires."""
    if message.role != "assistant" or rule is NO_RULE:
        return shaped
    parts = list(replayed(message, FORM)) if message.thoughts else []
    own = [part for part in parts if isinstance(part, dict)]
    signed = {part.call.id: dict(part.own) for part in parts if isinstance(part, Called) and part.own}
    if signed:
        calls = wire.objects_at(shaped, "tool_calls")
        shaped["tool_calls"] = [call | signed.get(wire.text_at(call, "id"), {}) for call in calls]
    if rule.field == _CONTENT:
        chunks = [part for part in own if part.get("type") == "thinking"]
        content = shaped[_CONTENT]
        spoken = [{"type": "text", "text": content}] if content else []
        return shaped | {_CONTENT: [*chunks, *spoken]} if chunks else shaped
    details = [part for part in own if _CAME_IN not in part]
    if rule.field == _DETAILS and details:
        return shaped | {_DETAILS: details}
    came_in = next((wire.text_at(part, _CAME_IN) for part in own if _CAME_IN in part), FIELDS[0])
    field = {_DETAILS: "reasoning"}.get(rule.field, rule.field) or came_in
    text = message.thoughts.text if message.thoughts else ""
    if not text and (rule.filler is Filler.ALL or (rule.filler is Filler.CALLS and message.tool_calls)):
        text = " "
    return shaped | {field: text} if text else shaped


def with_short_ids(shaped: wire.JsonObject) -> wire.JsonObject:
    """Return a message whose call ids have nine letters or digits; some of Mistral's models take no other ids."""
    if "tool_call_id" in shaped:
        return shaped | {"tool_call_id": short_id(wire.text_at(shaped, "tool_call_id"))}
    if "tool_calls" not in shaped:
        return shaped
    calls = [each | {"id": short_id(wire.text_at(each, "id"))} for each in wire.objects_at(shaped, "tool_calls")]
    return shaped | {"tool_calls": calls}


def short_id(id_: str) -> str:
    """Return the id of a call if it has nine letters or digits, else the beginning of its SHA-256."""
    return id_ if _SHORT_ID.fullmatch(id_) else hashlib.sha256(id_.encode()).hexdigest()[:9]


_FIRST = (0, None)
_USAGE_NAMES = ("prompt_tokens", "completion_tokens", "total_tokens")
# Finish reasons that only some providers send, and their names in OpenAI's API.
_FINISH_REASONS = {"sensitive": "content_filter"} | dict.fromkeys(
    ("max_tokens", "model_length", "model_context_window_exceeded"), "length"
)
_ERROR_REASONS = ("error", "network_error", "insufficient_system_resource")
_OPTIONAL = frozenset({"temperature", "stream_options", "tool_choice", *NEWER_NAMES, *NEWER_NAMES.values()})


class ChatReader(wire.ReplyReader):
    """Reads one reply, and ignores all choices but the first."""

    form = FORM
    ends_by_mark = True

    def __init__(self) -> None:
        super().__init__()
        self._tags = wire.ThinkTags()
        self._came_in = ""
        self._details: dict[tuple[str, object], wire.JsonObject] = {}
        self._repeating: set[tuple[str, object]] = set()
        self._chunk: wire.JsonObject = {}
        self._pieces = Pieces()

    def end(self) -> Iterator[ModelEvent]:
        """Yield the remaining text, and ``ReplyEnd`` last."""
        for is_thought, text in self._tags.rest():
            yield from self._thought(text) if is_thought else self._text(text)
        yield from super().end()

    def _event(self, event: wire.JsonObject) -> Iterator[ModelEvent]:
        if event.get("error") or event.get("object") == "error":
            raise FailedError(Failure(body=event))
        self._counts = wire.object_at(event, "usage") or self._counts
        choices = wire.objects_at(event, "choices")
        yield from self._added(next((choice for choice in choices if choice.get("index") in _FIRST), {}))

    def _added(self, choice: wire.JsonObject) -> Iterator[ModelEvent]:
        reason = wire.text_at(choice, "finish_reason")
        if reason in _ERROR_REASONS:
            raise FailedError(Failure(Trouble.INVALID_RESPONSE, words="error at the provider"))
        self._finish_reason = _FINISH_REASONS.get(reason, reason) or self._finish_reason
        # A server that does not stream sends the whole message.
        delta = wire.object_at(choice, "delta") or wire.object_at(choice, "message")
        for thought in self._readable(delta):
            yield from self._thought(thought)
        for is_reasoning, text in self._texts(delta.get("content")):
            for is_thought, words in [(True, text)] if is_reasoning else self._tags.split(text):
                yield from self._thought(words) if is_thought else self._text(words)
        yield from self._text(wire.text_at(delta, "refusal"))
        for piece, signed in call_pieces(delta):
            self._call(piece)
            if signed:
                self._own.sign(CALLED, signed)

    def _texts(self, content: object) -> Iterator[tuple[bool, str]]:
        """Yield ``(is_thought, text)`` for each text in ``content``, which may be a list of parts."""
        if isinstance(content, str):
            yield False, content
        for part in content if isinstance(content, list) else []:
            match part:
                case {"type": "thinking", "thinking": list()}:
                    yield True, self._thought_chunk(part)
                case {"type": "thinking", "thinking": str(text)}:
                    yield True, text
                case {"text": str(text)} | str(text):
                    yield False, text
                case _:
                    pass

    def _readable(self, delta: wire.JsonObject) -> Iterator[str]:
        added = [self._join(piece) for piece in wire.objects_at(delta, _DETAILS)] if _DETAILS in delta else ()
        field = next((name for name in FIELDS if wire.text_at(delta, name)), "")
        if field not in {"", FIELDS[0], self._came_in}:
            self._came_in = field
            self._own.add({_CAME_IN: field})
        if field:
            yield wire.text_at(delta, field)
        else:
            yield from filter(None, added)

    def _thought_chunk(self, part: wire.JsonObject) -> str:
        """Record a piece of a thought, which Mistral sends as a part of the content, and return its text."""
        text = "".join(wire.text_at(each, "text") for each in wire.objects_at(part, "thinking"))
        if not self._chunk:
            self._chunk |= {"type": "thinking", "thinking": [{"type": "text", "text": self._pieces}]}
            self._own.add(self._chunk)
        self._pieces.append(text)
        self._chunk |= {name: part[name] for name in ("signature", "closed") if part.get(name) is not None}
        return text

    def _join(self, piece: wire.JsonObject) -> str:
        """Add a piece to the reasoning detail of its type and index; return the readable text that the piece adds."""
        key = wire.text_at(piece, "type"), wire.place_of(piece.get("index"))
        if key not in self._details:
            self._details[key] = {**piece}
            self._own.add(self._details[key])
        known, added = self._details[key], ""
        for name, value in piece.items():
            if name in _GROWING and isinstance(value, str):
                before = known.get(name)
                text = before if isinstance(before, Pieces) else Pieces()
                known[name] = text
                new = self._grown(key, text, value)
                added = added or (new if name in _READABLE else "")
            elif value is not None and (known.get(name) is None or name == "signature"):
                known[name] = value
        return added

    def _grown(self, key: tuple[str, object], text: Pieces, piece: str) -> str:
        """Add a piece to ``text``, and return only its new part: each piece from MiniMax repeats the earlier text."""
        if not piece:
            return ""
        # The comparison with the first piece excludes most pieces, so the whole text is not joined for each token.
        if text and len(piece) >= len(text) and piece.startswith(text[0]):
            before = "".join(text)
            if piece.startswith(before) and (len(piece) > len(before) or key in self._repeating):
                self._repeating.add(key)
                text[:] = [piece]
                return piece[len(before) :]
        text.append(piece)
        return piece

    def _usage(self, counts: wire.JsonObject) -> dict[str, int]:
        return chat_usage(counts)


class ChatCompletions:
    """Writes requests in this protocol; ``model_map`` knows models' longest replies, and which models cache prompts."""

    reader = ChatReader

    def __init__(self, model_map: ModelMap, load: Load = not_stored) -> None:
        self._model_map = model_map
        self._load = load
        self._encoded: dict[tuple[EchoRule, bool], wire.EncodedMessages[PromptMessage]] = {}

    def post(self, request: ModelRequest, endpoint: Endpoint) -> wire.Post:
        """Return the HTTP request that asks for a reply as a stream."""
        marked = marked_messages(request, self._model_map)
        parameters, efforts = self._parameters(request, endpoint), chosen_effort(request, endpoint)
        rule, has_short_ids = _rule(request, endpoint), endpoint.provider == "mistral"
        if (rule, has_short_ids) not in self._encoded:
            encode = partial(_encoded_message, load=self._load, rule=rule, has_short_ids=has_short_ids)
            self._encoded[rule, has_short_ids] = wire.EncodedMessages(encode)
        # The messages are by far the longest part, so their encoded bytes are cached and only joined here.
        messages = self._encoded[rule, has_short_ids].joined(marked)
        body = wire.object_bytes("messages", messages, parameters | efforts.parameters)
        fields = [field for field in FIELDS if rule is not NO_RULE and field not in endpoint.refused]
        optional = {name: name for name in (*(_OPTIONAL & parameters.keys()), *fields)}
        return wire.Post("/chat/completions", wire.openai_headers(endpoint), body, optional | efforts.optional)

    def _parameters(self, request: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
        """Return the fields of the body except messages, effort and fields that the server does not take."""
        spoken = dialect(endpoint)
        limit = spoken.reply_limit
        limit = NEWER_NAMES.get(limit, limit) if limit in endpoint.refused else limit
        parameters: dict[str, object] = {
            "model": endpoint.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": request.temperature,
            limit: reply_limit(request, self._model_map),
        }
        parameters |= offered_tools(request)
        left_out = spoken.omitted | endpoint.refused
        return {name: value for name, value in parameters.items() if value is not None and name not in left_out}


def offered_tools(request: ModelRequest) -> dict[str, object]:
    """Return the fields that declare a request's tools; Ollama cannot forbid calls, so a ban leaves out the tools."""
    is_ban_lost = is_ollama(request.model) and not request.may_call
    return {} if is_ban_lost else wire.offered(request, lambda tool: tool.declaration, {"tool_choice": "none"})


def chat_usage(counts: wire.JsonObject, written: str = "cache_write_tokens") -> dict[str, int]:
    """Return the token counts of a reply; ``written`` names the field of the prompt tokens that the cache stored."""
    details = wire.object_at(counts, "prompt_tokens_details")
    prompt, completion, total = (wire.count_at(counts, name) for name in _USAGE_NAMES)
    # Moonshot and DeepSeek report the cached tokens outside of the details.
    cached = wire.count_at(details, "cached_tokens") or wire.count_at(counts, "cached_tokens")
    cached = cached or wire.count_at(counts, "prompt_cache_hit_tokens")
    thought = wire.count_at(wire.object_at(counts, "completion_tokens_details"), "reasoning_tokens")
    if prompt + completion + thought == total:
        # xAI does not count thoughts as a part of the completion.
        completion += thought
    stored = wire.count_at(details, written)
    return wire.usage_of(prompt, completion, total, cached=cached, written=stored, thought=thought)


def _rule(request: ModelRequest, endpoint: Endpoint) -> EchoRule:
    rule = echo_rule(endpoint)
    # Providers behind a gateway may refuse thoughts in a request that turns thinking off.
    is_without = rule.field == _DETAILS and request.effort == "none"
    return NO_RULE if is_without or endpoint.refused & {*FIELDS} else rule


def _encoded_message(message: PromptMessage, load: Load, rule: EchoRule, *, has_short_ids: bool) -> bytes:
    message = wire.unsigned(message)
    shaped = with_thoughts(message, chat_message(message, load), rule)
    return wire.json_bytes(with_short_ids(shaped) if has_short_ids else shaped)


def call_pieces(delta: wire.JsonObject) -> Iterator[tuple[CallPiece, wire.JsonObject]]:
    """Yield each piece of a call in a chunk, and the fields that must be sent back with the call."""
    pieces = wire.objects_at(delta, "tool_calls")
    for piece in pieces:
        # Google's endpoint sends the signature of the call in this field.
        added: dict[str, object] = {"extra_content": found} if (found := wire.object_at(piece, "extra_content")) else {}
        place, function = wire.place_of(piece.get("index")), wire.object_at(piece, "function")
        yield _call_piece(place, wire.text_at(piece, "id"), function), added
    if not pieces and (function := wire.object_at(delta, "function_call")):
        yield _call_piece(0, "", function), {}  # OpenAI's older form has one call at most


def _call_piece(index: int | None, id_: str, function: wire.JsonObject) -> CallPiece:
    arguments = function.get("arguments") or ""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return CallPiece(index, id_, wire.text_at(function, "name"), written)
