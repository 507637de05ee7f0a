"""A reply comes through as it was sent, its calls of tools too, and is hung up when nobody listens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from chorus_cli.core.errors import ModelError, ToolsRefusedError
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.declaration import Parameter, Tool
from chorus_cli.models.rules.events import ModelClient, ModelEvent, ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest, Timeouts
from tests.loopback_providers import call_chunk, calling, piece, split_call
from tests.mock_provider import MockProvider
from tests.models.providers.asked_models import (
    BROKE_OFF,
    BY_LITELLM,
    HELLO,
    KEPT,
    PATIENCE_SECONDS,
    STOP,
    MakeClient,
    error_of,
    events_of,
    text_of,
)
from tests.models.providers.fault_server import DONE, STREAM_HEAD, chunk, failure, serving

pytestmark = [*BY_LITELLM, pytest.mark.usefixtures("fake_key")]


async def heard(client: ModelClient) -> tuple[list[ModelEvent], ModelError]:
    """Return what arrived before the error, and the error."""
    arrived: list[ModelEvent] = []
    try:
        async for piece in client.stream(ModelRequest("openai/m", HELLO)):
            arrived.append(piece)  # noqa: PERF401 - a comprehension would lose them with the error
    except ModelError as error:
        return arrived, error
    raise AssertionError(arrived)


async def test_a_reply_comes_in_pieces(make_client: MakeClient, mock_provider: MockProvider, fake_key: str) -> None:
    mock_provider.behave(type="reply", text="The rain in Spain stays mainly in the plain.")
    events = await events_of(make_client, f"{mock_provider.address}/v1", fake_key)
    assert text_of(events) == "The rain in Spain stays mainly in the plain."
    assert len(events) > 2
    end = events[-1]
    assert isinstance(end, ReplyEnd)
    assert end.finish_reason == "stop"
    assert set(end.usage) == {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert all(figure > 0 for figure in end.usage.values())


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"kind": "disconnect"}, f"{BROKE_OFF} (connection lost). {KEPT}"),
        ({"kind": "malformed"}, f"{BROKE_OFF} (not valid JSON). {KEPT}"),
        ({"kind": "stall", "stall_seconds": 3}, "openai/m has sent nothing for 0.4 s. What has arrived is kept."),
    ],
)
async def test_a_reply_that_breaks_off_keeps_what_has_arrived(
    make_client: MakeClient, mock_provider: MockProvider, fake_key: str, fault: Mapping[str, object], sentence: str
) -> None:
    mock_provider.behave(type="stream_fault", after_chunks=3, **fault)
    client = make_client({"OPENAI_BASE_URL": f"{mock_provider.address}/v1"}, Timeouts(gap_seconds=PATIENCE_SECONDS))
    arrived, error = await heard(client)
    assert text_of(arrived)
    assert str(error).startswith(sentence)
    assert not error.retryable
    assert fake_key not in str(error)


async def test_an_early_end_has_no_reason(make_client: MakeClient, mock_provider: MockProvider, fake_key: str) -> None:
    mock_provider.behave(type="stream_fault", kind="truncate", after_chunks=3)
    events = await events_of(make_client, f"{mock_provider.address}/v1", fake_key)
    assert text_of(events)
    assert events[-1] == ReplyEnd(None, {})


@pytest.mark.parametrize("behaviour", ["slow_first_token", "delay"])
async def test_the_first_token_is_not_awaited_for_ever(
    make_client: MakeClient, mock_provider: MockProvider, fake_key: str, behaviour: str
) -> None:
    mock_provider.behave(type=behaviour, seconds=3)
    began = time.monotonic()
    error = await error_of(make_client, f"{mock_provider.address}/v1", fake_key, patience_seconds=PATIENCE_SECONDS)
    assert str(error) == "openai/m has sent nothing for 0.4 s. Try again, or choose another model with /model."
    assert PATIENCE_SECONDS <= time.monotonic() - began < 2


async def test_a_short_gap_is_no_fault(make_client: MakeClient, mock_provider: MockProvider, fake_key: str) -> None:
    mock_provider.behave(type="stream_fault", kind="stall", after_chunks=2, stall_seconds=0.1)
    events = await events_of(make_client, f"{mock_provider.address}/v1", fake_key, patience_seconds=PATIENCE_SECONDS)
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].finish_reason == "stop"


async def test_time_stopped_is_no_silence(make_client: MakeClient, mock_provider: MockProvider, fake_key: str) -> None:
    mock_provider.behave(type="stream_fault", kind="stall", after_chunks=2, stall_seconds=0.2)
    began = time.monotonic()
    asyncio.get_running_loop().call_later(0.1, time.sleep, 2 * PATIENCE_SECONDS)
    events = await events_of(make_client, f"{mock_provider.address}/v1", fake_key, patience_seconds=PATIENCE_SECONDS)
    assert time.monotonic() - began > 2 * PATIENCE_SECONDS
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].finish_reason == "stop"


REPLIES = {
    "nothing at all": ((), [ReplyEnd(None)]),
    "an empty reply": ((STOP,), [ReplyEnd("stop")]),
    "cut without a finish reason": ((chunk("cut"),), [TextDelta("cut"), ReplyEnd(None)]),
    "cut by the token limit": ((chunk("half"), chunk(finish_reason="length")), [TextDelta("half"), ReplyEnd("length")]),
    "thinking aloud": (
        (chunk(reasoning="hm"), chunk("ah", reasoning="so"), STOP),
        [ReasoningDelta("hm"), ReasoningDelta("so"), TextDelta("ah"), ReplyEnd("stop")],
    ),
    "halves of a pair in two chunks": (
        (chunk("a\ud83d"), chunk("\ude00b"), STOP),
        [TextDelta("a"), TextDelta("\N{GRINNING FACE}b"), ReplyEnd("stop")],
    ),
    "halves without the other half": (
        (chunk("\ude00a\ud83d"), chunk("b\ud83d"), STOP),
        [TextDelta("\ufffda"), TextDelta("\ufffdb"), TextDelta("\ufffd"), ReplyEnd("stop")],
    ),
}


@pytest.mark.parametrize(("pieces", "events"), REPLIES.values(), ids=REPLIES)
async def test_what_comes_is_passed_on_and_nothing_is_invented(
    make_client: MakeClient, fake_key: str, pieces: tuple[bytes, ...], events: list[ModelEvent]
) -> None:
    async with serving(STREAM_HEAD, *pieces) as server:
        assert await events_of(make_client, server.address, fake_key) == events


@pytest.mark.parametrize("pieces", [(), (STREAM_HEAD, chunk("Once"))], ids=["before", "within the reply"])
async def test_cancelling_hangs_up_at_once(make_client: MakeClient, fake_key: str, pieces: tuple[bytes, ...]) -> None:
    async with serving(*pieces, hangs=True) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": fake_key})

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


async def test_closing_the_reply_hangs_up(make_client: MakeClient, fake_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("Once"), hangs=True) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": fake_key})
        reply = client.stream(ModelRequest("openai/m", HELLO))
        async with aclosing(reply):
            assert await anext(reply) == TextDelta("Once")
        async with asyncio.timeout(1):
            await server.hung_up.wait()


async def test_many_replies_may_be_awaited_at_once(make_client: MakeClient, fake_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        replies = await asyncio.gather(*(events_of(make_client, server.address, fake_key) for _ in range(10)))
    assert [text_of(events) for events in replies] == ["hi"] * 10


async def test_chunks_that_arrived_together_let_other_tasks_go_on(make_client: MakeClient, fake_key: str) -> None:
    async def go_on() -> None:
        while True:
            went_on.append(None)
            await asyncio.sleep(0)

    went_on: list[None] = []
    other = asyncio.create_task(go_on())
    async with serving(STREAM_HEAD, *(chunk(f" {number}") for number in range(3000)), STOP) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": fake_key})
        before = [len(went_on) async for event in client.stream(ModelRequest("openai/m", HELLO)) if event]
    other.cancel()
    assert len(set(before)) > 10


ECHO = Tool("echo", "Say a text again.", (Parameter("text", "Any text."),))
OFFERING = ModelRequest("openai/m", HELLO, tools=(ECHO,))


async def end_of(make_client: MakeClient, *chunks: bytes, reason: str = "tool_calls") -> ReplyEnd:
    async with serving(STREAM_HEAD, *chunks, chunk(finish_reason=reason), DONE) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "sk-test"})
        *_, end = [event async for event in client.stream(OFFERING)]
    assert isinstance(end, ReplyEnd)
    return end


CALLS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str, str]]]] = {
    "split over many chunks": (
        [[one] for one in split_call("echo", {"text": "gold"})],
        [("c1", "echo", '{"text": "gold"}')],
    ),
    "two calls": (
        [[one] for one in (*split_call("echo", "{}", "a"), *split_call("echo", "[]", "b", 1))],
        [("a", "echo", "{}"), ("b", "echo", "[]")],
    ),
    "two calls in turns": (
        [
            [piece('{"t', id_="a", name="f"), piece('{"u', index=1, id_="b", name="g")],
            [piece('":1}'), piece("}", index=1)],
        ],
        [("a", "f", '{"t":1}'), ("b", "g", '{"u}')],
    ),
    "whole calls, all numbered 0": (
        [[piece("{}", id_="a", name="f"), piece("{}", id_="b", name="f")]],
        [("a", "f", "{}"), ("b", "f", "{}")],
    ),
    "whole calls without ids": ([[piece("{}", name="f")]] * 2, [("", "f", "{}"), ("", "f", "{}")]),
    "whole calls without numbers": (
        [[piece("{}", index=None, id_="a", name="f"), piece("{}", index=None, id_="b", name="g")]],
        [("a", "f", "{}"), ("b", "g", "{}")],
    ),
    "id and name repeated": (
        [[piece('{"a"', id_="x", name="f")], [piece(":1}", id_="x", name="f")]],
        [("x", "f", '{"a":1}')],
    ),
    "not whole": ([[piece('{"a":1', id_="x", name="f")]], [("x", "f", '{"a":1')]),
}


@pytest.mark.parametrize(("chunks", "calls"), CALLS.values(), ids=CALLS)
async def test_calls_are_assembled_from_the_chunks(
    make_client: MakeClient, chunks: list[list[dict[str, Any]]], calls: list[tuple[str, str, str]]
) -> None:
    end = await end_of(make_client, *(call_chunk(*pieces) for pieces in chunks))
    assert list(end.calls) == calls
    assert end.finish_reason == "tool_calls"


async def test_words_come_before_the_calls(make_client: MakeClient) -> None:
    end = await end_of(make_client, chunk("Let me see."), call_chunk(piece("{}", id_="a", name="f")), reason="stop")
    assert end.calls == (ToolCall("a", "f", "{}"),)
    assert end.finish_reason


@pytest.mark.parametrize("choice", [None, "none"])
async def test_tools_are_offered_in_openais_shape(make_client: MakeClient, choice: str | None) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), chunk(finish_reason="stop"), DONE) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "sk-test"})
        _ = [event async for event in client.stream(replace(OFFERING, may_call=choice is None))]
    (asked,) = server.asked
    assert asked.body["tools"] == [ECHO.declaration]
    assert asked.body.get("tool_choice") == choice
    assert not any(name.startswith("_") for name in asked.body)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, "Unsupported parameter: 'tools' is not supported with this model."),
        (400, "`tool calling` is not supported with this model"),
        (400, "Function calling is not enabled for models/gemma-3-27b-it"),
        (400, "deepseek-reasoner does not support Function Calling"),
        (400, "This model doesn't support tool use in streaming mode."),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (404, "No endpoints found that support tool use. To learn more, see the documentation."),
        (400, "body.tools: Extra inputs are not permitted"),
        (500, "tools param requires --jinja flag"),
    ],
)
async def test_a_provider_that_refuses_tools_is_understood(make_client: MakeClient, status: int, message: str) -> None:
    async with serving(failure(status, {"error": {"message": message, "type": "invalid_request_error"}})) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "sk-test"})
        with pytest.raises(ToolsRefusedError):
            _ = [event async for event in client.stream(OFFERING)]


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'tool_choice' is not supported with this model.",
        "body.tool_choice: Extra inputs are not permitted",
        "This server does not support tool choice.",
    ],
)
async def test_a_server_without_tool_choice_is_asked_without_it_alone(make_client: MakeClient, message: str) -> None:
    with calling() as provider:
        provider.refuse(400, message)
        client = make_client({"OPENAI_BASE_URL": provider.address, "OPENAI_API_KEY": "sk-test"})
        *_, end = [event async for event in client.stream(replace(OFFERING, may_call=False))]
    assert isinstance(end, ReplyEnd)
    assert [body.get("tool_choice") for body in provider.asked] == ["none", None]
    assert provider.asked[0]["tools"] == provider.asked[1]["tools"]
