"""Faults of a provider become one sentence that says what to do; odd streams are read for what they mean."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.events import ModelEvent, ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest
from tests.mock_provider import MockProvider
from tests.models.providers.asked_models import (
    BROKE_OFF,
    BY_LITELLM,
    HELLO,
    KEPT,
    STOP,
    MakeClient,
    error_of,
    events_of,
    meaning,
)
from tests.models.providers.fault_server import (
    DONE,
    HTML_ANSWER,
    JSON_HEAD,
    STREAM_HEAD,
    byte_by_byte,
    chunk,
    chunked,
    compressed,
    encoded,
    event,
    failure,
    serving,
    usage_chunk,
)

NO_CREDIT = "The account for openai/m is out of credit"
CHECK_PLAN = "Check its plan, or choose another model with /model."
TOO_LONG = "The request is too long for openai/m"
SHORTEN = "Start over with /new, shrink the window with /context, or set context_token_limit to the model's limit."
START_IT = "Check that its server is running and the network is up."

pytestmark = BY_LITELLM


@pytest.mark.parametrize(
    ("status", "told", "retryable"),
    [
        (400, ("The provider of openai/m rejected the request", "Check the persona's settings, choose"), False),
        (401, ("The provider of openai/m rejected the key", "Check OPENAI_API_KEY."), False),
        (403, ("The provider of openai/m denied access", "Check OPENAI_API_KEY and its permissions."), False),
        (404, ("There is no model openai/m at http://127.0.0.1:", "Check its name and the address."), False),
        (408, ("The provider of openai/m is failing or overloaded, status 408", "Try again later."), True),
        (413, (TOO_LONG, SHORTEN), False),
        (422, ("The provider of openai/m rejected the request", "Check the persona's settings, choose"), False),
        (429, ("openai/m is rate limited", "Try again in 7 s."), True),
        (500, ("The provider of openai/m is failing or overloaded, status 500", "Try again later."), True),
        (503, ("The provider of openai/m is failing or overloaded, status 503", "Try again later."), True),
        (529, ("The provider of openai/m is failing or overloaded, status 529", "Try again later."), True),
    ],
)
async def test_a_refusal_is_a_sentence_that_says_what_to_do_and_is_not_repeated_unseen(
    make_client: MakeClient,
    mock_provider: MockProvider,
    fake_key: str,
    status: int,
    told: tuple[str, str],
    *,
    retryable: bool,
) -> None:
    mock_provider.behave(type="fail", status=status, retry_after=7, times=None)
    error = await error_of(make_client, f"{mock_provider.address}/v1", fake_key)
    problem, advice = told
    assert error.problem.startswith(problem)
    assert str(error).startswith(f"{error.problem} {advice}")
    assert error.retryable == retryable
    assert error.retry_after_seconds == (7 if retryable else None)
    # litellm itself asks once more after a 422, without the parameters that the provider rejects.
    asks_again = make_client.way == "litellm" and status == 422
    assert mock_provider.request_count() == (2 if asks_again else 1)


FAULTS = {
    f"{NO_CREDIT} (Pay). {CHECK_PLAN}": failure(429, {"error": {"message": "Pay", "code": "insufficient_quota"}}),
    "openai/m is rate limited (Slow down). Try again later.": failure(
        429, {"error": {"message": "Slow down"}}, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"
    ),
    f"{TOO_LONG} (maximum context length is 9). {SHORTEN}": failure(400, {"error": "maximum context length is 9"}),
    "The provider of openai/m is failing or overloaded, status 502. Try again later.": failure(502, b"<html>No</html>"),
    f"{BROKE_OFF} (connection lost). {KEPT}": chunked(chunk("Once")),
}


@pytest.mark.parametrize(("sentence", "answer"), FAULTS.items())
async def test_a_fault_is_told(make_client: MakeClient, fake_key: str, sentence: str, answer: bytes) -> None:
    async with serving(answer) as server:
        error = await error_of(make_client, server.address, fake_key)
    assert (str(error), error.retryable) == (sentence, sentence.endswith("Try again later."))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 529])
async def test_a_key_that_the_provider_echoes_is_not_shown(make_client: MakeClient, fake_key: str, status: int) -> None:
    message = f"Wrong key {fake_key}!\nSecond line. " + "x" * 1000
    async with serving(failure(status, {"error": {"message": message}})) as server:
        error = await error_of(make_client, server.address, fake_key)
    assert "(Wrong key [redacted]! Second line. xx" in str(error)
    assert error.problem.endswith("x…).")


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("openai/m", f"Cannot reach openai/m at ADDRESS/v1 (connection refused). {START_IT}"),
        ("ollama/o", "Cannot reach ollama/o at ADDRESS (connection refused). Start Ollama with: ollama serve."),
    ],
)
async def test_a_server_that_is_not_there_is_named_with_what_starts_it(
    make_client: MakeClient, fake_key: str, unused_address: str, model: str, sentence: str
) -> None:
    error = await error_of(make_client, f"{unused_address}/v1", fake_key, model=model)
    assert str(error) == sentence.replace("ADDRESS", unused_address)
    assert error.retryable


@pytest.fixture
def unused_address(unused_tcp_port: int) -> str:
    return f"http://127.0.0.1:{unused_tcp_port}"


async def test_no_address_shows_its_password(make_client: MakeClient, fake_key: str, unused_address: str) -> None:
    error = await error_of(make_client, f"{unused_address}/v1?key=hidden-words", fake_key)
    assert f"Cannot reach openai/m at {unused_address}/v1 (" in str(error)
    assert "hidden" not in str(error)


async def test_a_model_that_ollama_does_not_have_is_to_be_pulled(make_client: MakeClient, fake_key: str) -> None:
    async with serving(failure(404, {"error": "model 'llama3.2' not found"})) as server:
        error = await error_of(make_client, server.address, fake_key, model="ollama_chat/llama3.2")
    assert str(error).endswith("(model 'llama3.2' not found). Fetch it with: ollama pull llama3.2.")


@pytest.mark.parametrize("model", ["nosuch/x", "nosuch", "{model}/x"])
async def test_a_name_litellm_does_not_know_gets_examples(make_client: MakeClient, fake_key: str, model: str) -> None:
    error = await error_of(make_client, "http://127.0.0.1:9/v1", fake_key, model=model)
    assert str(error) == (
        f"Chorus does not know the model {model}. "
        "Model names look like openai/gpt-4o, anthropic/claude-sonnet-4-5, ollama/llama3.2."
    )
    assert not error.retryable


@pytest.mark.parametrize("model", ["openai/gpt-4o", "gpt-4o", "anthropic/claude-x", "gemini/gemini-x", "azure/gpt-4o"])
async def test_a_missing_key_is_named(
    make_client: MakeClient, fake_key: str, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    assert fake_key
    monkeypatch.delenv("OPENAI_API_KEY")
    variable = f"{model.partition('/')[0].upper()}_API_KEY" if "/" in model else "OPENAI_API_KEY"
    with pytest.raises(ModelError) as caught:
        _ = [event async for event in make_client({}).stream(ModelRequest(model, HELLO))]
    assert str(caught.value) == f"There is no key for {model}. Set {variable}, or choose another model with /model."


HI = chunk("hi")
SAID, END = TextDelta("hi"), ReplyEnd("stop")
THOUGHT = (ReasoningDelta("hm"), SAID, END)
LETTERS = "Grüße, \N{GRINNING FACE}"
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
COUNTED = (SAID, ReplyEnd("stop", USAGE))
OVERLOADED = {"error": {"message": "overloaded", "code": 529}}
FAILING = "The provider of openai/m is failing or overloaded, status 529 (overloaded). Try again later."
UNREACHABLE = "Cannot reach openai/m at ADDRESS"
LATER = "Try again later."
INVALID = "The provider of openai/m sent an invalid response"


def choice(delta: object, *, index: int = 0, finish_reason: str | None = None) -> dict[str, object]:
    return {"index": index, "delta": delta, "finish_reason": finish_reason}


def whole_chunk(*choices: object, **more: object) -> dict[str, object]:
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [*choices], **more}


def saying(delta: object) -> bytes:
    return event(whole_chunk(choice(delta)))


def headed(answer: bytes) -> bytes:
    """Return an answer with the head of a stream if it has none."""
    return answer if answer.startswith((b"HTTP", b"SSH")) or not answer else STREAM_HEAD + answer


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
async def test_an_odd_stream_is_read_for_what_it_means(make_client: MakeClient, fake_key: str, odd: Odd) -> None:
    async with serving(headed(odd.answer)) as server:
        # Patient, as the longest takes a while.
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": fake_key})
        events = [meaning(event) async for event in client.stream(ModelRequest("openai/m", HELLO))]
    assert tuple(events) == (odd.by_litellm if make_client.way == "litellm" and odd.by_litellm else odd.events)


@dataclass(frozen=True, slots=True)
class Fault:
    """A faulty answer, its sentence, and what becomes of it by litellm, if something else."""

    answer: bytes
    sentence: str
    by_litellm: str | tuple[ModelEvent, ...] = ""


TWICE = gzip.compress(gzip.compress(HI + STOP))
FAULTY = {
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
        "The provider of openai/m is failing or overloaded, status 503 (the answer is compressed more than once). "
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
    "bytes that are not HTTP": Fault(b"SSH-2.0-OpenSSH_9.2\r\n", f"{UNREACHABLE} (connection lost). {START_IT}"),
    "nothing": Fault(b"", f"{UNREACHABLE} (connection lost). {START_IT}"),
}


@pytest.mark.parametrize("fault", FAULTY.values(), ids=FAULTY)
async def test_a_faulty_stream_is_told_in_plain_words(make_client: MakeClient, fake_key: str, fault: Fault) -> None:
    async with serving(headed(fault.answer)) as server:
        if make_client.way == "litellm" and isinstance(fault.by_litellm, tuple):
            assert tuple(await events_of(make_client, server.address, fake_key)) == fault.by_litellm
            return
        error = await error_of(make_client, server.address, fake_key)
    sentence = fault.by_litellm if make_client.way == "litellm" and fault.by_litellm else fault.sentence
    assert str(error) == str(sentence).replace("ADDRESS", server.address)
