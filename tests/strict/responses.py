"""OpenAI's responses without a store: thoughts are encrypted items, each directly before the item that they led to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.loopback_server import Asked
from tests.strict.chat import halves, parts
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
    *("model", "input", "instructions", "stream", "store", "include", "reasoning", "tools", "tool_choice"),
    *("max_output_tokens", "prompt_cache_key", "parallel_tool_calls"),
}
_ITEM_FIELDS = {
    "message": {"type", "role", "content", "phase"},
    "reasoning": {"type", "id", "summary", "encrypted_content"},
    "function_call": {"type", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
}
_NO_FOLLOWER = "Item '{id}' of type 'reasoning' was provided without its required following item."
_UNVERIFIED = "The encrypted content for item {id} could not be verified. Reason: it could not be decrypted or parsed."
_NO_OUTPUT = "No tool output found for function call {id}."
_NO_CALL = "No tool call found for function call output with call_id {id}."
_ECHO = EchoRule(within_turn=True, sentence="The reasoning items since the last user message must be passed back.")
_COUNTS = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 12},
    "total_tokens": 120,
}


@dataclass(frozen=True, slots=True)
class StrictResponses(StrictProtocol):
    """A model of OpenAI's that thinks: the efforts that it takes."""

    messages: ClassVar = "input"

    efforts: frozenset[str] = frozenset({"none", "low", "medium", "high", "xhigh"})
    echo: EchoRule = _ECHO

    def check(self, asked: Asked, sent: Sequence[Sent]) -> None:
        body = asked.body
        if not asked.path.endswith("/responses"):
            raise RefusedError("Not Found", 404)
        for name in sorted(body.keys() - _PARAMETERS):
            raise RefusedError(f"Unsupported parameter: '{name}' is not supported with this model.")
        if body["store"] is not False or body["stream"] is not True:
            raise RefusedError("Nothing may be stored.")
        effort = body.get("reasoning", {}).get("effort")
        if effort is not None and effort not in self.efforts:
            raise RefusedError(f"Unsupported value: 'reasoning.effort' does not support '{effort}' with this model.")
        items = body["input"]
        for place, item in enumerate(items):
            for name in sorted(item.keys() - _ITEM_FIELDS[item["type"]]):
                raise RefusedError(f"Unknown parameter: 'input[{place}].{name}'.")
        _check_calls(items)
        _check_reasoning(items, sent)
        check_thoughts(_said_in(items), sent, self.echo)

    def streamed(self, reply: Reply, thinking: Thinking | None) -> Streamed:
        items = [_reasoning(thinking, "a")] if thinking else []
        items += [_message(reply)] if reply.text else []
        # Thoughts come between words and calls too.
        items += [_reasoning(thinking, "b")] if thinking and reply.text and reply.calls else []
        items += [_function_call(call.id, call.name, call.arguments) for call in reply.calls]
        events = [event for index, item in enumerate(items) for event in _item_events(item, index)]
        split = sum(1 for _ in _item_events(items[0], 0)) if thinking else 0
        end = typed_event(
            "response.completed", response={"object": "response", "status": "completed", "usage": _COUNTS}
        )
        begin = [typed_event("response.created", response={"object": "response", "status": "in_progress"})]
        return Streamed(begin + events[:split], [*events[split:], end], _own(items))

    def prompt(self, body: Body, *, with_thoughts: bool) -> tuple[object, list[Any]]:
        items = body["input"]
        if not with_thoughts:
            # The phase of a message is known as long as its thoughts.
            kept = (item for item in items if item["type"] != "reasoning")
            items = [{name: value for name, value in item.items() if name != "phase"} for item in kept]
        return json.dumps([body.get("instructions"), body.get("tools")]), items


def _reasoning(thinking: Thinking, part: str) -> Body:
    summary = [{"type": "summary_text", "text": text} for text in parts(thinking.words)]
    id_ = f"rs_{thinking.number}{part}"
    return {"type": "reasoning", "id": id_, "summary": summary, "encrypted_content": f"{part}{thinking.signature}"}


def _message(reply: Reply) -> Body:
    content = [{"type": "output_text", "text": reply.text, "annotations": []}]
    phase = "commentary" if reply.calls else "final_answer"
    ids = {"id": f"msg_{abs(hash(reply.text))}", "status": "completed"}
    return {"type": "message", "role": "assistant", "content": content, "phase": phase, **ids}


