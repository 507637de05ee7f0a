"""Replies of OpenAI's newer protocol, event by event, as its documentation shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.providers.failures import FailedError
from chorus_cli.models.rules.costs import CACHED, THOUGHT
from chorus_cli.models.wire.responses import ResponsesReply
from tests.models.wire.read_replies import end_of, read, reasoning_in, text_in

if TYPE_CHECKING:
    from chorus_cli.models.rules.events import ModelEvent

REASONING: dict[str, object] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "QUJD"}
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 8},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 17,
}


def delta(kind: str, text: str, index: int = 0, **more: object) -> dict[str, object]:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **more}


def item(kind: str, value: dict[str, object], index: int = 0) -> dict[str, object]:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": value}


def completed(**more: object) -> dict[str, object]:
    return {"type": "response.completed", "response": {"status": "completed", "usage": USAGE, **more}}


def reply(*payloads: object) -> list[ModelEvent]:
    return read(ResponsesReply(), *payloads)


def parts_of(events: list[ModelEvent]) -> list[dict[str, object]]:
    written = json.loads(end_of(events).thought_parts)
    assert written["form"] == "responses"
    parts: list[dict[str, object]] = written["parts"]
    return parts


def test_thoughts_words_and_usage_come_in_their_order() -> None:
    part = {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1}
    events = reply(
        {"type": "response.created", "response": {"id": "r"}},
        item("added", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "begun"}),
        delta("reasoning_summary_text", "First."),
        part,
        delta("reasoning_summary_text", "Then.", summary_index=1),
        item("done", REASONING),
        item("added", {"type": "message", "id": "msg_1", "role": "assistant", "content": []}, 1),
        delta("output_text", "Hel", 1),
        delta("output_text", "lo", 1),
        item("done", {"type": "message", "id": "msg_1", "phase": "final_answer", "content": []}, 1),
        completed(),
    )
    assert (reasoning_in(events), text_in(events)) == ("First.\n\nThen.", "Hello")
    end = end_of(events)
    assert end.finish_reason == "stop"
    assert end.usage == {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17, CACHED: 8, THOUGHT: 5}
    assert parts_of(events) == [REASONING, {"said": 5, "phase": "final_answer"}]


def test_calls_come_in_pieces_or_whole() -> None:
    def called(id_: str, arguments: str) -> dict[str, object]:
        return {"type": "function_call", "id": "fc", "call_id": id_, "name": "echo", "arguments": arguments}

    events = reply(
        item("done", REASONING),
        item("added", called("a", ""), 1),
        delta("function_call_arguments", '{"n"', 1),
        delta("function_call_arguments", ": 1}", 1),
        item("done", called("a", '{"n": 1}'), 1),
        item("added", called("b", ""), 2),
        item("done", called("b", "{}"), 2),
        completed(),
    )
    end = end_of(events)
    assert end.calls == (ToolCall("a", "echo", '{"n": 1}'), ToolCall("b", "echo", "{}"))
    assert end.finish_reason == "tool_calls"
    assert parts_of(events) == [REASONING, {"called": "a"}, {"called": "b"}]


@pytest.mark.parametrize(
    ("payloads", "text", "finish_reason"),
    [
        ((delta("refusal", "I must not."), completed()), "I must not.", "stop"),
        ((delta("output_text", "a"),), "a", None),
        ((delta("output_text", "a"), "[DONE]"), "a", "stop"),
        (
            (
                delta("output_text", "a"),
                {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}},
            ),
            "a",
            "length",
        ),
        (
            ({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}},),
            "",
            "content_filter",
        ),
        (
            (item("done", {"type": "message", "content": [{"type": "output_text", "text": "a"}]}), completed()),
            "a",
            "stop",
        ),
        (
            (
                {
                    "object": "response",
                    "output": [REASONING, {"type": "message", "content": [{"type": "output_text", "text": "a"}]}],
                },
            ),
            "a",
            "stop",
        ),
        (({"type": "response.of_tomorrow", "delta": "x"}, delta("output_text", "a"), completed()), "a", "stop"),
    ],
    ids=["refusal", "cut", "done", "too long", "filtered", "words only when done", "not streamed", "unknown event"],
)
def test_the_end_is_told_as_the_stream_ended(
    payloads: tuple[object, ...], text: str, finish_reason: str | None
) -> None:
    events = reply(*payloads)
    assert (text_in(events), end_of(events).finish_reason) == (text, finish_reason)


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "error", "code": "server_error", "message": "It broke.", "sequence_number": 1},
        {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "It broke."}}},
        {"object": "response", "error": {"code": "server_error", "message": "It broke."}, "output": []},
    ],
)
def test_an_error_event_is_a_failure(payload: dict[str, object]) -> None:
    with pytest.raises(FailedError) as caught:
        reply(payload)
    assert "It broke." in str(caught.value.failure.body)
