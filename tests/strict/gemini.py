"""Gemini's own protocol: signatures stay in the parts in which they came, and calls made together stay together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from tests.loopback_server import Asked
from tests.models.providers.fault_server import event
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
)

_PARAMETERS = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
_PART_FIELDS = {"text", "functionCall", "functionResponse", "thoughtSignature"}
_UNSIGNED = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:{name}` , position {place}."
)
_UNEQUAL = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
_ORDER = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
_LAST = "Requests ending with a model turn are not supported"
_ECHO = EchoRule(sentence="Invalid thought signature: one is missing.")


@dataclass(frozen=True, slots=True)
class StrictGemini(StrictProtocol):
    """A Gemini of the third generation or the one before, and what its ``thinkingConfig`` may say."""

    messages: ClassVar = "contents"

    is_older: bool = False
    levels: frozenset[str] = frozenset({"minimal", "low", "medium", "high"})
    budgets: range = range(0)
    signs_words: bool = True
    echo: EchoRule = _ECHO

    def check(self, asked: Asked, sent: Sequence[Sent]) -> None:
        body = asked.body
        if not asked.path.endswith(":streamGenerateContent?alt=sse"):
            raise RefusedError("Not Found", 404)
        for name in sorted(body.keys() - _PARAMETERS):
            raise RefusedError(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
        self._check_thinking(body.get("generationConfig", {}).get("thinkingConfig", {}))
        contents = body["contents"]
        for part in (part for content in contents for part in content["parts"]):
            for name in sorted(part.keys() - _PART_FIELDS):
                raise RefusedError(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
        _check_order(contents, has_ids=not self.is_older)
        if not self.is_older:
            _check_steps(contents)
        check_thoughts(_said_in(contents), sent, self.echo)

    def _check_thinking(self, told: Body) -> None:
        if told.keys() >= {"thinkingBudget", "thinkingLevel"}:
            raise RefusedError("You can only set only one of thinking budget and thinking level.")
        if "thinkingLevel" in told and self.is_older:
            raise RefusedError("Thinking level is not supported for this model.")
        if "thinkingLevel" in told and told["thinkingLevel"] not in self.levels:
            level = told["thinkingLevel"].upper()
            raise RefusedError(f"Thinking level {level} is not supported for this model.")
        if "thinkingBudget" in told and told["thinkingBudget"] not in self.budgets:
            raise RefusedError(f"Budget {told['thinkingBudget']} is invalid.")

    def streamed(self, reply: Reply, thinking: Thinking | None) -> Streamed:
        thoughts = [_parts({"text": piece, "thought": True}) for piece in halves(thinking.words)] if thinking else []
        signature = {"thoughtSignature": thinking.signature} if thinking else {}
        parts: list[Body] = [{"text": piece} for piece in halves(reply.text) if piece]
        if reply.calls:
            parts += [{"functionCall": self._call(call.id, call.name, call.arguments)} for call in reply.calls]
            parts[-len(reply.calls)] |= signature
        elif signature and self.signs_words:
            # The signature of words comes by itself, or in the last piece of them.
            alone = thinking is not None and thinking.number % 2 == 0
            parts = [*parts, {"text": ""} | signature] if alone else [*parts[:-1], parts[-1] | signature]
        end = {"candidates": [{"index": 0, "content": {"parts": []}, "finishReason": "STOP"}]}
        counts = {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 12, "totalTokenCount": 132}
        last = event(end | {"usageMetadata": counts})
        return Streamed(thoughts, [*map(_parts, parts), last], _own(parts))

    def _call(self, id_: str, name: str, arguments: object) -> Body:
        return {"name": name, "args": arguments} | ({} if self.is_older else {"id": id_})

    def prompt(self, body: Body, *, with_thoughts: bool) -> tuple[object, list[Any]]:
        parts = [(content["role"], part) for content in body["contents"] for part in content["parts"]]
        if not with_thoughts:
            parts = [(role, {n: v for n, v in part.items() if n != "thoughtSignature"}) for role, part in parts]
        return json.dumps([body.get("systemInstruction"), body.get("tools")]), parts


def _parts(part: Body) -> bytes:
    return event({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]})


def _own(parts: Sequence[Body]) -> list[Body] | None:
    """Return the signed parts, a call by its place among the calls."""
    calls = [part for part in parts if "functionCall" in part]
    signed = [part for part in parts if "thoughtSignature" in part]
    return [
        {"call": calls.index(part), "signature": part["thoughtSignature"]} if "functionCall" in part else part
        for part in signed
    ] or None


def _said_in(contents: Sequence[Body]) -> Iterator[Said]:
    newest = newest_question(contents)
    for place, content in enumerate(contents):
        if content["role"] == "model":
            parts = content["parts"]
            text = "".join(part.get("text", "") for part in parts)
            called = (part["functionCall"] for part in parts if "functionCall" in part)
            yield Said(text, [(call["name"], call["args"]) for call in called], _own(parts), place > newest)


def _check_order(contents: Sequence[Body], *, has_ids: bool) -> None:
    """Check that results follow their calls, all together and in their order."""
    for before, content in pairwise([{"role": "user", "parts": []}, *contents]):
        calls = [part["functionCall"] for part in before["parts"] if "functionCall" in part]
        results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        if [each["name"] for each in calls] != [each["name"] for each in results]:
            raise RefusedError(_UNEQUAL)
        if has_ids and [each["id"] for each in calls] != [each["id"] for each in results]:
            raise RefusedError(_UNEQUAL)
        if len({each["id"] for each in calls if has_ids}) < len(calls) * has_ids:
            raise RefusedError("Function calls with the same id.")
        if (results and len(results) < len(content["parts"])) or content["role"] == before["role"] == "model":
            raise RefusedError(_ORDER)
    if contents[-1]["role"] == "model" or any("functionCall" in part for part in contents[-1]["parts"]):
        raise RefusedError(_LAST)


def _check_steps(contents: Sequence[Body]) -> None:
    """Check that the first call of each step of the current turn is signed."""
    for place, content in enumerate(contents[newest_question(contents) :]):
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        if first is not None and "thoughtSignature" not in first:
            raise RefusedError(_UNSIGNED.format(name=first["functionCall"]["name"], place=place))
