"""Odd streams, and odd ways of their bytes: each is read for what it means; a row says what litellm loses."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass

import pytest

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.events import ModelEvent, ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest
from tests.models.providers.asked_models import BROKE_OFF, BY_LITELLM, HELLO, KEPT, STOP, error_of, events_of, meaning
from tests.models.providers.fault_server import (
    DONE,
    HTML_ANSWER,
    JSON_HEAD,
    STREAM_HEAD,
    byte_by_byte,
    chunk,
    compressed,
    encoded,
    event,
    serving,
    usage_chunk,
)
from tests.models.providers.ways import MakeClient

pytestmark = BY_LITELLM

HI = chunk("hi")
SAID, END = TextDelta("hi"), ReplyEnd("stop")
THOUGHT = (ReasoningDelta("hm"), SAID, END)
LETTERS = "Grüße, \N{GRINNING FACE}"
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
COUNTED = (SAID, ReplyEnd("stop", USAGE))
OVERLOADED = {"error": {"message": "overloaded", "code": 529}}
FAILING = "The provider of openai/m is failing or overloaded, status 529 (overloaded). Try again later."
UNREACHABLE = "Cannot reach openai/m at ADDRESS"
START_IT = "Check that its server is running and the network is up."
LATER = "Try again later."
NOT_HTTP = "The server of openai/m at ADDRESS does not speak HTTP. Correct its address."
INVALID = "The provider of openai/m sent an invalid response"


def choice(delta: object, *, index: int = 0, finish_reason: str | None = None) -> dict[str, object]:
    return {"index": index, "delta": delta, "finish_reason": finish_reason}


def whole_chunk(*choices: object, **more: object) -> dict[str, object]:
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [*choices], **more}


def saying(delta: object) -> bytes:
    return event(whole_chunk(choice(delta)))


def headed(answer: bytes) -> bytes:
    """Return an answer with the head of a stream if it has none."""
    return answer if answer.startswith((b"HTTP", b"SSH", b"xxx")) or not answer else STREAM_HEAD + answer


@dataclass(frozen=True, slots=True)
class Odd:
    """A stream, the events that it means, and those that litellm makes of it, if others."""

    answer: bytes
    events: tuple[ModelEvent, ...] = (SAID, END)
    by_litellm: tuple[ModelEvent, ...] = ()


def unescaped(text: str) -> bytes:
    """Return a chunk whose letters stand in it as UTF-8."""
    return b"data: " + json.dumps(whole_chunk(choice({"content": text})), ensure_ascii=False).encode() + b"\n\n"


STREAMS = {
    "cut after each byte, within letters too": Odd(byte_by_byte(unescaped(LETTERS) + STOP), (TextDelta(LETTERS), END)),
    "compressed by deflate": Odd(encoded("deflate") + zlib.compress(HI + STOP)),
    "compressed by deflate, without a head": Odd(encoded("Deflate") + zlib.compress(HI + STOP)[2:-4]),
    "compressed, after which more comes": Odd(compressed(HI + STOP) + b"more"),
    "not compressed, which is said": Odd(encoded("identity") + HI + STOP),
    "data in two lines": Odd(HI.replace(b'"choices"', b'\ndata: "choices"') + STOP),
    "comments between events": Odd(b": ping\n\n" + HI + b": ping\n\n" + STOP),
    "names and ids of events": Odd(b"event: message\nid: 4\nretry: 9\n" + HI + STOP),
    "10 MB in one event": Odd(chunk("x" * 10_000_000) + STOP, (TextDelta("x" * 10_000_000), END)),
    "no choices": Odd(event(whole_chunk()) + HI + STOP),
    "choices that are null": Odd(event(whole_chunk() | {"choices": None}) + HI + STOP),
    "a delta that is null": Odd(saying(None) + HI + STOP),
    "usage by itself": Odd(HI + chunk(finish_reason="stop") + usage_chunk(5, 2) + DONE, COUNTED),
    "usage in every chunk": Odd(
        event(whole_chunk(choice({"content": "hi"}), usage=USAGE | {"total_tokens": 6}))
        + event(whole_chunk(choice({}, finish_reason="stop"), usage=USAGE))
        + DONE,
        COUNTED,
    ),
    "a finish reason without [DONE]": Odd(HI + chunk(finish_reason="stop")),
    "[DONE] without a finish reason": Odd(HI + DONE, by_litellm=(SAID, ReplyEnd(None))),
    "neither": Odd(HI, (SAID, ReplyEnd(None))),
    "something after [DONE]": Odd(HI + STOP + chunk("more")),
    "a text with the finish reason": Odd(event(whole_chunk(choice({"content": "hi"}, finish_reason="stop"))) + DONE),
    "a whole reply as JSON": Odd(
        JSON_HEAD
        + json.dumps({"choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}]}).encode(),
        by_litellm=(ReplyEnd(None),),
    ),
    "a second choice mixed in": Odd(
        event(whole_chunk(choice({"content": "X"}, index=1)))
        + event(whole_chunk(choice({"content": "hi"}), choice({"content": "Y"}, index=1)))
        + event(whole_chunk(choice({}, index=1, finish_reason="length")))
        + STOP,
        by_litellm=(TextDelta("X"), SAID, ReplyEnd("length")),
    ),
    "content in a list": Odd(saying({"content": [{"type": "text", "text": "hi"}]}) + STOP, by_litellm=(END,)),
    "a refusal": Odd(saying({"refusal": "hi"}) + STOP, by_litellm=(END,)),
    "<think> in the text, cut": Odd(
        chunk("<thi") + chunk("nk>h") + chunk("m</th") + chunk("ink>\n\nhi") + STOP,
        (ReasoningDelta("h"), ReasoningDelta("m"), SAID, END),
        (TextDelta("<thi"), TextDelta("nk>h"), TextDelta("m</th"), TextDelta("ink>\n\nhi"), END),
    ),
    "reasoning by its other name": Odd(saying({"reasoning": "hm"}) + HI + STOP, THOUGHT),
    "reasoning by both names": Odd(saying({"reasoning": "hm", "reasoning_content": "hm"}) + HI + STOP, THOUGHT),
    "a call alone": Odd(
        saying({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]})
        + chunk(finish_reason="tool_calls")
        + DONE,
        (ReplyEnd("tool_calls", calls=(ToolCall("a", "f", "{}"),)),),
    ),
    "the call of the older protocol": Odd(
        saying({"function_call": {"name": "f", "arguments": "{"}})
        + saying({"function_call": {"arguments": "}"}})
        + chunk(finish_reason="function_call")
        + DONE,
        (ReplyEnd("function_call", calls=(ToolCall("", "f", "{}"),)),),
    ),
    "a filtered reply": Odd(HI + chunk(finish_reason="content_filter") + DONE, (SAID, ReplyEnd("content_filter"))),
    "full at Mistral": Odd(HI + chunk(finish_reason="model_length") + DONE, (SAID, ReplyEnd("length")), (SAID, END)),
    "a filtered reply at Z.ai": Odd(HI + chunk(finish_reason="sensitive") + DONE, (SAID, ReplyEnd("content_filter"))),
    "an unknown finish reason": Odd(HI + chunk(finish_reason="eos") + DONE, (SAID, ReplyEnd("eos")), (SAID, END)),
    "a page instead of a stream": Odd(HTML_ANSWER + b"\n<p>data: log in</p>", (ReplyEnd(None),)),
}


@pytest.mark.parametrize("odd", STREAMS.values(), ids=STREAMS)
async def test_an_odd_stream_is_read_for_what_it_means(make_client: MakeClient, test_key: str, odd: Odd) -> None:
    async with serving(headed(odd.answer)) as server:
        # Patient, as the longest takes a while.
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": test_key})
        events = [meaning(event) async for event in client.stream(ModelRequest("openai/m", HELLO))]
    assert tuple(events) == (odd.by_litellm if make_client.way == "litellm" and odd.by_litellm else odd.events)


@dataclass(frozen=True, slots=True)
class Fault:
    """A faulty answer, its sentence, and what becomes of it by litellm, if something else."""

    answer: bytes
    sentence: str
    by_litellm: str | tuple[ModelEvent, ...] = ""


TWICE = gzip.compress(gzip.compress(HI + STOP))
FAULTS = {
    "an error event within the reply": Fault(HI + event(OVERLOADED), f"{BROKE_OFF} (overloaded). {KEPT}"),
    "an error event in place of the reply": Fault(event(OVERLOADED), FAILING),
    "an error event that is called so": Fault(
        b"event: error\n" + event({"error": {"message": "Slow down", "type": "rate_limit_error"}}),
        f"openai/m is rate limited (Slow down). {LATER}",
    ),
    "an error event in words": Fault(event({"error": "out of memory"}), f"{INVALID} (out of memory). {LATER}"),
    "an error as JSON, with status 200": Fault(JSON_HEAD + json.dumps(OVERLOADED).encode(), FAILING, (ReplyEnd(None),)),
    "an error reason": Fault(HI + chunk(finish_reason="error") + DONE, f"{BROKE_OFF} (error at the provider). {KEPT}"),
    "not JSON": Fault(b"data: {not JSON\n\n", f"{INVALID} (not valid JSON). {LATER}"),
    "badly compressed": Fault(encoded("gzip") + b"abc", f"{INVALID} (not compressed as it says). {LATER}"),
    "compressed twice": Fault(encoded("gzip, gzip") + TWICE, f"{INVALID} (compressed more than once). {LATER}"),
    "compressed more than once, in two headers": Fault(
        encoded("gzip\r\nContent-Encoding: deflate") + TWICE, f"{INVALID} (compressed more than once). {LATER}"
    ),
    "compressed by another method": Fault(
        encoded("br") + b"abc", f"{INVALID} (compressed in a way that was not asked for). {LATER}"
    ),
    "a line without an end, compressed": Fault(
        compressed(HI + b"data: " + bytes(65_000_000)),
        f"{BROKE_OFF} (an event of more than 64,000,000 bytes). {KEPT}",
        f"{BROKE_OFF} (an event of more than 16,000,000 bytes). {KEPT}",
    ),
    "an error that is compressed more than once": Fault(
        encoded("gzip, gzip").replace(b"200 OK", b"503 No") + TWICE,
        "The provider of openai/m is failing or overloaded, status 503 (its answer is compressed more than once). "
        f"{LATER}",
    ),
    "an error that unpacks to 100 MB": Fault(
        encoded("gzip").replace(b"200 OK", b"503 No") + gzip.compress(b"busy " * 20_000_000),
        f"The provider of openai/m is failing or overloaded, status 503 ({'busy ' * 31}busy…). {LATER}",
    ),
    "an address that redirects": Fault(
        b"HTTP/1.1 307 No\r\nLocation: http://127.0.0.1:9/v1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "The server of openai/m at ADDRESS redirects elsewhere, status 307 (redirected to http://127.0.0.1:9/v1). "
        "Correct its address.",
        # It follows.
        f"{UNREACHABLE} (connection refused). {START_IT}",
    ),
    "bytes that are not HTTP": Fault(b"SSH-2.0-OpenSSH_9.2\r\n", NOT_HTTP),
    "many bytes that are not HTTP": Fault(b"x" * 300_000, NOT_HTTP),
    "nothing": Fault(b"", f"{UNREACHABLE} (connection lost). {START_IT}"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_faulty_stream_is_told_in_plain_words(make_client: MakeClient, test_key: str, fault: Fault) -> None:
    async with serving(headed(fault.answer)) as server:
        if make_client.way == "litellm" and isinstance(fault.by_litellm, tuple):
            assert tuple(await events_of(make_client, server.address, test_key)) == fault.by_litellm
            return
        error = await error_of(make_client, server.address, test_key)
    sentence = fault.by_litellm if make_client.way == "litellm" and fault.by_litellm else fault.sentence
    assert str(error) == str(sentence).replace("ADDRESS", server.address)
