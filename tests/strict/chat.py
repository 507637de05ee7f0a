"""Chat completions, as several providers speak them: where thoughts come and go back, and what is refused."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.loopback_server import Asked
from tests.models.providers.fault_server import DONE, event
from tests.strict.server import (
    NO_ECHO,
    Body,
    EchoRule,
    RefusedError,
    Reply,
    Said,
    Sent,
    Streamed,
    StrictProtocol,
    Thinking,
    check_thoughts,
    newest_question,
)

_BASE_FIELDS = {"role", "content", "tool_calls", "tool_call_id"}
_PARAMETERS = {
    *("model", "messages", "stream", "stream_options", "temperature", "max_tokens", "max_completion_tokens"),
    *("tools", "tool_choice"),
}
UNKNOWN = "Unknown parameter: 'messages[{place}].{field}'."
_SIGNATURE_MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly."
)


class ThoughtForm(NamedTuple):
    """Where thoughts stand: in which deltas they come, beside which call, and what a message has of them."""

    deltas: Callable[[Thinking], list[Body]]
    own: Callable[[Thinking, Reply], Body | None]
    on_first_call: Callable[[Thinking], Body] = lambda _thinking: {}


def halves(text: str) -> tuple[str, str]:
    """Return two pieces: one ends with a blank, or with half a character of UTF-16, as some servers cut."""
    units = "".join(map(chr, array("H", text.encode("utf-16-le"))))
    half = next((place for place, unit in enumerate(units, 1) if "\ud800" <= unit < "\udc00"), 0)
    at = half or units.find(" ", len(units) // 2) + 1 or len(units) // 2
    return units[:at], units[at:]


def parts(text: str) -> tuple[str, str]:
    """Return two pieces of whole characters."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def in_field(name: str, *also: str) -> ThoughtForm:
    """Return the form of thoughts that come in ``name``, and the same in other fields, and go back in the first."""

    def deltas(thinking: Thinking) -> list[Body]:
        return [dict.fromkeys((name, *also), piece) for piece in ("", *halves(thinking.words))]

    return ThoughtForm(deltas, lambda thinking, _reply: {name: thinking.words})


def _minimax_deltas(thinking: Thinking) -> list[Body]:
    first, last = parts(thinking.words)
    pieces = zip((first, last), (first, thinking.words), strict=True)
    return [{"reasoning_content": piece, "reasoning_details": [_minimax_detail(whole)]} for piece, whole in pieces]


def _minimax_detail(text: str) -> Body:
    fixed = {"type": "reasoning.text", "id": "reasoning-text-1", "format": "MiniMax-response-v1", "index": 0}
    return fixed | {"text": text}


def _openrouter_deltas(thinking: Thinking) -> list[Body]:
    """Return the details of Claude and those of OpenAI by turns; the latter number their parts alike."""
    first, last = halves(thinking.words)
    if thinking.number % 2:
        kind = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
        pieces = [kind | {"text": first}, kind | {"text": last}, kind | {"signature": thinking.signature}]
    else:
        kind = {"format": "openai-responses-v1", "index": 0}
        summary = kind | {"type": "reasoning.summary", "id": None}
        hidden = kind | {"type": "reasoning.encrypted", "id": f"rs_{thinking.number}", "data": thinking.signature}
        pieces = [summary | {"summary": first}, summary | {"summary": last}, hidden]
    words = [first, last, None]
    return [{"reasoning": text, "reasoning_details": [piece]} for text, piece in zip(words, pieces, strict=True)]


