"""Replies in each protocol of the wire, as their documentation shows them, and odd ones that mean the same."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ModelError
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.log.rules.messages import Thoughts
from chorus_cli.models.providers.failures import FailedError, Trouble
from chorus_cli.models.providers.providers import endpoint
from chorus_cli.models.rules.costs import CACHED, THOUGHT, WRITTEN
from chorus_cli.models.rules.events import ModelEvent, ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.anthropic import AnthropicReply as Claude
from chorus_cli.models.wire.chat_completions import ChatCompletions, ChatReader, short_id
from chorus_cli.models.wire.gemini import GeminiReply as Gemini
from chorus_cli.models.wire.http_client import EventStream
from chorus_cli.models.wire.protocol import ReplyReader
from chorus_cli.models.wire.responses import OpenAIResponses
from chorus_cli.models.wire.responses import ResponsesReply as Responses
from tests.models.providers.asked_models import MODEL_MAP, text_of
from tests.models.providers.asked_models import STOP as ENDED
from tests.models.providers.fault_server import DONE, STREAM_HEAD, chunk, event
from tests.models.wire.conversations import HELLO, replied

Body = dict[str, object]
Reader = type[ReplyReader]


def read(reader: ReplyReader, *payloads: object) -> list[ModelEvent]:
    """Return the events of a reply; text is the data of an event as it is, anything else is written as JSON."""
    found: list[ModelEvent] = []
    for payload in payloads:
        found += reader.events(payload if isinstance(payload, str) else json.dumps(payload))
        if found and isinstance(found[-1], ReplyEnd):
            return found
    return found + list(reader.end())


def reasoning_in(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def end_of(events: list[ModelEvent]) -> ReplyEnd:
    (end,) = (event for event in events if isinstance(event, ReplyEnd))
    assert events[-1] is end
    return end


def start(**usage: int) -> Body:
    """Return the first event of a Claude."""
    counts = usage or {"input_tokens": 25, "output_tokens": 1}
    message: Body = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "stop_reason": None}
    return {"type": "message_start", "message": message | {"usage": counts}}


def block(kind: str, place: int = 0, **fields: object) -> Body:
    return {"type": "content_block_start", "index": place, "content_block": {"type": kind, **fields}}


def delta(kind: str, place: int = 0, **fields: object) -> Body:
    return {"type": "content_block_delta", "index": place, "delta": {"type": kind, **fields}}


def said(text: str, place: int = 0) -> Body:
    return delta("text_delta", place, text=text)


def over(reason: str | None = "end_turn", **usage: int | None) -> Body:
    counts = usage or {"output_tokens": 15}
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": counts}


STOP = {"type": "message_stop"}


def piece(*parts: object, reason: str | None = None, index: int = 0) -> Body:
    """Return an event of Gemini; a part that is a text stands for itself."""
    content = {"role": "model", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}
    candidate = {"content": content, "index": index} | ({"finishReason": reason} if reason else {})
    return {"candidates": [candidate], "modelVersion": "gemini-2.5-flash", "responseId": "r"}


def call(name: str, arguments: object, id_: str = "", signature: str = "") -> Body:
    called = {"name": name, "args": arguments} | ({"id": id_} if id_ else {})
    return {"functionCall": called} | ({"thoughtSignature": signature} if signature else {})


NO_CONTENT = {"candidates": [{"finishReason": "STOP", "index": 0}]}
OF_GEMINI = {"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14}


def grown(kind: str, text: str, index: int = 0, **more: object) -> Body:
    """Return a piece of an item of OpenAI's responses."""
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **more}


def item(kind: str, value: Body, index: int = 0) -> Body:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": value}


def incomplete(reason: str) -> Body:
    return {"type": "response.incomplete", "response": {"incomplete_details": {"reason": reason}}}


REASONING: Body = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "QUJD"}
OF_RESPONSES = {
    "input_tokens": 10,
    "output_tokens": 7,
    "total_tokens": 17,
    "input_tokens_details": {"cached_tokens": 8},
    "output_tokens_details": {"reasoning_tokens": 5},
}
COMPLETED: Body = {"type": "response.completed", "response": {"status": "completed", "usage": OF_RESPONSES}}
ODD = [{"type": "reasoning.text", "index": [0], "text": "hm"}]
SAID: Body = {"type": "message", "content": [{"type": "output_text", "text": "a"}]}


