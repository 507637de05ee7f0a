"""Anthropic's messages, as Claudes take them: those with a budget for thoughts, and those whose thoughts are bound."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.loopback_server import Asked
from tests.strict.chat import halves
from tests.strict.server import (
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
    typed_event,
)

_PARAMETERS = {
    *("model", "messages", "max_tokens", "system", "stream", "tools", "tool_choice", "thinking", "output_config"),
    "temperature",
}
_BLOCK_FIELDS = {
    "text": {"type", "text", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input"},
    "tool_result": {"type", "tool_use_id", "content"},
}
_THOUGHTS = {"thinking", "redacted_thinking"}
_MOST_MARKERS = 4
_LEAST_BUDGET = 1024
_MUST_START = (
    "messages.{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
    "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set "
    "of `tool_use` and `tool_result` blocks)."
)
_CHANGED = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
_BOUND = (
    "messages.{place}.content.0: Invalid `signature` in `thinking` block. The block is bound to a different "
    'conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
_UNPAIRED = (
    "messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each "
    "`tool_use` block must have a corresponding `tool_result` block in the next message."
)

WITHIN_TURN = EchoRule(within_turn=True, sentence=_CHANGED)


@dataclass(frozen=True, slots=True)
class StrictClaude(StrictProtocol):
    """A Claude: the types of thinking that it takes, and whether its thoughts, which come in ``pieces``, are bound."""

    types: frozenset[str] = frozenset({"adaptive", "disabled"})
    efforts: frozenset[str] = frozenset({"low", "medium", "high"})
    takes_temperature: bool = False
    is_bound: bool = False
    pieces: Callable[[str], Sequence[str]] = halves
    echo: EchoRule = WITHIN_TURN

    def check(self, asked: Asked, sent: Sequence[Sent]) -> None:
        body = asked.body
        if asked.path != "/v1/messages" or asked.headers.get("anthropic-version") != "2023-06-01":
            raise RefusedError("Not Found", 404)
        for name in sorted(body.keys() - _PARAMETERS):
            raise RefusedError(f"{name}: Extra inputs are not permitted")
        self._check_thinking(body)
        _check_messages(body)
        check_thoughts(_said_in(body["messages"]), sent, self.echo)
        if body.get("thinking", {}).get("type") == "enabled":
            _check_beginning(body["messages"])
        if self.is_bound:
            _check_binding(body, sent)

    def _check_thinking(self, body: Body) -> None:
        thinking = body.get("thinking", {"type": ""})
        kind = thinking["type"]
        if kind and kind not in self.types:
            raise RefusedError(f'"thinking.type.{kind}" is not supported for this model.')
        if thinking.keys() - {"type", "display", "budget_tokens"} or ("display" in thinking and kind == "disabled"):
            raise RefusedError("thinking: Extra inputs are not permitted")
        if kind == "enabled" and not _LEAST_BUDGET <= thinking["budget_tokens"] < body["max_tokens"]:
            raise RefusedError("`max_tokens` must be greater than `thinking.budget_tokens`.")
        if "temperature" in body and (kind == "enabled" or not self.takes_temperature):
            raise RefusedError("temperature: may only be set to 1 when thinking is enabled or in adaptive mode.")
        effort = body.get("output_config", {"effort": ""})["effort"]
        if effort and effort not in self.efforts:
            raise RefusedError(f"output_config.effort: {effort} is not supported for this model.")

    def streamed(self, reply: Reply, thinking: Thinking | None) -> Streamed:
        thoughts = _thoughts_of(thinking) if thinking else []
        begin = [typed_event("message_start", message={"usage": {"input_tokens": 100, "output_tokens": 1}})]
        for place, block in enumerate(thoughts):
            begin += _block_events(block, place, self.pieces)
        rest: list[Body] = [{"type": "text", "text": reply.text}] if reply.text else []
        rest += [{"type": "tool_use", "id": id_, "name": name, "input": given} for name, given, id_ in reply.calls]
        pieces = [each for place, block in enumerate(rest, len(thoughts)) for each in _block_events(block, place)]
        counts = {"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 12}}
        reason = {"stop_reason": "tool_use" if reply.calls else "end_turn"}
        end = [typed_event("message_delta", delta=reason, usage=counts), typed_event("message_stop")]
        return Streamed(begin, [*pieces, *end], thoughts or None)

    def prompt(self, body: Body, *, with_thoughts: bool) -> tuple[object, list[Any]]:
        head = [_without_markers(body.get("system", [])), body.get("tools")]
        kept = (each if with_thoughts else _without_thoughts(each) for each in body["messages"])
        blocks = [(each["role"], block) for each in kept for block in _without_markers(each["content"])]
        return json.dumps(head), blocks


def _thoughts_of(thinking: Thinking) -> list[Body]:
    """Return a block of thoughts, beside every second one that nobody can read."""
    block = {"type": "thinking", "thinking": thinking.words, "signature": thinking.signature}
    hidden = {"type": "redacted_thinking", "data": thinking.signature[::-1]}
    return [block] if thinking.number % 2 else [block, hidden]


def _block_events(block: Body, index: int, pieces: Callable[[str], Sequence[str]] = halves) -> Iterator[bytes]:
    match block["type"]:
        case "thinking":
            begun = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "text":
            begun = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in halves(block["text"])]
        case "tool_use":
            begun, written = block | {"input": {}}, json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *halves(written))]
        case _:
            begun, deltas = block, []
    yield typed_event("content_block_start", index=index, content_block=begun)
    yield from (typed_event("content_block_delta", index=index, delta=delta) for delta in deltas)
    yield typed_event("content_block_stop", index=index)


def _said_in(messages: Sequence[Body]) -> Iterator[Said]:
    newest = newest_question(messages)
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            blocks = message["content"]
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
            calls = [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
            own = [block for block in blocks if block["type"] in _THOUGHTS]
            yield Said(text, calls, own or None, place > newest)


def _check_messages(body: Body) -> None:
    """Check the roles and the blocks, and that each call is answered in the next message."""
    roles = [message["role"] for message in body["messages"]]
    if roles != ["user", "assistant"] * (len(roles) // 2) + ["user"]:
        raise RefusedError("messages: roles must alternate between user and assistant, and the last be user")
    if json.dumps(body).count('"cache_control"') > _MOST_MARKERS:
        raise RefusedError("A maximum of 4 blocks with cache_control may be provided.")
    calls: list[str] = []
    known: set[str] = set()
    for place, message in enumerate(body["messages"]):
        for block in message["content"]:
            _check_block(block, place)
        answered = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        if answered != calls or [block["type"] for block in message["content"]][: len(calls)].count("text"):
            raise RefusedError(_UNPAIRED.format(place=place - 1, ids=calls))
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        if known & {*calls} or len({*calls}) < len(calls):
            raise RefusedError(f"messages.{place}: `tool_use` ids must be unique")
        known |= {*calls}
    if known and not body.get("tools"):
        raise RefusedError("Requests which include `tool_use` or `tool_result` blocks must define tools.")


def _check_block(block: Body, place: int) -> None:
    for name in sorted(block.keys() - _BLOCK_FIELDS[block["type"]]):
        raise RefusedError(f"messages.{place}.content.0.{block['type']}.{name}: Extra inputs are not permitted")
    if block["type"] == "text" and not block["text"].strip():
        raise RefusedError("messages: text content blocks must contain non-whitespace text")
    if block["type"] == "tool_use" and not re.fullmatch("[a-zA-Z0-9_-]+", block["id"]):
        raise RefusedError(f"messages.{place}.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")


def _check_beginning(messages: Sequence[Body]) -> None:
    """Check that the turn whose calls are being answered begins with thoughts, as a Claude with a budget demands."""
    if messages[-1]["content"][0]["type"] != "tool_result":
        return
    begun = newest_question(messages[:-1]) + 1
    if messages[begun]["content"][0]["type"] not in _THOUGHTS:
        raise RefusedError(_MUST_START.format(place=begun))


def _check_binding(body: Body, sent: Sequence[Sent]) -> None:
    """Check that all before a block of thoughts is as it was, and that no block is left out between two."""
    begun = False
    for place, message in enumerate(body["messages"]):
        own = [block for block in message["content"] if block["type"] in _THOUGHTS]
        made_after = [each.asked.body for each in sent if own and each.thoughts == own]
        if own and _prefix(body, place) not in [_prefix(each, len(each["messages"])) for each in made_after]:
            raise RefusedError(_BOUND.format(place=place))
        texts = [block.get("text") for block in message["content"]] if message["role"] == "assistant" else []
        had_thoughts = any(each.thoughts for each in sent if each.text in texts)
        if begun and had_thoughts and not own:
            raise RefusedError(_BOUND.format(place=place))
        begun = begun or bool(own)


def _prefix(body: Body, place: int) -> str:
    """Return the bytes to which thoughts are bound: all before them but cache markers and earlier thoughts."""
    tools, system = body.get("tools"), _without_markers(body.get("system", []))
    return json.dumps([system, tools, [_without_thoughts(message) for message in body["messages"][:place]]])


def _without_thoughts(message: Body) -> Body:
    kept = [block for block in message["content"] if block["type"] not in _THOUGHTS]
    return message | {"content": _without_markers(kept)}


def _without_markers(blocks: Sequence[Body]) -> list[Body]:
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks]