def _openrouter_own(thinking: Thinking, _reply: Reply) -> Body:
    if thinking.number % 2:
        text = {"text": thinking.words, "signature": thinking.signature}
        return {"reasoning_details": [{"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, **text}]}
    kind = {"format": "openai-responses-v1", "index": 0}
    hidden = {"type": "reasoning.encrypted", "id": f"rs_{thinking.number}", "data": thinking.signature}
    return {"reasoning_details": [kind | {"type": "reasoning.summary", "summary": thinking.words}, kind | hidden]}


def _chunk(text: str) -> Body:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _google_own(thinking: Thinking, reply: Reply) -> Body | None:
    return {"calls": {0: _google_signature(thinking)}} if reply.calls else None


def _google_signature(thinking: Thinking) -> Body:
    return {"extra_content": {"google": {"thought_signature": thinking.signature}}}


MINIMAX = ThoughtForm(_minimax_deltas, lambda thought, _reply: {"reasoning_details": [_minimax_detail(thought.words)]})
OPENROUTER = ThoughtForm(_openrouter_deltas, _openrouter_own)
MISTRAL = ThoughtForm(
    lambda thinking: [{"content": [_chunk(piece)]} for piece in halves(thinking.words)],
    lambda thinking, _reply: {"content": [_chunk(thinking.words)]},
)
GOOGLE = ThoughtForm(lambda _thinking: [], _google_own, _google_signature)
HIDDEN = ThoughtForm(lambda _thinking: [], lambda _thinking, _reply: None)


@dataclass(frozen=True, slots=True)
class StrictChat(StrictProtocol):
    """A provider of chat completions: the ``fields`` of messages and ``parameters`` that it knows, and more rules."""

    form: ThoughtForm
    echo: EchoRule = NO_ECHO
    fields: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    unknown: str = UNKNOWN
    unknown_status: int = 400
    rules: Sequence[Callable[[Body, Sequence[Sent]], None]] = ()

    def check(self, asked: Asked, sent: Sequence[Sent]) -> None:
        body, messages = asked.body, asked.body["messages"]
        if not asked.path.endswith("/chat/completions"):
            raise RefusedError("Not Found", 404)
        if unknown := body.keys() - _PARAMETERS - self.parameters:
            raise RefusedError(f"Unrecognized request argument supplied: {', '.join(sorted(unknown))}")
        for place, message in enumerate(messages):
            for name in sorted(message.keys() - _BASE_FIELDS - self.fields):
                raise RefusedError(self.unknown.format(place=place, field=name), self.unknown_status)
        check_rounds(messages)
        for rule in self.rules:
            rule(body, sent)
        check_thoughts(said_in(messages), sent, self.echo)

    def streamed(self, reply: Reply, thinking: Thinking | None) -> Streamed:
        thoughts = [_event(delta) for delta in (self.form.deltas(thinking) if thinking else ())]
        rest: list[Body] = [{"content": piece} for piece in halves(reply.text) if piece]
        for place, call in enumerate(reply.calls):
            signed = self.form.on_first_call(thinking) if thinking and not place else {}
            function = {"name": call.name, "arguments": ""}
            begun = {"index": place, "id": call.id, "type": "function", "function": function, **signed}
            written = halves(json.dumps(call.arguments))
            pieces = ({"index": place, "function": {"arguments": piece}} for piece in written)
            rest += [{"tool_calls": [piece]} for piece in (begun, *pieces)]
        end = _event({}, "tool_calls" if reply.calls else "stop")
        own = self.form.own(thinking, reply) if thinking else None
        return Streamed(thoughts, [*map(_event, rest), end, _usage(thinking), DONE], own)

    def prompt(self, body: Body, *, with_thoughts: bool) -> tuple[object, list[Any]]:
        messages = body["messages"]
        return body.get("tools"), messages if with_thoughts else [*map(_bare, messages)]


def _event(delta: Body, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return event({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


def _usage(thinking: Thinking | None) -> bytes:
    counts = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    thought = len(thinking.words.split()) if thinking else 0
    details = {"completion_tokens_details": {"reasoning_tokens": thought}}
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
    return event(head | {"usage": counts | details})


def said_in(messages: Sequence[Body]) -> Iterator[Said]:
    """Yield the replies of a request, with their thoughts in whatever place they stand."""
    newest = newest_question(messages)
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            called = message.get("tool_calls", [])
            calls = [(each["function"]["name"], json.loads(each["function"]["arguments"])) for each in called]
            yield Said(_text(message.get("content")), calls, _own(message), place > newest)


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    return str(content or "")


def _own(message: Body) -> Body | None:
    own = {name: value for name, value in message.items() if name not in _BASE_FIELDS}
    if "reasoning_details" in own:
        details = own["reasoning_details"]
        own["reasoning_details"] = [{n: v for n, v in each.items() if v is not None} for each in details]
    content = message.get("content")
    if isinstance(content, list):
        own["content"] = [part for part in content if part["type"] != "text"]
    called = ({n: v for n, v in call.items() if n not in {"id", "type", "function"}} for call in _calls(message))
    signed = {place: each for place, each in enumerate(called) if each}
    return (own | ({"calls": signed} if signed else {})) or None


def _calls(message: Body) -> list[Body]:
    calls: list[Body] = message.get("tool_calls", [])
    return calls


def _bare(message: Body) -> Body:
    """Return a message without thoughts."""
    bare = {name: value for name, value in message.items() if name in _BASE_FIELDS}
    calls = [{name: value for name, value in call.items() if name != "extra_content"} for call in _calls(message)]
    return bare | ({"tool_calls": calls} if calls else {})


def check_rounds(messages: Sequence[Body]) -> None:
    """Check the order of the messages: each call answered at once, in its order, under an id of its own."""
    waiting: list[str] = []
    known: set[str] = set()
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if not waiting or message["tool_call_id"] != waiting.pop(0):
                raise RefusedError("messages with role 'tool' must be a response to a preceding 'tool_calls'.")
            continue
        if waiting:
            raise RefusedError(f"The following tool_call_ids did not have response messages: {waiting}")
        waiting = [each["id"] for each in _calls(message)]
        _check_message(message, place)
        if known & {*waiting} or len({*waiting}) < len(waiting):
            raise RefusedError(f"Duplicate tool call id in {waiting}")
        known.update(waiting)
    if messages[-1]["role"] not in {"user", "tool"} or waiting:
        raise RefusedError("Expected last role User or Tool for serving but got assistant")


def _check_message(message: Body, place: int) -> None:
    if message["role"] == "system" and place:
        raise RefusedError("System message must be at the beginning.")
    if "tool_calls" in message and not _calls(message):
        raise RefusedError(f"[] is too short - 'messages.{place}.tool_calls'")
    if "tool_calls" not in message and not _text(message.get("content")).strip():
        raise RefusedError(f"messages[{place}]: the message content must not be empty")


def nine_letters(body: Body, _sent: Sequence[Sent]) -> None:
    """Mistral's older validators take only such ids."""
    for id_ in _ids(body):
        if not re.fullmatch("[a-zA-Z0-9]{9}", id_):
            raise RefusedError(f"Tool call id was {id_} but must be a-z, A-Z, 0-9, with a length of 9.")


def own_ids(body: Body, sent: Sequence[Sent]) -> None:
    """MiniMax refuses ids that it did not give."""
    given = {call.id for reply in sent for call in reply.calls}
    if any(id_ not in given for id_ in _ids(body)):
        raise RefusedError("invalid params, tool call id is invalid (2013)")


def split_thoughts(body: Body, _sent: Sequence[Sent]) -> None:
    """Without the parameter MiniMax would think in the text."""
    if body.get("reasoning_split") is not True:
        raise RefusedError("The thoughts would come in the text.")


def unique_details(body: Body, _sent: Sequence[Sent]) -> None:
    """OpenRouter fails if an encrypted item comes twice."""
    details = [each for message in body["messages"] for each in message.get("reasoning_details", [])]
    ids = [each["id"] for each in details if each.get("id")]
    for id_ in ids:
        if ids.count(id_) > 1:
            raise RefusedError(f"Duplicate item found with id {id_}", 500)


def signed_steps(body: Body, _sent: Sequence[Sent]) -> None:
    """Google wants the signature of the first call of each step of the current turn."""
    messages = body["messages"]
    for message in messages[newest_question(messages) :]:
        if "tool_calls" in message and "extra_content" not in message["tool_calls"][0]:
            raise RefusedError(_SIGNATURE_MISSING)


def _ids(body: Body) -> Iterator[str]:
    for message in body["messages"]:
        yield from (each["id"] for each in _calls(message))
        if message["role"] == "tool":
            yield message["tool_call_id"]
