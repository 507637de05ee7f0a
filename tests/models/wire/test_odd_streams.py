"""Streams that only some servers send, and bytes cut at odd places, are read as what they mean."""

from __future__ import annotations

import codecs
import gzip
import json
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.providers.failures import FailedError
from chorus_cli.models.rules.events import ReasoningDelta, ReplyEnd, TextDelta
from tests.models.providers.asked_models import STOP
from tests.models.providers.fault_server import DONE, HTML_ANSWER, STREAM_HEAD, chunk, event
from tests.models.wire.wire_talk import read, replied

if TYPE_CHECKING:
    from chorus_cli.models.rules.events import ModelEvent

RAIN = chunk("It rains in Zürich 🌧.") + STOP
RAINS = [TextDelta("It rains in Zürich 🌧."), ReplyEnd("stop")]


def delta(**fields: object) -> bytes:
    """Return a chunk with these fields in its delta."""
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": None}]})


def head(*headers: str, kind: str = "text/event-stream") -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", f"Content-Type: {kind}", *headers, "Connection: close", "", ""]).encode()


@pytest.mark.parametrize(
    "stream",
    [
        RAIN.replace(b"\n", b"\r\n"),
        RAIN.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + RAIN,
        b"\n\n\n" + RAIN,
        b": PROCESSING\n\n" + RAIN.replace(b"data:", b": ping\n\nid: 7\nevent: message\nretry: 3\ndata:"),
        RAIN.replace(b"data: ", b"data:"),
        RAIN.replace(b"data: ", b"data:\n\ndata: "),
        RAIN.replace(b"data: ", b"data:   \n\ndata: "),
        RAIN.replace(b', "', b',\ndata: "'),
        event({"choices": []}) + RAIN,
        RAIN.removesuffix(DONE),
        RAIN.removesuffix(b"\n\n"),
        RAIN.removesuffix(DONE + b"\n\n").rstrip(b"\n"),
        chunk("It rains in Zürich 🌧.") + DONE,
        RAIN + chunk("after the end"),
        RAIN.replace(b'"finish_reason": "stop"', b'"finish_reason": "stop", "text": null'),
    ],
    ids=[
        "CRLF", "CR", "byte order mark", "blank lines first", "comments and other fields", "no blank after data:",
        "empty data:", "blank data:", "data over several lines", "no choice", "no [DONE]", "no blank line at the end",
        "ended after the last event", "[DONE] without a finish reason", "more after [DONE]", "unknown fields",
    ],
)  # fmt: skip
async def test_a_stream_written_in_another_way_is_the_same_reply(stream: bytes) -> None:
    assert await replied(STREAM_HEAD, stream) == RAINS


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
async def test_a_stream_may_be_cut_within_a_letter(size: int) -> None:
    written = RAIN.replace(b"\\u00fc", "ü".encode()).replace(b"\\ud83c\\udf27", "🌧".encode())
    stream = codecs.BOM_UTF8 + written.replace(b"\n", b"\r\n")
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert await read(pieces) == RAINS


async def test_line_separators_in_a_text_do_not_end_a_line() -> None:
    text = "one\u2028two\u0085three\x0cfour"
    stream = b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}, ensure_ascii=False).encode() + b"\n\n"
    assert await replied(STREAM_HEAD, stream, STOP) == [TextDelta(text), ReplyEnd("stop")]


async def test_a_compressed_stream_is_read() -> None:
    assert await replied(head("Content-Encoding: gzip"), gzip.compress(RAIN)) == RAINS


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "application/json"])
async def test_a_stream_of_another_declared_type_is_read(kind: str) -> None:
    assert await replied(head(kind=kind), RAIN) == RAINS


async def test_ten_megabytes_in_one_event_are_read() -> None:
    (text, end) = await replied(STREAM_HEAD, chunk("x" * 10_000_000), STOP)
    assert text == TextDelta("x" * 10_000_000)
    assert end == ReplyEnd("stop")