def _function_call(id_: str, name: str, arguments: object) -> Body:
    ids = {"id": f"fc_{id_}", "status": "completed"}
    return {"type": "function_call", "call_id": id_, "name": name, "arguments": json.dumps(arguments), **ids}


def _item_events(item: Body, index: int) -> Iterator[bytes]:
    """Yield the events of an item, which is whole only when it is done."""
    place = {"output_index": index, "item_id": item["id"]}
    begun: Body = {
        "reasoning": {"summary": [], "encrypted_content": "incomplete"},
        "message": {"content": []},
        "function_call": {"arguments": ""},
    }
    yield typed_event("response.output_item.added", output_index=index, item=item | begun[item["type"]])
    match item["type"]:
        case "reasoning":
            for number, part in enumerate(item["summary"]):
                yield typed_event("response.reasoning_summary_part.added", summary_index=number, **place)
                for piece in halves(part["text"]):
                    kind = "response.reasoning_summary_text.delta"
                    yield typed_event(kind, delta=piece, summary_index=number, **place)
        case "message":
            for piece in halves(item["content"][0]["text"]):
                yield typed_event("response.output_text.delta", delta=piece, content_index=0, **place)
        case _:
            for piece in halves(item["arguments"]):
                yield typed_event("response.function_call_arguments.delta", delta=piece, **place)
    yield typed_event("response.output_item.done", output_index=index, item=item)


def _own(items: Sequence[Body]) -> Body | None:
    """Return the thoughts, each with the item that follows, and the phases of messages."""
    followed = zip(items, [*items[1:], {"type": "end"}], strict=True)
    own = [(item, (each["type"], each.get("name", ""))) for item, each in followed if item["type"] == "reasoning"]
    phases = [item["phase"] for item in items if "phase" in item]
    return {"items": own, "phases": phases} if own or phases else None


def _said_in(items: Sequence[Body]) -> Iterator[Said]:
    newest = newest_question(items)
    reply: list[Body] = []
    for place, item in enumerate([*items, {"type": "end"}]):
        is_said = item["type"] in {"reasoning", "function_call"} or item.get("role") == "assistant"
        # Words begin another reply, unless thoughts alone stand before them.
        ends = item.get("role") == "assistant" and any(each["type"] != "reasoning" for each in reply)
        if is_said and not ends:
            reply.append(item)
            continue
        if reply:
            yield _reply_of(reply, is_current=place > newest)
        reply = [item] if is_said else []


def _reply_of(reply: Sequence[Body], *, is_current: bool) -> Said:
    text = "".join(_text(item["content"]) for item in reply if item["type"] == "message")
    calls = [(item["name"], json.loads(item["arguments"])) for item in reply if item["type"] == "function_call"]
    return Said(text, calls, _own(reply), is_current)


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(part["text"] for part in content)
    assert isinstance(content, str)
    return content


def _check_calls(items: Sequence[Body]) -> None:
    """Check that the calls made together are answered together, each under an id of its own."""
    open_ids: list[str] = []
    answered: set[str] = set()
    for item in items:
        if item["type"] == "function_call":
            if item["call_id"] in {*open_ids, *answered}:
                raise RefusedError(f"Duplicate function call {item['call_id']}")
            open_ids.append(item["call_id"])
        elif item["type"] == "function_call_output":
            if item["call_id"] not in open_ids:
                raise RefusedError(_NO_CALL.format(id=item["call_id"]))
            open_ids.remove(item["call_id"])
            answered.add(item["call_id"])
        elif open_ids and item["type"] == "message":
            raise RefusedError(_NO_OUTPUT.format(id=open_ids[0]))
    if open_ids:
        raise RefusedError(_NO_OUTPUT.format(id=open_ids[0]))


def _check_reasoning(items: Sequence[Body], sent: Sequence[Sent]) -> None:
    """Check that thoughts are those of this server, each before an item, and none twice."""
    known = [item for each in sent for item, _ in (each.thoughts or {"items": ()})["items"]]
    ids: set[str] = set()
    for item, following in zip(items, [*items[1:], {"type": "end"}], strict=True):
        if item["type"] != "reasoning":
            continue
        if item["id"] in ids:
            raise RefusedError(f"Duplicate item found with id {item['id']}")
        ids.add(item["id"])
        if item not in known:
            raise RefusedError(_UNVERIFIED.format(id=item["id"]))
        if following["type"] != "function_call" and following.get("role") != "assistant":
            raise RefusedError(_NO_FOLLOWER.format(id=item["id"]))