@pytest.mark.parametrize(
    ("reader", "text", "reason", "payloads"),
    [
        (Claude, "a", "length", [said("a"), over("model_context_window_exceeded"), STOP]),
        (Claude, "a", "content_filter", [said("a"), over("content_filter"), STOP]),
        (Claude, "a", "stop", [said("a"), over("stop_sequence"), STOP]),
        (Claude, "a", "stop", [said("a"), over("a reason of tomorrow"), STOP]),
        (Claude, "a", "stop", [said("a"), STOP]),
        (Claude, "a", None, [said("a"), over(None)]),
        (Claude, "", None, []),
        (Claude, "a", "stop", ["", said("a"), "  ", over(), "[DONE]"]),
        (Claude, "ab", "stop", [block("text", text="a"), said("b"), over()]),
        (Claude, "ab", "stop", [said("a"), said("b", 1), over()]),
        (Claude, "\U0001f600", "stop", [said("\ud83d"), said("\ude00"), over()]),
        (Claude, "a\ufffd", "stop", [said("a\ud83d"), over()]),
        (Claude, "", "stop", [{"type": "of_tomorrow"}, delta("of_tomorrow"), over()]),
        (Claude, "a", "stop", [said("a"), over(), STOP, said("b")]),
        (Gemini, "Hello", "stop", [piece("Hel"), piece("lo", reason="STOP")]),
        (Gemini, "a", "content_filter", [piece("a", reason="RECITATION")]),
        (Gemini, "a", "content_filter", [piece("a", reason="PROHIBITED_CONTENT")]),
        (Gemini, "a", "stop", [piece("a", reason="A_REASON_OF_TOMORROW")]),
        (Gemini, "", "stop", [piece(reason="MALFORMED_FUNCTION_CALL")]),
        (Gemini, "a", "stop", [piece("a"), NO_CONTENT]),
        (Gemini, "ab", "stop", [piece("a", reason="STOP"), piece("b", reason="STOP")]),
        (Gemini, "a", None, [piece("a"), {"usageMetadata": OF_GEMINI}]),
        (Gemini, "ab", "stop", ["", piece("a", "b"), " ", NO_CONTENT]),
        (Gemini, "a", "stop", [piece("a"), piece("x", index=1), NO_CONTENT]),
        (Gemini, "\U0001f600", "stop", [piece("\ud83d"), piece("\ude00"), NO_CONTENT]),
        (Gemini, "ab", "stop", [[piece("a"), piece("b", reason="STOP")]]),
        (Gemini, "a", "stop", [piece({"executableCode": {"code": "1"}}, "a"), NO_CONTENT]),
        (Responses, "I must not.", "stop", [grown("refusal", "I must not."), COMPLETED]),
        (Responses, "a", None, [grown("output_text", "a")]),
        (Responses, "a", "stop", [grown("output_text", "a"), "[DONE]"]),
        (Responses, "a", "length", [grown("output_text", "a"), incomplete("max_output_tokens")]),
        (Responses, "", "content_filter", [incomplete("content_filter")]),
        (Responses, "a", "stop", [item("done", SAID), COMPLETED]),
        (Responses, "a", "stop", [{"type": "response.of_tomorrow"}, grown("output_text", "a"), COMPLETED]),
        (Responses, "a", "stop", [grown("output_text", "a") | {"output_index": [0]}, COMPLETED]),
        (Responses, "a\n\nbc", "stop", [*map(grown, ["output_text"] * 3, "abc", (0, 1, 1)), COMPLETED]),
        (ChatReader, "a", "stop", [{"choices": [{"delta": {"content": "a", "reasoning_details": ODD}}]}, "[DONE]"]),
    ],
)
def test_the_end_is_told_as_it_was(reader: Reader, text: str, reason: str | None, payloads: list[object]) -> None:
    events = read(reader(), *payloads)
    assert (text_of(events), end_of(events).finish_reason) == (text, reason)


def asked_for(written: str) -> Body:
    return {"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": written}


@pytest.mark.parametrize(
    ("reader", "payloads", "calls"),
    [
        (Claude, [block("tool_use", 0, id="a", name="f", input={"n": 1})], [ToolCall("a", "f", '{"n": 1}')]),
        (Gemini, [piece(call("f", {})), piece(call("g", {}))], [("", "f", "{}"), ("", "g", "{}")]),
        (Gemini, [piece(call("f", None))], [("", "f", "{}")]),
        (Responses, [item("added", asked_for("")), item("done", asked_for("{}"))], [ToolCall("a", "f", "{}")]),
    ],
)
def test_calls_are_assembled(reader: Reader, payloads: list[object], calls: list[ToolCall]) -> None:
    ends: dict[Reader, list[object]] = {Claude: [over("tool_use"), STOP], Gemini: [NO_CONTENT], Responses: [COMPLETED]}
    end = end_of(read(reader(), *payloads, *ends[reader]))
    assert (list(end.calls), end.finish_reason) == (calls, "tool_calls")


