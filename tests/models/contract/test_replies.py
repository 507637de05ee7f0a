"""A reply comes through as it was sent, as far as it comes, and is hung up when nobody listens."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.rules.events import ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest
from tests.models.providers.asked_models import (
    BROKE_OFF,
    BY_LITELLM,
    HELLO,
    KEPT,
    PATIENCE_SECONDS,
    STOP,
    error_of,
    events_of,
    text_of,
)
from tests.models.providers.fault_server import STREAM_HEAD, chunk, serving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.models.rules.events import ModelClient, ModelEvent
    from tests.mock_provider import MockProvider
    from tests.models.providers.ways import MakeClient

pytestmark = BY_LITELLM


async def heard(client: ModelClient) -> tuple[list[ModelEvent], ModelError]:
    """Return what arrived before the error, and the error."""
    arrived: list[ModelEvent] = []
    try:
        async for piece in client.stream(ModelRequest("openai/m", HELLO)):
            arrived.append(piece)  # noqa: PERF401 - a comprehension would lose them with the error
    except ModelError as error:
        return arrived, error
    raise AssertionError(arrived)


async def test_a_reply_comes_in_pieces_with_its_end_and_its_usage(
    make_client: MakeClient, mock_provider: MockProvider, test_key: str
) -> None:
    mock_provider.behave(type="reply", text="The rain in Spain stays mainly in the plain.")
    events = await events_of(make_client, f"{mock_provider.address}/v1", test_key)
    assert text_of(events) == "The rain in Spain stays mainly in the plain."
    assert len(events) > 2
    end = events[-1]
    assert isinstance(end, ReplyEnd)
    assert end.finish_reason == "stop"
    assert set(end.usage) == {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert all(figure > 0 for figure in end.usage.values())


async def test_anthropic_is_asked_in_its_own_way(
    make_client: MakeClient, mock_provider: MockProvider, test_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_BASE", f"{mock_provider.address}/anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    mock_provider.behave(type="reply", text="Good day to you.")
    events = await events_of(make_client, "http://127.0.0.1:9/v1", test_key, model="anthropic/claude-sonnet-4-5")
    assert text_of(events) == "Good day to you."
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].finish_reason == "stop"
    assert events[-1].usage["completion_tokens"] > 0


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"kind": "disconnect"}, f"{BROKE_OFF} (connection lost). {KEPT}"),
        ({"kind": "malformed"}, f"{BROKE_OFF} (not valid JSON). {KEPT}"),
        ({"kind": "stall", "stall_seconds": 3}, "openai/m has sent nothing for 0.4 s. What has arrived is kept."),
    ],
)
async def test_a_reply_that_breaks_off_keeps_what_has_arrived(
    make_client: MakeClient, mock_provider: MockProvider, test_key: str, fault: Mapping[str, object], sentence: str
) -> None:
    mock_provider.behave(type="stream_fault", after_chunks=3, **fault)
    client = make_client({"OPENAI_BASE_URL": f"{mock_provider.address}/v1"}, gap_seconds=PATIENCE_SECONDS)
    arrived, error = await heard(client)
    assert text_of(arrived)
    assert str(error).startswith(sentence)
    assert not error.retryable
    assert test_key not in str(error)


async def test_a_stream_that_ends_early_without_a_word_has_no_finish_reason(
    make_client: MakeClient, mock_provider: MockProvider, test_key: str
) -> None:
    mock_provider.behave(type="stream_fault", kind="truncate", after_chunks=3)
    events = await events_of(make_client, f"{mock_provider.address}/v1", test_key)
    assert text_of(events)
    assert events[-1] == ReplyEnd(None, {})


@pytest.mark.parametrize("behaviour", ["slow_first_token", "delay"])
async def test_the_first_token_is_not_awaited_for_ever(
    make_client: MakeClient, mock_provider: MockProvider, test_key: str, behaviour: str
) -> None:
    mock_provider.behave(type=behaviour, seconds=3)
    began = time.monotonic()
    error = await error_of(make_client, f"{mock_provider.address}/v1", test_key, patience_seconds=PATIENCE_SECONDS)
    assert str(error) == "openai/m has sent nothing for 0.4 s. Try again, or choose another model with /model."
    assert PATIENCE_SECONDS <= time.monotonic() - began < 2


async def test_a_gap_within_the_limit_is_no_fault(
    make_client: MakeClient, mock_provider: MockProvider, test_key: str
) -> None:
    mock_provider.behave(type="stream_fault", kind="stall", after_chunks=2, stall_seconds=0.1)
    events = await events_of(make_client, f"{mock_provider.address}/v1", test_key, patience_seconds=PATIENCE_SECONDS)
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].finish_reason == "stop"


async def test_the_time_in_which_the_process_was_stopped_is_no_silence(
    make_client: MakeClient, mock_provider: MockProvider, test_key: str
) -> None:
    mock_provider.behave(type="stream_fault", kind="stall", after_chunks=2, stall_seconds=0.2)
    began = time.monotonic()
    asyncio.get_running_loop().call_later(0.1, time.sleep, 2 * PATIENCE_SECONDS)
    events = await events_of(make_client, f"{mock_provider.address}/v1", test_key, patience_seconds=PATIENCE_SECONDS)
    assert time.monotonic() - began > 2 * PATIENCE_SECONDS
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].finish_reason == "stop"


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
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
    ],
    ids=[
        "nothing at all",
        "an empty reply",
        "cut without a finish reason",
        "cut by the token limit",
        "thinking aloud",
        "halves of a pair in two chunks",
        "halves without the other half",
    ],
)
async def test_what_comes_is_passed_on_and_nothing_is_invented(
    make_client: MakeClient, test_key: str, pieces: tuple[bytes, ...], events: list[ModelEvent]
) -> None:
    async with serving(*pieces) as server:
        assert await events_of(make_client, server.address, test_key) == events


@pytest.mark.parametrize("pieces", [(), (STREAM_HEAD, chunk("Once"))], ids=["before", "within the reply"])
async def test_cancelling_hangs_up_at_once(make_client: MakeClient, test_key: str, pieces: tuple[bytes, ...]) -> None:
    async with serving(*pieces, hangs=True) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": test_key})

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


async def test_closing_the_reply_hangs_up(make_client: MakeClient, test_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("Once"), hangs=True) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": test_key})
        reply = client.stream(ModelRequest("openai/m", HELLO))
        async with aclosing(reply):
            assert await anext(reply) == TextDelta("Once")
        async with asyncio.timeout(1):
            await server.hung_up.wait()


async def test_many_replies_may_be_awaited_at_once(make_client: MakeClient, test_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        replies = await asyncio.gather(*(events_of(make_client, server.address, test_key) for _ in range(10)))
    assert [text_of(events) for events in replies] == ["hi"] * 10


async def test_chunks_that_arrived_together_let_other_tasks_go_on_between_them(
    make_client: MakeClient, test_key: str
) -> None:
    async def go_on() -> None:
        while True:
            went_on.append(None)
            await asyncio.sleep(0)

    went_on: list[None] = []
    other = asyncio.create_task(go_on())
    async with serving(STREAM_HEAD, *(chunk(f" {number}") for number in range(3000)), STOP) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": test_key})
        before = [len(went_on) async for event in client.stream(ModelRequest("openai/m", HELLO)) if event]
    other.cancel()
    assert len(set(before)) > 10
