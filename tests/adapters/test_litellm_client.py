"""Every fault of a provider becomes one sentence, and a reply comes through as it was sent."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import traceback
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from chorus_cli.adapters import litellm_library
from chorus_cli.adapters.litellm_client import LiteLLMClient
from chorus_cli.adapters.model_map import ModelMap
from chorus_cli.core.errors import ModelError
from chorus_cli.core.events import ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.core.exchange import ModelRequest, PromptMessage
from tests.adapters.fault_server import (
    DONE,
    HTML_ANSWER,
    STREAM_HEAD,
    Asked,
    chunk,
    chunked,
    event,
    failure,
    serving,
    usage_chunk,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from chorus_cli.core.events import ModelEvent
    from tests.mock_provider import MockProvider

MODEL_MAP = ModelMap()
HELLO = (PromptMessage("user", "hello"),)
STOP = chunk(finish_reason="stop") + DONE
PATIENCE_SECONDS = 0.4
BROKE_OFF = "The reply of openai/m broke off; what has arrived is kept"
NO_CREDIT = "The account behind openai/m has nothing left to spend; check its plan, or choose another /model"
TOO_LONG = (
    "The request is longer than openai/m takes; begin anew with /new, make the window smaller with /context, "
    "or set context_token_limit to what the model holds"
)
START_IT = "check that its server runs and that the network is up"

# litellm ignores these too, once, when it is imported; pytest forgets that at the next test.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Accessing the .* attribute on the instance is deprecated"),
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier"),
]


@pytest.fixture(scope="module", autouse=True)
def _litellm_is_loaded() -> None:
    litellm_library.warm()


@pytest.fixture(autouse=True)
async def _no_connection_outlives_the_event_loop_of_its_test() -> AsyncIterator[None]:
    yield
    # litellm keeps its clients, and one that is thrown away later complains of its loop that is gone.
    await litellm_library.load().close_litellm_async_clients()


async def events_of(
    address: str, key: str, *, model: str = "openai/m", messages: tuple[PromptMessage, ...] = HELLO
) -> list[ModelEvent]:
    """Return all events; the environment names ``address`` for the providers that these tests use."""
    bare = address.removesuffix("/v1")
    environment = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": key, "OLLAMA_API_BASE": bare}
    client = LiteLLMClient(environment, MODEL_MAP, first_token_seconds=PATIENCE_SECONDS, gap_seconds=PATIENCE_SECONDS)
    return [event async for event in client.stream(ModelRequest(model, messages))]


async def error_of(address: str, key: str, *, model: str = "openai/m") -> ModelError:
    """Return the error, having checked what every error keeps to."""
    with pytest.raises(ModelError) as caught:
        await events_of(address, key, model=model)
    sentence = str(caught.value)
    assert key not in "".join(traceback.format_exception(caught.value))
    assert len(sentence) <= 300
    assert "\n" not in sentence
    assert "litellm." not in sentence
    return caught.value


async def heard(client: LiteLLMClient) -> tuple[list[ModelEvent], ModelError]:
    """Return what arrived before the error, and the error."""
    arrived: list[ModelEvent] = []
    try:
        async for piece in client.stream(ModelRequest("openai/m", HELLO)):
            arrived.append(piece)  # noqa: PERF401 - a comprehension would lose them with the error
    except ModelError as error:
        return arrived, error
    raise AssertionError(arrived)


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_a_reply_comes_in_pieces_with_its_end_and_its_usage(mock_provider: MockProvider, test_key: str) -> None:
    mock_provider.behave(type="reply", text="The rain in Spain stays mainly in the plain.")
    events = await events_of(f"{mock_provider.address}/v1", test_key)
    assert text_of(events) == "The rain in Spain stays mainly in the plain."
    assert len(events) > 2
    end = events[-1]
    assert isinstance(end, ReplyEnd)
    assert end.finish_reason == "stop"
    assert set(end.usage) == {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert all(figure > 0 for figure in end.usage.values())


async def test_anthropic_is_asked_in_its_own_way(
    mock_provider: MockProvider, test_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_BASE", f"{mock_provider.address}/anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    mock_provider.behave(type="reply", text="Good day to you.")
    events = await events_of("http://127.0.0.1:9/v1", test_key, model="anthropic/claude-sonnet-4-5")
    assert text_of(events) == "Good day to you."
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].finish_reason == "stop"
    assert events[-1].usage["completion_tokens"] > 0


@pytest.mark.parametrize(
    ("status", "sentence", "retryable"),
    [
        (400, "The provider of openai/m refused the request; check the persona's settings", False),
        (401, "The provider of openai/m does not accept the key; check OPENAI_API_KEY (", False),
        (403, "The provider of openai/m forbids this; check OPENAI_API_KEY", False),
        (404, "There is no model openai/m at http://127.0.0.1:", False),
        (408, "The provider of openai/m did not finish in time (status 408); send it again", True),
        (
            413,
            "The request is longer than openai/m takes; begin anew with /new, make the window smaller with /context",
            False,
        ),
        (422, "The provider of openai/m refused the request", False),
        (429, "The provider of openai/m limits how much may be asked; it asks to wait 7 s", True),
        (500, "The provider of openai/m fails or is overloaded (status 500); send it again later", True),
        (503, "The provider of openai/m fails or is overloaded (status 503); send it again later", True),
        (529, "The provider of openai/m fails or is overloaded (status 529); send it again later", True),
    ],
)
async def test_a_refusal_is_a_sentence_that_says_what_to_do_and_is_not_repeated_unseen(
    mock_provider: MockProvider, test_key: str, status: int, sentence: str, *, retryable: bool
) -> None:
    mock_provider.behave(type="fail", status=status, retry_after=7, times=None)
    error = await error_of(f"{mock_provider.address}/v1", test_key)
    assert str(error).startswith(sentence)
    assert (error.status_code, error.retryable) == (status, retryable)
    assert error.retry_after_seconds == (7 if retryable else None)
    # litellm itself asks once more after a 422, without what the provider named.
    assert mock_provider.request_count() == (2 if status == 422 else 1)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"kind": "disconnect"}, f"{BROKE_OFF} (connection lost)"),
        ({"kind": "malformed"}, f"{BROKE_OFF} (what came is not valid JSON)"),
        ({"kind": "stall", "stall_seconds": 3}, "openai/m has sent nothing for 0.4 s; what has arrived is kept;"),
    ],
)
async def test_a_reply_that_breaks_off_keeps_what_has_arrived(
    mock_provider: MockProvider, test_key: str, fault: Mapping[str, object], sentence: str
) -> None:
    mock_provider.behave(type="stream_fault", after_chunks=3, **fault)
    client = LiteLLMClient({"OPENAI_BASE_URL": f"{mock_provider.address}/v1"}, MODEL_MAP, gap_seconds=PATIENCE_SECONDS)
    arrived, error = await heard(client)
    assert text_of(arrived)
    assert str(error).startswith(sentence)
    assert not error.retryable
    assert test_key not in str(error)


async def test_a_stream_that_ends_early_without_a_word_has_no_finish_reason(
    mock_provider: MockProvider, test_key: str
) -> None:
    mock_provider.behave(type="stream_fault", kind="truncate", after_chunks=3)
    events = await events_of(f"{mock_provider.address}/v1", test_key)
    assert text_of(events)
    assert events[-1] == ReplyEnd(None, {})


@pytest.mark.parametrize("behaviour", ["slow_first_token", "delay"])
async def test_the_first_token_is_not_awaited_for_ever(
    mock_provider: MockProvider, test_key: str, behaviour: str
) -> None:
    mock_provider.behave(type=behaviour, seconds=3)
    began = time.monotonic()
    error = await error_of(f"{mock_provider.address}/v1", test_key)
    assert str(error) == "openai/m has sent nothing for 0.4 s; send it again, or choose another model with /model."
    assert PATIENCE_SECONDS <= time.monotonic() - began < 2


async def test_a_gap_within_the_limit_is_no_fault(mock_provider: MockProvider, test_key: str) -> None:
    mock_provider.behave(type="stream_fault", kind="stall", after_chunks=2, stall_seconds=0.1)
    events = await events_of(f"{mock_provider.address}/v1", test_key)
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].finish_reason == "stop"


async def test_the_time_in_which_the_process_was_stopped_is_no_silence(
    mock_provider: MockProvider, test_key: str
) -> None:
    mock_provider.behave(type="stream_fault", kind="stall", after_chunks=2, stall_seconds=0.2)
    began = time.monotonic()
    asyncio.get_running_loop().call_later(0.1, time.sleep, 2 * PATIENCE_SECONDS)
    events = await events_of(f"{mock_provider.address}/v1", test_key)
    assert time.monotonic() - began > 2 * PATIENCE_SECONDS
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].finish_reason == "stop"


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        ((HTML_ANSWER,), [ReplyEnd(None)]),
        ((STREAM_HEAD,), [ReplyEnd(None)]),
        ((STREAM_HEAD, STOP), [ReplyEnd("stop")]),
        ((STREAM_HEAD, chunk("cut")), [TextDelta("cut"), ReplyEnd(None)]),
        ((STREAM_HEAD, chunk("half"), chunk(finish_reason="length")), [TextDelta("half"), ReplyEnd("length")]),
        (
            (STREAM_HEAD, chunk(reasoning="hm"), chunk("ah", reasoning="so"), STOP),
            [ReasoningDelta("hm"), ReasoningDelta("so"), TextDelta("ah"), ReplyEnd("stop")],
        ),
        (
            (STREAM_HEAD, chunk("a\ud83d"), chunk("\ude00b"), STOP),
            [TextDelta("a"), TextDelta("\N{GRINNING FACE}b"), ReplyEnd("stop")],
        ),
        (
            (STREAM_HEAD, chunk("\ude00a\ud83d"), chunk("b\ud83d"), STOP),
            [TextDelta("\ufffda"), TextDelta("\ufffdb"), TextDelta("\ufffd"), ReplyEnd("stop")],
        ),
        (
            (STREAM_HEAD, chunk("hi"), chunk(finish_reason="stop"), usage_chunk(5, 2), DONE),
            [TextDelta("hi"), ReplyEnd("stop", {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7})],
        ),
    ],
    ids=[
        "a page instead of a stream",
        "nothing at all",
        "an empty reply",
        "cut without a finish reason",
        "cut by the token limit",
        "thinking aloud",
        "halves of a pair in two chunks",
        "halves without the other half",
        "usage",
    ],
)
async def test_what_comes_is_passed_on_and_nothing_is_invented(
    test_key: str, pieces: tuple[bytes, ...], events: list[ModelEvent]
) -> None:
    async with serving(*pieces) as server:
        assert await events_of(server.address, test_key) == events


@pytest.mark.parametrize(
    ("answer", "sentence", "retryable"),
    [
        (
            failure(429, {"error": {"message": "Pay first.", "code": "insufficient_quota"}}),
            f"{NO_CREDIT} (Pay first)",
            False,
        ),
        (
            failure(429, {"error": {"message": "Slow down"}}, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"),
            "The provider of openai/m limits how much may be asked; send it again later (Slow down)",
            True,
        ),
        (
            failure(400, {"error": {"message": "maximum context length is 8192 tokens"}}),
            f"{TOO_LONG} (maximum context length is 8192 tokens)",
            False,
        ),
        (
            failure(502, b"<html><h1>Bad Gateway</h1></html>"),
            "The provider of openai/m fails or is overloaded (status 502); send it again later",
            True,
        ),
        (
            STREAM_HEAD + b"data: {not JSON\n\n",
            "The provider of openai/m gave no proper answer; send it again later (what came is not valid JSON)",
            True,
        ),
        (
            STREAM_HEAD + event({"error": {"message": "overloaded", "code": 529}}),
            "The provider of openai/m gave no proper answer; send it again later (overloaded)",
            True,
        ),
        (
            STREAM_HEAD + chunk("Once") + b"data: \xff\xfe\n\n",
            f"{BROKE_OFF} (what came is not valid UTF-8)",
            False,
        ),
        (
            chunked(chunk("Once")),
            f"{BROKE_OFF} (connection lost)",
            False,
        ),
    ],
)
async def test_a_fault_is_told_in_plain_words(test_key: str, answer: bytes, sentence: str, *, retryable: bool) -> None:
    async with serving(answer) as server:
        error = await error_of(server.address, test_key)
    assert str(error) == f"{sentence}."
    assert error.retryable is retryable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 529])
async def test_a_key_that_the_provider_echoes_is_not_shown(test_key: str, status: int) -> None:
    message = f"Wrong key {test_key}!\nSecond line. " + "x" * 1000
    async with serving(failure(status, {"error": {"message": message}})) as server:
        error = await error_of(server.address, test_key)
    assert "(Wrong key [redacted]! Second line. xx" in str(error)
    assert str(error).endswith("x…).")


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("openai/m", f"openai/m at ADDRESS/v1 cannot be reached; {START_IT} (connection refused)"),
        ("ollama/o", "ollama/o at ADDRESS cannot be reached; start it with: ollama serve (connection refused)"),
    ],
)
async def test_a_server_that_is_not_there_is_named_with_what_starts_it(
    test_key: str, unused_address: str, model: str, sentence: str
) -> None:
    error = await error_of(f"{unused_address}/v1", test_key, model=model)
    assert str(error) == f"{sentence}.".replace("ADDRESS", unused_address)
    assert error.retryable
    assert error.status_code is None


@pytest.fixture
def unused_address(unused_tcp_port: int) -> str:
    return f"http://127.0.0.1:{unused_tcp_port}"


async def test_an_address_is_shown_without_password_and_query(test_key: str, unused_address: str) -> None:
    error = await error_of(f"{unused_address}/v1?key=hidden-words", test_key)
    assert f" at {unused_address}/v1 cannot be reached" in str(error)
    assert "hidden" not in str(error)


async def test_a_model_that_ollama_does_not_have_is_to_be_pulled(test_key: str) -> None:
    async with serving(failure(404, {"error": "model 'llama3.2' not found"})) as server:
        error = await error_of(server.address, test_key, model="ollama_chat/llama3.2")
    assert "fetch it with: ollama pull llama3.2 (model 'llama3.2' not found)" in str(error)


@pytest.mark.parametrize("model", ["nosuch/x", "nosuch", "{model}/x"])
async def test_a_name_that_litellm_does_not_know_is_answered_with_examples(test_key: str, model: str) -> None:
    error = await error_of("http://127.0.0.1:9/v1", test_key, model=model)
    assert str(error) == (
        f"{model} is not a model name that litellm knows; "
        "names look like openai/gpt-4o, anthropic/claude-sonnet-4-5, ollama/llama3.2."
    )
    assert not error.retryable


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/gpt-4o", "OPENAI_API_KEY"),
        ("gpt-4o", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY"),
        ("azure/gpt-4o", "AZURE_API_KEY"),
    ],
)
async def test_a_missing_key_is_named(
    test_key: str, monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    assert test_key
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ModelError) as caught:
        _ = [event async for event in LiteLLMClient({}, MODEL_MAP).stream(ModelRequest(model, HELLO))]
    assert str(caught.value) == f"There is no key for {model}; set {variable}, or choose another model with /model."


async def test_a_server_on_this_machine_needs_no_key(test_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        client = LiteLLMClient({"OPENAI_API_BASE": server.address}, MODEL_MAP)
        events = [event async for event in client.stream(ModelRequest("openai/m", HELLO))]
    assert text_of(events) == "hi"
    assert test_key not in str(server.asked)


@pytest.mark.parametrize(
    ("model", "address"),
    [("lm_studio/qwen", "http://localhost:1234/v1"), ("hosted_vllm/qwen", "http://localhost:8000/v1")],
)
def test_what_is_meant_for_a_server_on_this_machine_does_not_go_to_openai(model: str, address: str) -> None:
    environment = {"OPENAI_BASE_URL": "https://llm.example/v1", "OPENAI_API_KEY": "sk-test"}
    # Not sent, for something may listen at these well-known ports.
    assert LiteLLMClient(environment, MODEL_MAP)._server_arguments(model) == {"api_base": address}


async def test_an_address_that_is_given_is_asked_for_lm_studio(test_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        client = LiteLLMClient({"LM_STUDIO_API_BASE": server.address}, MODEL_MAP)
        events = [event async for event in client.stream(ModelRequest("lm_studio/qwen", HELLO))]
    assert text_of(events) == "hi"
    assert test_key not in str(server.asked)


async def test_messages_and_settings_are_sent_in_the_shape_of_the_openai_api(test_key: str) -> None:
    calls = '[{"id": "c1", "type": "function", "function": {"name": "recall_memory", "arguments": "{}"}}]'
    messages = (
        PromptMessage("system", "Be kind."),
        PromptMessage("user", "half a pair: \ud83d"),
        PromptMessage("assistant", "", tool_calls=calls),
        PromptMessage("tool", "nothing found", tool_call_id="c1"),
    )
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        client = LiteLLMClient({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": test_key}, MODEL_MAP)
        request = ModelRequest("openai/m", messages, temperature=0.5, max_output_tokens=99)
        _ = [event async for event in client.stream(request)]
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {test_key}"
    assert asked.body["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "half a pair: \ufffd"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "recall_memory", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "nothing found", "tool_call_id": "c1"},
    ]
    assert (asked.body["temperature"], asked.body["max_tokens"]) == (0.5, 99)
    assert asked.body["stream_options"] == {"include_usage": True}


async def test_settings_that_are_not_set_are_not_sent(test_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        await events_of(server.address, test_key)
    assert set(server.asked[0].body) == {"model", "messages", "stream", "stream_options"}


@pytest.mark.parametrize("model", ["ollama/llama3.2", "ollama_chat/llama3.2"])
@pytest.mark.parametrize(("tokens", "options"), [(16_384, {"num_ctx": 16_384}), (None, {})])
async def test_ollama_is_told_how_much_to_hold(
    test_key: str, model: str, tokens: int | None, options: Mapping[str, int]
) -> None:
    assert test_key
    async with serving(STREAM_HEAD) as server:
        client = LiteLLMClient({"OLLAMA_API_BASE": server.address}, MODEL_MAP)
        _ = [event async for event in client.stream(ModelRequest(model, HELLO, context_tokens=tokens))]
    assert [asked.body["options"] for asked in server.asked] == [options]


async def test_nobody_else_is_told_how_much_to_hold(test_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        client = LiteLLMClient({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": test_key}, MODEL_MAP)
        _ = [event async for event in client.stream(ModelRequest("openai/m", HELLO, context_tokens=16_384))]
    assert set(server.asked[0].body) == {"model", "messages", "stream", "stream_options"}


@dataclass(frozen=True, slots=True)
class Route:
    """A way to a Claude: the variable that names its address, and the secrets that litellm wants to see."""

    model: str
    address: str
    secrets: tuple[str, ...]


ANTHROPIC = Route("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_BASE", ("ANTHROPIC_API_KEY",))
BARE = Route("claude-sonnet-4-5", "ANTHROPIC_API_BASE", ("ANTHROPIC_API_KEY",))
UNMAPPED = Route("anthropic/claude-of-tomorrow", "ANTHROPIC_API_BASE", ("ANTHROPIC_API_KEY",))
AZURE = Route("azure_ai/claude-sonnet-4-5", "AZURE_AI_API_BASE", ("AZURE_AI_API_KEY",))
BEDROCK = Route(
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "AWS_BEDROCK_RUNTIME_ENDPOINT",
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION_NAME"),
)
CONVERSATION = (
    PromptMessage("system", "Be kind."),
    PromptMessage("user", "one"),
    PromptMessage("assistant", "two"),
    PromptMessage("user", "three"),
    PromptMessage("assistant", "four"),
    PromptMessage("user", "five"),
)


CLAUDES_USAGE = {
    "input_tokens": 7,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 100,
    "output_tokens": 1,
}
CLAUDES_REPLY = (
    {"type": "message_start", "message": {"id": "m", "model": "c", "content": [], "usage": CLAUDES_USAGE}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
)


async def asked_of_claude(route: Route, key: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Asked, list[ModelEvent]]:
    """Ask by ``route``, and return the request as it came and what became of the reply."""
    for name in route.secrets:
        monkeypatch.setenv(name, key)
    async with serving(STREAM_HEAD, *map(event, CLAUDES_REPLY)) as server:
        monkeypatch.setenv(route.address, server.address.removesuffix("/v1"))
        client = LiteLLMClient({}, MODEL_MAP)
        events: list[ModelEvent] = []
        # Bedrock would frame its replies in another way.
        with suppress(ModelError) if route is BEDROCK else nullcontext():
            events = [each async for each in client.stream(ModelRequest(route.model, CONVERSATION))]
    (asked,) = server.asked
    return asked, events


def texts_and_markers(body: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Return each text of a request to Claude in its order, and whether a marker stands at it or right behind it."""
    blocks = [*body["system"], *(block for message in body["messages"] for block in message["content"])]
    found: list[tuple[str, bool]] = []
    for block in blocks:
        if block == {"cachePoint": {"type": "default"}}:
            found[-1] = (found[-1][0], True)
        else:
            assert set(block) - {"type"} in ({"text"}, {"text", "cache_control"})
            found.append((block["text"], block.get("cache_control") == {"type": "ephemeral"}))
    return found


