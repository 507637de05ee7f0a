"""Errors, odd streams and ways of their bytes in each protocol; where litellm loses something, its row says so."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.events import ModelEvent, ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest
from tests.models.providers.asked_models import BY_LITELLM, HELLO, STOP, MakeClient, error_of, text_of
from tests.models.providers.fault_server import (
    STREAM_HEAD,
    FaultServer,
    byte_by_byte,
    compressed,
    event,
    failure,
    serving,
)

pytestmark = BY_LITELLM

CLAUDE = "anthropic/claude-sonnet-4-5"
GEMINI = "gemini/gemini-2.5-flash"
NOWHERE = "http://127.0.0.1:9/v1"
KEY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _keys(fake_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fake_key
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)


def point_to(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the addresses of all protocols those of ``server``."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.address)
    monkeypatch.setenv("ANTHROPIC_API_BASE", server.address.removesuffix("/v1"))
    monkeypatch.setenv("GEMINI_API_BASE", f"{server.address}beta")


def claudes(type_: str, message: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": type_, "message": message}, "request_id": "r"}


def geminis(code: int, message: str, status: str, *details: dict[str, str]) -> dict[str, object]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


TOO_LONG = "The request is too long for {model} ({words}). Start over with /new, shrink the window"
NO_CREDIT = "The account for {model} is out of credit ({words}). Check its plan,"
FAILING = "The provider of {model} is failing or overloaded, status {status} ({words}). Try again later."
LIMITED = "{model} is rate limited ({words}). Try again in 7 s."
WRONG_KEY = "The provider of {model} rejected the key ({words}). Check {key}."
REJECTED = "The provider of {model} rejected the request ({words}). Check the persona's settings,"


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (400, claudes("invalid_request_error", "max_tokens: Field required"), REJECTED),
        (400, claudes("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"), TOO_LONG),
        (400, claudes("invalid_request_error", "Your credit balance is too low to access the API"), NO_CREDIT),
        (413, claudes("request_too_large", "Request exceeds the maximum size"), TOO_LONG),
        (429, claudes("rate_limit_error", "Slow down"), LIMITED),
        (529, claudes("overloaded_error", "Overloaded"), FAILING),
        (
            400,
            geminis(400, "API key not valid. Please pass a valid API key", "INVALID", {"reason": "API_KEY_INVALID"}),
            WRONG_KEY,
        ),
        (400, geminis(400, "Invalid JSON payload received", "INVALID_ARGUMENT"), REJECTED),
        (400, geminis(400, "The input token count (12) exceeds the maximum number of tokens", "INVALID"), TOO_LONG),
        (429, geminis(429, "Resource exhausted", "RESOURCE_EXHAUSTED"), LIMITED),
        (503, geminis(503, "The model is overloaded", "UNAVAILABLE"), FAILING),
    ],
)
async def test_an_error_of_each_protocol_is_told_in_the_same_words(
    make_client: MakeClient,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: dict[str, dict[str, str]],
    sentence: str,
) -> None:
    model = CLAUDE if "type" in body else GEMINI
    async with serving(failure(status, body, retry_after="7")) as server:
        point_to(server, monkeypatch)
        error = await error_of(make_client, NOWHERE, KEY, model=model)
        at = f" at {server.address.removesuffix('/v1')}"
    words = body["error"]["message"]
    variable = "ANTHROPIC_API_KEY" if model == CLAUDE else "GEMINI_API_KEY"
    told = str(error).replace(f"{at}/v1beta", "").replace(at, "")
    assert told.startswith(sentence.format(model=model, words=words, status=status, key=variable))


@pytest.mark.parametrize("key", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY"])
async def test_the_rejected_key_is_named(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv(key, KEY)
    async with serving(failure(401, {"error": {"message": "Wrong key"}})) as server:
        point_to(server, monkeypatch)
        model = CLAUDE if key.startswith("ANTHROPIC") else GEMINI
        error = await error_of(make_client, NOWHERE, KEY, model=model)
    assert str(error).endswith(f"rejected the key (Wrong key). Check {key}.")


def part(part_: dict[str, object], finish_reason: str | None = None) -> bytes:
    """Return an event of Gemini with one part."""
    candidate: dict[str, object] = {"index": 0, "content": {"role": "model", "parts": [part_]}}
    return event({"candidates": [candidate | ({"finishReason": finish_reason} if finish_reason else {})]})


def named(payload: dict[str, object]) -> bytes:
    """Return an event of Claude, which has its type as its name too."""
    return f"event: {payload['type']}\n".encode() + event(payload)


BEGIN = named({"type": "message_start", "message": {"id": "m", "model": "c", "content": [], "usage": {}}})
PING = named({"type": "ping"})
HALT = named({"type": "message_stop"})


def block(index: int, start: dict[str, object], *deltas: dict[str, object]) -> bytes:
    pieces = (named({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas)
    begin = named({"type": "content_block_start", "index": index, "content_block": start})
    return begin + b"".join(pieces) + named({"type": "content_block_stop", "index": index})


def ended(reason: str) -> bytes:
    return named({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}})


SAID = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "hi"})
THOUGHT = block(
    0,
    {"type": "thinking", "thinking": ""},
    {"type": "thinking_delta", "thinking": "hm"},
    {"type": "signature_delta", "signature": "s"},
)
CALLED = block(
    0,
    {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    {"type": "input_json_delta", "partial_json": '{"x":'},
    {"type": "input_json_delta", "partial_json": "1}"},
)
HI, END = TextDelta("hi"), ReplyEnd("stop")
OVERLOADED = named(claudes("overloaded_error", "Overloaded"))
BUSY = event(geminis(503, "The model is overloaded", "UNAVAILABLE"))


@dataclass(frozen=True, slots=True)
class Odd:
    """A stream, the model that sends it, what it means, and what litellm makes of it, if something else."""

    model: str
    answer: bytes
    meaning: tuple[ModelEvent | str, ...]
    by_litellm: tuple[ModelEvent | str, ...] = ()


STREAMS = {
    "Claude: a whole reply with pings": Odd(CLAUDE, BEGIN + PING + SAID + PING + ended("end_turn") + HALT, (HI, END)),
    "Claude: cut by the token limit": Odd(CLAUDE, BEGIN + SAID + ended("max_tokens") + HALT, (HI, ReplyEnd("length"))),
    "Claude: a refusal": Odd(CLAUDE, BEGIN + SAID + ended("refusal") + HALT, (HI, ReplyEnd("content_filter"))),
    "Claude: thoughts": Odd(CLAUDE, BEGIN + THOUGHT + SAID + ended("end_turn") + HALT, (ReasoningDelta("hm"), HI, END)),
    "Claude: a call alone": Odd(
        CLAUDE,
        BEGIN + CALLED + ended("tool_use") + HALT,
        (ReplyEnd("tool_calls", calls=(ToolCall("a", "f", '{"x":1}'),)),),
    ),
    "Claude: neither a reason nor an end": Odd(CLAUDE, BEGIN + SAID, (HI, ReplyEnd(None))),
    "Claude: a reason without the last event": Odd(CLAUDE, BEGIN + SAID + ended("end_turn"), (HI, END)),
    "Claude: cut off": Odd(CLAUDE, BEGIN + SAID + OVERLOADED, (HI, f"The reply of {CLAUDE} broke off (Overloaded).")),
    "Claude: an error in place of the reply": Odd(
        CLAUDE,
        OVERLOADED,
        (f"The provider of {CLAUDE} is failing or overloaded, status 529 (Overloaded).",),
        (f"The provider of {CLAUDE} sent an invalid response (Overloaded).",),
    ),
    "Gemini: a whole reply": Odd(GEMINI, part({"text": "hi"}, "STOP"), (HI, END)),
    "Gemini: a whole reply in a list": Odd(
        GEMINI,
        part({"text": "hi"}, "STOP").replace(b"data: ", b"[").replace(b"\n\n", b"]"),
        (HI, END),
        (f"The provider of {GEMINI} sent an invalid response.",),
    ),
    "Gemini: cut by the token limit": Odd(
        GEMINI, part({"text": "hi"}) + part({"text": "!"}, "MAX_TOKENS"), (HI, TextDelta("!"), ReplyEnd("length"))
    ),
    "Gemini: filtered": Odd(GEMINI, part({"text": "hi"}, "SAFETY"), (HI, ReplyEnd("content_filter"))),
    "Gemini: nothing at all": Odd(GEMINI, b"", (ReplyEnd(None),)),
    "Gemini: thoughts": Odd(
        GEMINI, part({"text": "hm", "thought": True}) + part({"text": "hi"}, "STOP"), (ReasoningDelta("hm"), HI, END)
    ),
    "Gemini: a call alone": Odd(
        GEMINI,
        part({"functionCall": {"name": "f", "args": {"x": 1}, "id": "a"}}, "STOP"),
        (ReplyEnd("tool_calls", calls=(ToolCall("a", "f", '{"x": 1}'),)),),
    ),
    "Gemini: cut without a word": Odd(GEMINI, part({"text": "hi"}), (HI, ReplyEnd(None)), (HI, END)),
    "Gemini: a prompt that is filtered": Odd(
        GEMINI, event({"promptFeedback": {"blockReason": "SAFETY"}}), (ReplyEnd("content_filter"),)
    ),
    "Gemini: an error within the reply": Odd(
        GEMINI,
        part({"text": "hi"}) + BUSY,
        (HI, f"The reply of {GEMINI} broke off (The model is overloaded)."),
        (HI, f"The reply of {GEMINI} broke off (UNAVAILABLE - The model is overloaded)."),
    ),
    "Gemini: an error in place of the reply": Odd(
        GEMINI,
        BUSY,
        (f"The provider of {GEMINI} is failing or overloaded, status 503 (The model is overloaded).",),
        (f"The provider of {GEMINI} is failing or overloaded, status 503 (UNAVAILABLE - The model is overloaded).",),
    ),
}


async def came(make_client: MakeClient, model: str) -> tuple[ModelEvent | str, ...]:
    """Return the events of a reply without its usage, and the problem of the error that ended it, if any."""
    events: list[ModelEvent | str] = []
    try:
        async for each in make_client(os.environ).stream(ModelRequest(model, HELLO)):
            events.append(replace(each, usage={}, thought_parts="") if isinstance(each, ReplyEnd) else each)  # noqa: PERF401 - a comprehension would lose them with the error
    except ModelError as error:
        events.append(error.problem)
    return tuple(events)


@pytest.mark.parametrize("odd", STREAMS.values(), ids=STREAMS)
async def test_a_stream_is_read_rightly(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, odd: Odd) -> None:
    async with serving(STREAM_HEAD + odd.answer) as server:
        point_to(server, monkeypatch)
        found = await came(make_client, odd.model)
    assert found == (odd.by_litellm if make_client.way == "litellm" and odd.by_litellm else odd.meaning)


LETTERS = "Grüße, \N{GRINNING FACE}"
SEPARATED = "one\u2028two\x85three"
OPENAI = "openai/m"


def sent(*payloads: dict[str, object]) -> bytes:
    """Return events whose letters are not escaped; those of Claude have names."""
    names = (f"event: {payload['type']}\n" if "type" in payload else "" for payload in payloads)
    data = (f"data: {json.dumps(payload, ensure_ascii=False)}\n\n" for payload in payloads)
    return "".join(name + event for name, event in zip(names, data, strict=True)).encode()


REPLIES = {
    OPENAI: sent({"id": "1", "model": "m", "choices": [{"index": 0, "delta": {"content": LETTERS}}]}) + STOP,
    CLAUDE: sent(
        {"type": "message_start", "message": {"id": "m", "model": "c", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": LETTERS}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ),
    GEMINI: sent(
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": LETTERS}]}}]},
        {"candidates": [{"index": 0, "finishReason": "STOP"}]},
    ),
}


@dataclass(frozen=True, slots=True)
class Transport:
    """A way for bytes to travel, and the models whose replies litellm loses by it."""

    answer: Callable[[bytes], bytes]
    lost_by_litellm: tuple[str, ...] = ()


TRANSPORTS = {
    "byte by byte": Transport(byte_by_byte),
    "a byte order mark, byte by byte": Transport(lambda body: byte_by_byte(codecs.BOM_UTF8 + body), (OPENAI, GEMINI)),
    "compressed": Transport(compressed),
    "lines that end with CR and LF": Transport(lambda body: STREAM_HEAD + body.replace(b"\n", b"\r\n")),
    "data without a blank": Transport(lambda body: STREAM_HEAD + body.replace(b"data: ", b"data:")),
    "comments between events": Transport(lambda body: STREAM_HEAD + body.replace(b"\n\n", b"\n\n: ping\n\n")),
    "an event with empty data": Transport(lambda body: STREAM_HEAD + b"data:\n\n" + body, (OPENAI,)),
    "another type of content": Transport(lambda body: STREAM_HEAD.replace(b"event-stream", b"plain") + body),
}


async def text_and_reason(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, model: str, answer: bytes
) -> tuple[str, str | None] | str:
    """Return the text and the finish reason of a reply, or the problem of its error."""
    async with serving(answer) as server:
        point_to(server, monkeypatch)
        try:
            events = [each async for each in make_client(os.environ).stream(ModelRequest(model, HELLO))]
        except ModelError as error:
            return error.problem
    end = events[-1]
    assert isinstance(end, ReplyEnd)
    return text_of(events), end.finish_reason


@pytest.mark.parametrize("transport", TRANSPORTS.values(), ids=TRANSPORTS)
@pytest.mark.parametrize("model", REPLIES)
async def test_a_reply_is_the_same_however_it_travels(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, model: str, transport: Transport
) -> None:
    is_lost = make_client.way == "litellm" and model in transport.lost_by_litellm
    reply = await text_and_reason(make_client, monkeypatch, model, transport.answer(REPLIES[model]))
    assert (reply == (LETTERS, "stop")) is not is_lost


@pytest.mark.parametrize("model", REPLIES)
async def test_separators_are_text(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    body = REPLIES[model].replace(LETTERS.encode(), SEPARATED.encode())
    assert await text_and_reason(make_client, monkeypatch, model, STREAM_HEAD + body) == (SEPARATED, "stop")
