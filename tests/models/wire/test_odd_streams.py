"""Streams of chat completions that are odd in ways beyond those of the contract are read as what they mean."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.providers.failures import FailedError
from chorus_cli.models.rules.events import ReasoningDelta, ReplyEnd, TextDelta
from tests.models.providers.asked_models import STOP
from tests.models.providers.fault_server import DONE, STREAM_HEAD, chunk, event
from tests.models.wire.wire_talk import read, replied

if TYPE_CHECKING:
    from chorus_cli.models.rules.events import ModelEvent

RAIN = chunk("It rains in Zürich 🌧.") + STOP
RAINS = [TextDelta("It rains in Zürich 🌧."), ReplyEnd("stop")]


def delta(**fields: object) -> bytes:
    """Return a chunk with these fields in its delta."""
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": None}]})


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(RAIN.replace(b"\n", b"\r"), id="CR"),
        pytest.param(codecs.BOM_UTF8 + RAIN, id="byte order mark"),
        pytest.param(b"\n\n\n" + RAIN, id="blank lines first"),
        pytest.param(RAIN.replace(b"data: ", b"data:\n\ndata: "), id="empty data"),
        pytest.param(RAIN.replace(b"data: ", b"data:   \n\ndata: "), id="blank data"),
        pytest.param(RAIN.removesuffix(b"\n\n"), id="no blank line at the end"),
        pytest.param(RAIN.removesuffix(DONE + b"\n\n").rstrip(b"\n"), id="ended after the last event"),
    ],
)
async def test_a_stream_written_in_another_way_is_the_same_reply(stream: bytes) -> None:
    assert await replied(STREAM_HEAD, stream) == RAINS


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
async def test_a_stream_may_be_cut_within_a_letter(size: int) -> None:
    written = RAIN.replace(b"\\u00fc", "ü".encode()).replace(b"\\ud83c\\udf27", "🌧".encode())
    stream = codecs.BOM_UTF8 + written.replace(b"\n", b"\r\n")
    assert await read(stream[start : start + size] for start in range(0, len(stream), size)) == RAINS


@pytest.mark.parametrize("kind", [b"application/octet-stream", b"application/json"])
async def test_a_stream_of_another_declared_type_is_read(kind: bytes) -> None:
    assert await replied(STREAM_HEAD.replace(b"text/event-stream", kind), RAIN) == RAINS


@pytest.mark.parametrize("body", [b"data: " + b"x" * 2_000, b"x" * 2_000, b'{"id": "' + b"x" * 2_000])
async def test_an_event_without_end_is_given_up(body: bytes) -> None:
    pieces = [RAIN[:100], RAIN[100:], *(body[start : start + 100] for start in range(0, len(body), 100))]
    with pytest.raises(FailedError, match="an event of more than 1,000 bytes"):
        await read(pieces, longest_event_bytes=1_000)


HM = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]
AS_OBJECT = {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]}


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(delta(content=HM) + delta(content="a"), [ReasoningDelta("hm"), TextDelta("a")], id="thoughts"),
        pytest.param(delta(content=None) + delta(content=5) + delta(content={"text": "x"}), [], id="no content"),
        pytest.param(event({"choices": ["x"]}), [], id="no choice"),
        pytest.param(event({"error": None, "choices": [{"delta": {"content": "a"}}]}), [TextDelta("a")], id="no error"),
    ],
)
async def test_a_chunk_adds_what_it_says(stream: bytes, events: list[ModelEvent]) -> None:
    assert await replied(STREAM_HEAD, stream, STOP) == [*events, ReplyEnd("stop")]


async def test_the_arguments_of_a_call_may_be_an_object() -> None:
    call = ToolCall("a", "f", '{"x": 1}')
    assert await replied(STREAM_HEAD, delta(**AS_OBJECT), DONE) == [ReplyEnd("tool_calls", {}, (call,))]


async def test_a_stream_that_ends_within_an_event_is_cut() -> None:
    assert await replied(STREAM_HEAD + b'data: {"choices": [{"delta": {"con') == [ReplyEnd(None)]


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        (["\n<thi", "nk>h", "m</th", "ink>", "\n", "\nso"], [*map(ReasoningDelta, "hm"), TextDelta("so")]),
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


@pytest.mark.parametrize(
    ("stream", "sentence"),
    [
        (event({"object": "error", "message": "Broken.", "code": 503}), "or overloaded, status 503 (Broken)"),
        (event({"error": {"message": "Broken.", "code": 503}}).rstrip(), "overloaded, status 503 (Broken)."),
        (chunk("a") + event({"error": {"message": "Broken."}}).rstrip(), "The reply of openai/m broke off (Broken)."),
        (event([1]), "sent an invalid response (not an event of its protocol)."),
        (b"data: " + b"[" * 100_000 + b"\n\n" + STOP, "sent an invalid response (not valid JSON)."),
        (chunk("a") + b"data: {\n\n" + STOP, "The reply of openai/m broke off (not valid JSON)."),
    ],
)
async def test_an_event_that_is_an_error_or_nonsense_is_told(stream: bytes, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        await replied(STREAM_HEAD, stream)
    assert sentence in str(caught.value)