@pytest.mark.parametrize(
    ("route", "path", "marked"),
    [
        (ANTHROPIC, "/v1/messages", {"Be kind.", "three", "five"}),
        (BARE, "/v1/messages", {"Be kind.", "three", "five"}),
        (AZURE, "/anthropic/v1/messages", {"Be kind.", "three", "five"}),
        (BEDROCK, "/converse-stream", {"Be kind.", "three", "five"}),
        (UNMAPPED, "/v1/messages", set()),
    ],
    ids=lambda value: value.model if isinstance(value, Route) else "",
)
async def test_claude_is_told_what_to_keep_of_a_prompt(
    test_key: str, monkeypatch: pytest.MonkeyPatch, route: Route, path: str, marked: set[str]
) -> None:
    asked, _ = await asked_of_claude(route, test_key, monkeypatch)
    assert asked.path.endswith(path)
    assert texts_and_markers(asked.body) == [
        (text, text in marked) for text in ("Be kind.", "one", "two", "three", "four", "five")
    ]


async def test_nobody_else_is_told_what_to_keep_of_a_prompt(test_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        for model in ("openai/gpt-4o", "openai/claude-sonnet-4-5", "hosted_vllm/claude-sonnet-4-5"):
            environment = {"OPENAI_BASE_URL": server.address, "HOSTED_VLLM_API_BASE": server.address}
            client = LiteLLMClient({**environment, "OPENAI_API_KEY": test_key}, MODEL_MAP)
            _ = [event async for event in client.stream(ModelRequest(model, CONVERSATION))]
    plain = [{"role": each.role, "content": each.content} for each in CONVERSATION]
    assert [asked.body["messages"] for asked in server.asked] == [plain] * 3


async def test_what_claude_has_kept_counts_as_a_part_of_the_prompt(
    test_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, events = await asked_of_claude(ANTHROPIC, test_key, monkeypatch)
    assert events == [
        TextDelta("hi"),
        ReplyEnd("stop", {"prompt_tokens": 127, "completion_tokens": 3, "total_tokens": 130}),
    ]


@pytest.mark.parametrize("pieces", [(), (STREAM_HEAD, chunk("Once"))], ids=["before", "within the reply"])
async def test_cancelling_hangs_up_at_once(test_key: str, pieces: tuple[bytes, ...]) -> None:
    async with serving(*pieces, hangs=True) as server:
        client = LiteLLMClient({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": test_key}, MODEL_MAP)

        async def read() -> None:
            async for _ in client.stream(ModelRequest("openai/m", HELLO)):
                pass

        reading = asyncio.create_task(read())
        await asyncio.sleep(0.2)
        began = time.monotonic()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert time.monotonic() - began < 0.2
        async with asyncio.timeout(1):
            await server.hung_up.wait()


async def test_closing_the_reply_hangs_up(test_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("Once"), hangs=True) as server:
        client = LiteLLMClient({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": test_key}, MODEL_MAP)
        reply = client.stream(ModelRequest("openai/m", HELLO))
        async with aclosing(reply):
            assert await anext(reply) == TextDelta("Once")
        async with asyncio.timeout(1):
            await server.hung_up.wait()


async def test_many_replies_may_be_awaited_at_once(test_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        replies = await asyncio.gather(*(events_of(server.address, test_key) for _ in range(10)))
    assert [text_of(events) for events in replies] == ["hi"] * 10


def test_litellm_is_kept_offline_but_its_log_level_is_the_users() -> None:
    environment = {"LITELLM_LOG": "DEBUG", "LITELLM_LOCAL_MODEL_COST_MAP": "False", "HF_HUB_OFFLINE": "0"}
    litellm_library.prepare_environment(environment)
    assert environment == {
        "LITELLM_LOG": "DEBUG",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
        "HF_HUB_OFFLINE": "1",
    }


def test_nobody_who_leaves_waits_for_the_import() -> None:
    async def leave() -> None:
        loading = asyncio.create_task(litellm_library.load_beside())
        await asyncio.sleep(0)
        loading.cancel()
        await asyncio.wait({loading})
        assert loading.cancelled()

    with litellm_library._importing:
        asyncio.run(leave())
    assert asyncio.run(litellm_library.load_beside()) is litellm_library.load()


def test_two_threads_may_import_litellm_at_once_and_nothing_is_fetched_or_printed() -> None:
    program = (
        "import socket, sys, threading\n"
        "def refuse(*_): raise SystemExit('a connection was opened')\n"
        "socket.socket.connect = refuse\n"
        "from chorus_cli.adapters import litellm_client, litellm_library\n"
        "folder = litellm_library.installation_folder()\n"
        "assert 'litellm' not in sys.modules\n"
        "assert litellm_library.loaded() is None\n"
        "threads = [threading.Thread(target=litellm_library.warm) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "assert litellm_library.load().__file__ == str(folder / '__init__.py')\n"
        "assert litellm_library.load().suppress_debug_info\n"
        "assert litellm_library.loaded() is litellm_library.load()\n"
        "with litellm_library._importing: assert litellm_library.loaded() is None\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LITELLM_", "HF_"))}
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment
    )
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