OF_CLAUDE = {"input_tokens": 5, "output_tokens": 1}
COUNTED: Body = {"prompt_tokens": 32, "completion_tokens": 9}
OF_XAI: Body = COUNTED | {"total_tokens": 135, "completion_tokens_details": {"reasoning_tokens": 94}}
CACHING = {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 900}


@pytest.mark.parametrize(
    ("reader", "payloads", "counts", "parts"),
    [
        (Claude, [start(**OF_CLAUDE), over(output_tokens=7), STOP], (5, 7, 12), {}),
        (Claude, [start(**CACHING), over(output_tokens=7), STOP], (1005, 7, 1012), {CACHED: 900, WRITTEN: 100}),
        (Claude, [start(**OF_CLAUDE), over(input_tokens=9, output_tokens=7), STOP], (9, 7, 16), {}),
        (Claude, [start(**OF_CLAUDE), over(input_tokens=None, output_tokens=7), STOP], (5, 7, 12), {}),
        (Gemini, [{"usageMetadata": {"promptTokenCount": 1}}, {"usageMetadata": OF_GEMINI}], (10, 4, 14), {}),
        (Gemini, [{"usageMetadata": OF_GEMINI | {"cachedContentTokenCount": 8}}], (10, 4, 14), {CACHED: 8}),
        (
            Gemini,
            [{"usageMetadata": OF_GEMINI | {"thoughtsTokenCount": 5, "totalTokenCount": 19}}],
            (10, 9, 19),
            {THOUGHT: 5},
        ),
        (Gemini, [{"usageMetadata": OF_GEMINI | {"thoughtsTokenCount": 3}}], (10, 4, 14), {THOUGHT: 3}),
        (
            Gemini,
            [{"usageMetadata": OF_GEMINI | {"toolUsePromptTokenCount": 6, "totalTokenCount": 20}}],
            (16, 4, 20),
            {},
        ),
        (Gemini, [{"usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}}], (10, 0, 10), {}),
        (Gemini, [{"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 4}}], (10, 4, 14), {}),
        (Responses, [COMPLETED], (10, 7, 17), {CACHED: 8, THOUGHT: 5}),
        (ChatReader, [{"usage": OF_XAI}], (32, 103, 135), {THOUGHT: 94}),
        (ChatReader, [{"usage": OF_XAI | {"total_tokens": 41}}], (32, 9, 41), {THOUGHT: 94}),
        (ChatReader, [{"usage": COUNTED | {"cached_tokens": 8}}], (32, 9, 41), {CACHED: 8}),
    ],
)
def test_tokens(reader: Reader, payloads: list[object], counts: tuple[int, int, int], parts: dict[str, int]) -> None:
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    assert end_of(read(reader(), *payloads)).usage == dict(zip(names, counts, strict=True)) | parts


def test_without_counts_no_usage_is_reported() -> None:
    assert end_of(read(Claude(), said("a"))).usage == {}


def test_the_parts_of_a_summary_are_apart() -> None:
    apart = {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1}
    first, then = (grown("reasoning_summary_text", text) for text in ("First.", "Then."))
    assert reasoning_in(read(Responses(), first, apart, then, item("done", REASONING), COMPLETED)) == "First.\n\nThen."


def test_messages_of_a_reply_are_paragraphs_and_go_back_apart() -> None:
    phases = ("commentary", "final_answer")
    said = (item("done", SAID | {"phase": each}, place) for place, each in enumerate(phases))
    events = read(Responses(), *said, COMPLETED)
    assert text_of(events) == "a\n\na"
    reply = PromptMessage("assistant", text_of(events), thoughts=Thoughts("", end_of(events).thought_parts))
    asked = endpoint("openai/responses/m", {})
    assert asked is not None
    post = OpenAIResponses(MODEL_MAP).post(ModelRequest("openai/responses/m", (HELLO, reply)), asked)
    sent = {"type": "message", "role": "assistant", "content": "a"}
    assert json.loads(post.body)["input"][1:] == [sent | {"phase": each} for each in phases]


BROKEN = {"code": "server_error", "message": "It broke."}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
BUSY = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


@pytest.mark.parametrize(
    ("reader", "payload", "status", "body"),
    [
        (Claude, OVERLOADED, None, OVERLOADED),
        (Gemini, BUSY, 503, BUSY),
        (Gemini, [BUSY], 503, BUSY),
        (Responses, {"type": "error", **BROKEN}, None, {"type": "error", **BROKEN}),
        (Responses, {"type": "response.failed", "response": {"error": BROKEN}}, None, {"error": BROKEN}),
    ],
)
def test_an_error_event_is_told_by_body(reader: Reader, payload: object, status: int | None, body: object) -> None:
    with pytest.raises(FailedError) as caught:
        read(reader(), payload)
    failure = caught.value.failure
    assert (failure.trouble, failure.status, failure.body) == (None, status, body)


@pytest.mark.parametrize("reader", [Claude, Gemini])
@pytest.mark.parametrize("data", ["<html>", "{", '"text"', "3", "null", "[1]", "[" * 100_000])
def test_data_of_another_kind_is_an_invalid_response(reader: Reader, data: str) -> None:
    with pytest.raises(FailedError) as caught:
        read(reader(), data)
    assert caught.value.failure.trouble is Trouble.INVALID_RESPONSE


_NAMES = st.sampled_from(
    [
        *("type", "index", "delta", "content_block", "message", "usage", "text", "thinking", "partial_json", "id"),
        *("name", "input", "stop_reason", "candidates", "content", "parts", "functionCall", "args", "finishReason"),
        *("usageMetadata", "promptTokenCount", "error", "code", "thought"),
    ]
)
_TEXTS = st.sampled_from(
    [
        *("message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "message"),
        *("text", "text_delta", "tool_use", "input_json_delta", "thinking_delta", "STOP", "\ud83d"),
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=6),
    max_leaves=30,
)


@given(payloads=st.lists(_VALUES, max_size=4))
@pytest.mark.parametrize("reader", [Claude, Gemini])
def test_any_json_is_read_or_refused(reader: Reader, payloads: list[object]) -> None:
    reply = reader()
    with suppress(FailedError):
        for payload in payloads:
            _ = list(reply.events(json.dumps(payload)))
    assert isinstance(list(reply.end())[-1], ReplyEnd)


def chat_delta(**fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def chat_parts(*deltas: dict[str, object]) -> tuple[str, Any]:
    """Return the readable thoughts of a reply, and the provider's own parts."""
    events = read(ChatReader(), *deltas, "[DONE]")
    written = end_of(events).thought_parts
    return reasoning_in(events), json.loads(written)["parts"] if written else []


def chat(*parts: dict[str, object]) -> str:
    return json.dumps({"form": "chat", "parts": [*parts, {"said": 7}]})


def test_details_are_joined_by_their_type_and_number() -> None:
    texts, parts = chat_parts(
        chat_delta(reasoning="One ", reasoning_details=[DETAIL | {"text": "One ", "format": "f"}]),
        chat_delta(reasoning="two.", reasoning_details=[DETAIL | {"text": "two.", "signature": "s"}]),
        chat_delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 0, "data": "QU", "id": "rs_1"}]),
        chat_delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 0, "data": "JD", "id": None}]),
    )
    assert texts == "One two."
    assert [part for part in parts if "type" in part] == [
        {"type": "reasoning.text", "index": 0, "text": "One two.", "format": "f", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 0, "data": "QUJD", "id": "rs_1"},
    ]


def detail(text: str) -> Body:
    return chat_delta(reasoning_details=[DETAIL | {"text": text}])


def test_details_that_come_in_pieces_lose_none() -> None:
    pieces = {"The user asks.": ["", "The", " user", " asks."], "hahaha!": ["ha", "ha", "ha!"]}
    pieces |= {"The user asks for tea.": ["The", "The user", " asks", " for tea."], "a b": ["a", "a b", "a b"]}
    for whole, came in pieces.items():
        texts, parts = chat_parts(*map(detail, came))
        assert (texts, [part["text"] for part in parts]) == (whole, [whole])


def test_chunks_of_mistral_are_one_with_the_newest_signature() -> None:
    def thinking(text: str, **more: object) -> dict[str, object]:
        return chat_delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": text}], **more}])

    texts, parts = chat_parts(thinking("One "), thinking("two.", signature="s", closed=True), chat_delta(content="Hi"))
    assert texts == "One two."
    whole = {"type": "thinking", "thinking": [{"type": "text", "text": "One two."}], "signature": "s", "closed": True}
    assert parts == [whole, {"said": 2}]


DETAIL: dict[str, object] = {"type": "reasoning.text", "index": 0, "text": "hm"}


@pytest.mark.parametrize(
    ("model", "thoughts", "fields"),
    [
        ("openrouter/x/y", Thoughts("hm"), {"reasoning": "hm"}),
        ("mistral/mistral-small-latest", Thoughts("hm"), {}),
        ("together_ai/deepseek-ai/DeepSeek-V4", Thoughts("hm", chat({"came_in": "reasoning"})), {"reasoning": "hm"}),
        ("hosted_vllm/m", Thoughts("hm", chat({"came_in": "reasoning"})), {"reasoning": "hm"}),
        ("hosted_vllm/m", Thoughts("hm"), {"reasoning_content": "hm"}),
        ("openai/gpt-4o", Thoughts("hm"), {}),
        ("xai/grok-4.3", Thoughts("hm"), {}),
    ],
)
def test_thoughts_go_back_in_their_own_field(model: str, thoughts: Thoughts | None, fields: dict[str, object]) -> None:
    said = PromptMessage("assistant", "I look.", thoughts=thoughts)
    asked = endpoint(model, {})
    assert asked is not None
    post = ChatCompletions(MODEL_MAP).post(ModelRequest(model, (HELLO, said, HELLO)), asked)
    assert json.loads(post.body)["messages"][1] == {"role": "assistant", "content": "I look.", **fields}


@given(st.text(), st.text())
def test_ids_of_nine_letters_are_told_apart(one: str, other: str) -> None:
    assert re.fullmatch("[a-zA-Z0-9]{9}", short_id(one))
    assert (short_id(one) == short_id(other)) == (one == other)
    assert short_id(short_id(one)) == short_id(one)


RAIN = chunk("It rains in Zürich 🌧.") + ENDED
RAINS = [TextDelta("It rains in Zürich 🌧."), ReplyEnd("stop")]


def adding(**fields: object) -> bytes:
    return event(chat_delta(**fields))


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


@pytest.mark.parametrize("body", [b"data: " + b"x" * 2_000, b"x" * 2_000, b'{"id": "' + b"x" * 2_000])
async def test_an_event_without_end_is_given_up(body: bytes) -> None:
    pieces = [RAIN[:100], RAIN[100:], *(body[start : start + 100] for start in range(0, len(body), 100))]

    async def coming() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    stream = EventStream(httpx.Response(200, content=coming()), longest_event_bytes=1_000)
    with pytest.raises(FailedError, match="an event of more than 1,000 bytes"):
        _ = [data async for data in stream.data()]


HM = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]
AS_OBJECT = {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]}


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(adding(content=HM) + adding(content="a"), [ReasoningDelta("hm"), TextDelta("a")], id="thoughts"),
        pytest.param(adding(content=None) + adding(content=5) + adding(content={"text": "x"}), [], id="no content"),
        pytest.param(event({"choices": ["x"]}), [], id="no choice"),
        pytest.param(event({"error": None, "choices": [{"delta": {"content": "a"}}]}), [TextDelta("a")], id="no error"),
    ],
)
async def test_a_chunk_adds_what_it_says(stream: bytes, events: list[ModelEvent]) -> None:
    assert await replied(STREAM_HEAD, stream, ENDED) == [*events, ReplyEnd("stop")]