@pytest.mark.parametrize("body", [b"data: " + b"x" * 2_000, b"x" * 2_000, b'{"id": "' + b"x" * 2_000])
async def test_an_event_without_end_is_given_up(body: bytes) -> None:
    pieces = [RAIN[:100], RAIN[100:], *(body[start : start + 100] for start in range(0, len(body), 100))]
    with pytest.raises(FailedError, match="an event of more than 1,000 bytes"):
        await read(pieces, longest_event_bytes=1_000)


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (delta(content="a") + delta(content="b").replace(b'"index": 0', b'"index": 1'), [TextDelta("a")]),
        (delta(refusal="I must not."), [TextDelta("I must not.")]),
        (delta(content=[{"type": "text", "text": "a"}, "b"]), [TextDelta("a"), TextDelta("b")]),
        (
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]) + delta(content="a"),
            [ReasoningDelta("hm"), TextDelta("a")],
        ),
        (delta(reasoning="hm", content="a"), [ReasoningDelta("hm"), TextDelta("a")]),
        (delta(reasoning_content="hm", reasoning="hm"), [ReasoningDelta("hm")]),
        (delta(content=None) + delta(content=5) + delta(content={"text": "x"}), []),
        (event({"choices": [{"delta": None}]}) + event({"choices": None}) + event({"choices": ["x"]}), []),
        (event({"error": None, "choices": [{"delta": {"content": "a"}}]}), [TextDelta("a")]),
    ],
    ids=[
        "second choice", "refusal", "list content", "thoughts in list content", "reasoning", "reasoning twice",
        "content of another type", "delta of another type", "no error",
    ],
)  # fmt: skip
async def test_a_chunk_adds_what_it_says(stream: bytes, events: list[ModelEvent]) -> None:
    assert await replied(STREAM_HEAD, stream, STOP) == [*events, ReplyEnd("stop")]


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        (["<think>hm</think>\n\nso"], [ReasoningDelta("hm"), TextDelta("so")]),
        (
            ["\n<thi", "nk>h", "m</th", "ink>", "\n", "\nso"],
            [ReasoningDelta("h"), ReasoningDelta("m"), TextDelta("so")],
        ),
        (["<think>a < b </thin", "king"], [ReasoningDelta("a < b "), ReasoningDelta("</thinking")]),
        (["<", "b>"], [TextDelta("<b>")]),
        (["<thi"], [TextDelta("<thi")]),
        (["so <think>", "is a tag</think>"], [TextDelta("so <think>"), TextDelta("is a tag</think>")]),
        (["<think></think>so"], [TextDelta("so")]),
        ([" " * 600] * 3, [TextDelta(" " * 1200), TextDelta(" " * 600)]),
    ],
)
async def test_thoughts_between_tags_at_the_beginning_are_reasoning(
    pieces: list[str], events: list[ModelEvent]
) -> None:
    assert await replied(STREAM_HEAD, *map(chunk, pieces), STOP) == [*events, ReplyEnd("stop")]


async def test_a_whole_reply_in_place_of_a_stream_is_read() -> None:
    message = {"role": "assistant", "content": "It rains."}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    reply = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage})
    assert await replied(head(kind="application/json"), reply.encode()) == [
        TextDelta("It rains."),
        ReplyEnd("stop", usage),
    ]


@pytest.mark.parametrize(
    ("delta_", "call"),
    [
        (
            {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]},
            ToolCall("a", "f", "{}"),
        ),
        (
            {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]},
            ToolCall("a", "f", '{"x": 1}'),
        ),
        ({"function_call": {"name": "f", "arguments": "{}"}}, ToolCall("", "f", "{}")),
    ],
    ids=["as OpenAI has it", "arguments as an object", "OpenAI's older protocol"],
)
async def test_a_call_alone_is_a_reply(delta_: dict[str, object], call: ToolCall) -> None:
    assert await replied(STREAM_HEAD, delta(**delta_), DONE) == [ReplyEnd("tool_calls", {}, (call,))]


@pytest.mark.parametrize("stream", [HTML_ANSWER, STREAM_HEAD, STREAM_HEAD + b'data: {"choices": [{"delta": {"con'])
async def test_a_stream_without_a_word_or_an_end_is_cut(stream: bytes) -> None:
    assert await replied(stream) == [ReplyEnd(None)]


@pytest.mark.parametrize(
    ("stream", "sentence"),
    [
        (event({"error": {"message": "Slow down.", "code": 429}}), "openai/m is rate limited (Slow down)."),
        (
            event({"object": "error", "message": "Broken.", "code": 503}),
            "is failing or overloaded, status 503 (Broken)",
        ),
        (event({"error": "Broken."}), "sent an invalid response (Broken)."),
        (event({"error": {"message": "Broken.", "code": 503}}).rstrip(), "overloaded, status 503 (Broken)."),
        (chunk("a") + event({"error": {"message": "Broken."}}).rstrip(), "The reply of openai/m broke off (Broken)."),
        (chunk("a") + event({"error": {"message": "Broken."}}), "The reply of openai/m broke off (Broken)."),
        (event([1]), "sent an invalid response (not an event of its protocol)."),
        (b"data: " + b"[" * 100_000 + b"\n\n" + STOP, "sent an invalid response (not valid JSON)."),
        (chunk("a") + b"data: {\n\n" + STOP, "The reply of openai/m broke off (not valid JSON)."),
    ],
)
async def test_an_event_that_is_an_error_or_nonsense_is_told(stream: bytes, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        await replied(STREAM_HEAD, stream)
    assert sentence in str(caught.value)
