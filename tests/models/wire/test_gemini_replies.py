"""Replies in Gemini's own protocol, as its documentation shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.providers.failures import FailedError, Trouble
from chorus_cli.models.wire.gemini import GeminiReply
from tests.models.wire.read_replies import end_of, read, reasoning_in, text_in

if TYPE_CHECKING:
    from chorus_cli.models.rules.events import ModelEvent

USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14}


def piece(*parts: object, reason: str | None = None, index: int = 0) -> dict[str, object]:
    """Return an event of ``streamGenerateContent``; a part that is a text stands for itself."""
    content = {"role": "model", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}
    candidate = {"content": content, "index": index} | ({"finishReason": reason} if reason else {})
    return {"candidates": [candidate], "modelVersion": "gemini-2.5-flash", "responseId": "r"}


def call(name: str, arguments: object, id_: str = "", signature: str = "") -> dict[str, object]:
    called = {"name": name, "args": arguments} | ({"id": id_} if id_ else {})
    return {"functionCall": called} | ({"thoughtSignature": signature} if signature else {})


def reply(*payloads: object) -> list[ModelEvent]:
    return read(GeminiReply(), *payloads)


def test_a_reply_is_text_and_its_end() -> None:
    events = reply(piece("Hel"), piece("lo", reason="STOP") | {"usageMetadata": USAGE})
    assert text_in(events) == "Hello"
    assert end_of(events).finish_reason == "stop"
    assert end_of(events).usage == {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}


NO_CONTENT = {"candidates": [{"finishReason": "STOP", "index": 0}]}
BLOCKED = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 4}}


@pytest.mark.parametrize(
    ("payloads", "text", "finish_reason"),
    [
        pytest.param((piece("a", reason="MAX_TOKENS"),), "a", "length", id="cut by the limit of tokens"),
        pytest.param((piece("a", reason="SAFETY"),), "a", "content_filter", id="filtered"),
        pytest.param((piece("a", reason="RECITATION"),), "a", "content_filter", id="recited"),
        pytest.param((piece("a", reason="PROHIBITED_CONTENT"),), "a", "content_filter", id="prohibited"),
        pytest.param((piece("a", reason="A_REASON_OF_TOMORROW"),), "a", "stop", id="an unknown reason"),
        pytest.param((piece(reason="MALFORMED_FUNCTION_CALL"),), "", "stop", id="a call that is none"),
        pytest.param((BLOCKED,), "", "content_filter", id="the prompt is blocked"),
        pytest.param((piece("a"), NO_CONTENT), "a", "stop", id="a last event without content"),
        pytest.param((piece("a", reason="STOP"), piece("b", reason="STOP")), "ab", "stop", id="a reason each"),
        pytest.param((piece("a"),), "a", None, id="cut in the text"),
        pytest.param((piece("a"), {"usageMetadata": USAGE}), "a", None, id="cut after the counts"),
        pytest.param((), "", None, id="cut at once"),
        pytest.param(("", piece("a", "b"), " ", NO_CONTENT), "ab", "stop", id="two parts, and empty data"),
        pytest.param((piece("a"), piece("x", index=1), NO_CONTENT), "a", "stop", id="only the first candidate"),
        pytest.param((piece("\ud83d"), piece("\ude00"), NO_CONTENT), "\U0001f600", "stop", id="half a character each"),
        pytest.param(([piece("a"), piece("b", reason="STOP")],), "ab", "stop", id="a list to a request for events"),
        pytest.param((piece({"executableCode": {"code": "1"}}, "a"), NO_CONTENT), "a", "stop", id="another part"),
    ],
)
def test_the_end_is_told_as_the_stream_ended(
    payloads: tuple[object, ...], text: str, finish_reason: str | None
) -> None:
    events = reply(*payloads)
    assert text_in(events) == text
    assert end_of(events).finish_reason == finish_reason


def test_thoughts_are_reasoning() -> None:
    thought = {"text": "One and two.", "thought": True}
    events = reply(piece(thought), piece({"text": "Three.", "thoughtSignature": "s=="}, reason="STOP"))
    assert reasoning_in(events) == "One and two."
    assert text_in(events) == "Three."


@pytest.mark.parametrize(
    ("payloads", "calls"),
    [
        ([piece(call("f", {"n": 1}), reason="STOP")], [ToolCall("", "f", '{"n": 1}')]),
        ([piece(call("f", {}, "a"), call("f", {}, "b"), reason="STOP")], [("a", "f", "{}"), ("b", "f", "{}")]),
        ([piece(call("f", {})), piece(call("g", {}), reason="STOP")], [("", "f", "{}"), ("", "g", "{}")]),
        ([piece(call("f", {})), piece(call("f", {}), reason="STOP")], [("", "f", "{}"), ("", "f", "{}")]),
        ([piece(call("f", None), reason="STOP")], [("", "f", "{}")]),
        ([piece(call("f", {"x": "é"}, "a", "s=="), reason="STOP")], [("a", "f", '{"x": "é"}')]),
    ],
    ids=["one", "two with ids", "two in two events", "the same twice", "without arguments", "signed"],
)
def test_calls_come_whole(payloads: list[object], calls: list[ToolCall]) -> None:
    end = end_of(reply(*payloads))
    assert list(end.calls) == calls
    assert end.finish_reason == "tool_calls"


def test_signatures_are_kept_with_the_parts_in_which_they_came() -> None:
    signed = {"text": "So", "thoughtSignature": "one=="}
    empty = {"text": "", "thoughtSignature": "three=="}
    end = end_of(
        reply(
            piece("Well. ", signed), piece("."), piece(empty),
            piece(call("f", {}, "a", "two=="), call("f", {}), reason="STOP"),
        )
    )  # fmt: skip
    assert json.loads(end.thought_parts)["parts"] == [
        {"said": 6},
        {"said": 2, "thoughtSignature": "one=="},
        {"said": 1},
        {"said": 0, "thoughtSignature": "three=="},
        {"called": "a", "thoughtSignature": "two=="},
        {"called": ""},
    ]


def test_tokens_that_the_cache_served_are_told_apart() -> None:
    counts = USAGE | {"cachedContentTokenCount": 8}
    assert end_of(reply({"usageMetadata": counts}, NO_CONTENT)).usage["cached_tokens"] == 8


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (USAGE, (10, 4, 14)),
        (USAGE | {"thoughtsTokenCount": 5, "totalTokenCount": 19}, (10, 9, 19, 5)),
        (USAGE | {"thoughtsTokenCount": 3}, (10, 4, 14, 3)),
        (USAGE | {"toolUsePromptTokenCount": 6, "totalTokenCount": 20}, (16, 4, 20)),
        ({"promptTokenCount": 10, "totalTokenCount": 10}, (10, 0, 10)),
        ({"promptTokenCount": 10, "candidatesTokenCount": 4}, (10, 4, 14)),
    ],
    ids=["counts", "thoughts beside", "thoughts within", "results of its own tools", "no reply", "no total"],
)
def test_tokens_are_counted_with_the_thoughts(counts: dict[str, int], usage: tuple[int, ...]) -> None:
    end = end_of(reply({"usageMetadata": {"promptTokenCount": 1}}, {"usageMetadata": counts}, NO_CONTENT))
    assert tuple(end.usage.values()) == usage


@pytest.mark.parametrize("is_listed", [False, True])
def test_an_error_event_is_a_failure_with_its_status_and_body(*, is_listed: bool) -> None:
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    with pytest.raises(FailedError) as caught:
        reply(piece("Hel"), [error] if is_listed else error)
    assert caught.value.failure.body == error
    assert caught.value.failure.status == 503


@pytest.mark.parametrize("data", ["<html>", "{", '"text"', "3", "null", "[1]"])
def test_data_of_another_kind_is_an_invalid_response(data: str) -> None:
    with pytest.raises(FailedError) as caught:
        reply(data)
    assert caught.value.failure.trouble is Trouble.INVALID_RESPONSE


@pytest.mark.parametrize(
    "payload",
    [
        {"candidates": None},
        {"candidates": [None]},
        {"candidates": [{"content": None}]},
        {"candidates": [{"content": {"parts": [None, {}, {"text": 3}, {"functionCall": []}]}}]},
        {"candidates": [{"finishReason": 3}], "usageMetadata": {"promptTokenCount": "many"}, "promptFeedback": []},
        {},
    ],
)
def test_fields_of_another_kind_are_passed_over(payload: object) -> None:
    assert text_in(reply(payload, piece("a"))) == "a"