async def test_the_arguments_of_a_call_may_be_an_object() -> None:
    call = ToolCall("a", "f", '{"x": 1}')
    assert await replied(STREAM_HEAD, adding(**AS_OBJECT), DONE) == [ReplyEnd("tool_calls", {}, (call,))]


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
async def test_thoughts_between_tags_at_the_start_are_reasoning(pieces: list[str], events: list[ModelEvent]) -> None:
    assert await replied(STREAM_HEAD, *map(chunk, pieces), ENDED) == [*events, ReplyEnd("stop")]


@pytest.mark.parametrize(
    ("stream", "sentence"),
    [
        (event({"object": "error", "message": "Broken.", "code": 503}), "or overloaded, status 503 (Broken)"),
        (event({"error": {"message": "Broken.", "code": 503}}).rstrip(), "overloaded, status 503 (Broken)."),
        (chunk("a") + event({"error": {"message": "Broken."}}).rstrip(), "The reply of openai/m broke off (Broken)."),
        (event([1]), "sent an invalid response (not an event of this protocol)."),
        (b"data: " + b"[" * 100_000 + b"\n\n" + ENDED, "sent an invalid response (not valid JSON)."),
        (chunk("a") + b"data: {\n\n" + ENDED, "The reply of openai/m broke off (not valid JSON)."),
    ],
)
async def test_an_event_that_is_an_error_or_nonsense_is_told(stream: bytes, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        await replied(STREAM_HEAD, stream)
    assert sentence in str(caught.value)
