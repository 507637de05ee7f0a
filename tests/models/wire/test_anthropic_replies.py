"""Replies in the protocol of Anthropic's messages, as its documentation shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.providers.failures import FailedError, Trouble
from chorus_cli.models.wire.anthropic import AnthropicReply
from tests.models.wire.read_replies import end_of, read, reasoning_in, text_in

if TYPE_CHECKING:
    from chorus_cli.models.rules.events import ModelEvent

PING = {"type": "ping"}
STOP = {"type": "message_stop"}


def start(**usage: int) -> dict[str, object]:
    message: dict[str, object] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
    }
    return {"type": "message_start", "message": message | {"usage": usage or {"input_tokens": 25, "output_tokens": 1}}}


def block(kind: str, place: int = 0, **fields: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": place, "content_block": {"type": kind, **fields}}


def delta(kind: str, place: int = 0, **fields: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": place, "delta": {"type": kind, **fields}}


def said(text: str, place: int = 0) -> dict[str, object]:
    return delta("text_delta", place, text=text)


def over(reason: str | None = "end_turn", **usage: int | None) -> dict[str, object]:
    counts = usage or {"output_tokens": 15}
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": counts}


def reply(*payloads: object) -> list[ModelEvent]:
    return read(AnthropicReply(), *payloads)


def test_a_reply_is_text_and_its_end() -> None:
    done = {"type": "content_block_stop", "index": 0}
    events = reply(start(), block("text", text=""), PING, said("Hello"), said("!"), done, over(), STOP)
    assert text_in(events) == "Hello!"
    assert end_of(events).finish_reason == "stop"
    assert end_of(events).usage == {"prompt_tokens": 25, "completion_tokens": 15, "total_tokens": 40}


@pytest.mark.parametrize(
    ("payloads", "text", "finish_reason"),
    [
        pytest.param((said("a"), over("max_tokens"), STOP), "a", "length", id="cut by the limit of tokens"),
        pytest.param((said("a"), over("model_context_window_exceeded"), STOP), "a", "length", id="context is full"),
        pytest.param((said("a"), over("refusal"), STOP), "a", "content_filter", id="filtered"),
        pytest.param((said("a"), over("content_filter"), STOP), "a", "content_filter", id="filtered, as OpenAI says"),
        pytest.param((said("a"), over("stop_sequence"), STOP), "a", "stop", id="a stop sequence"),
        pytest.param((said("a"), over("a reason of tomorrow"), STOP), "a", "stop", id="an unknown reason"),
        pytest.param((said("a"), over("end_turn")), "a", "stop", id="no message_stop"),
        pytest.param((said("a"), STOP), "a", "stop", id="no reason, but message_stop"),
        pytest.param((said("a"), over(None)), "a", None, id="cut after the counts"),
        pytest.param((said("a"),), "a", None, id="cut in the text"),
        pytest.param((), "", None, id="cut at once"),
        pytest.param(("", said("a"), "  ", over(), "[DONE]"), "a", "stop", id="empty data, and OpenAI's mark"),
        pytest.param((block("text", text="a"), said("b"), over()), "ab", "stop", id="text in the beginning of a block"),
        pytest.param((said("a"), said("b", 1), over()), "ab", "stop", id="two blocks of text"),
        pytest.param((said("\ud83d"), said("\ude00"), over()), "\U0001f600", "stop", id="half a character each"),
        pytest.param((said("a\ud83d"), over()), "a\ufffd", "stop", id="half a character at the end"),
        pytest.param(({"type": "of_tomorrow"}, delta("of_tomorrow"), over()), "", "stop", id="unknown events"),
        pytest.param((said("a"), over(), STOP, said("b")), "a", "stop", id="nothing counts after the end"),
    ],
)
def test_the_end_is_told_as_the_stream_ended(
    payloads: tuple[object, ...], text: str, finish_reason: str | None
) -> None:
    events = reply(start(), *payloads)
    assert text_in(events) == text
    assert end_of(events).finish_reason == finish_reason


def test_thinking_is_reasoning() -> None:
    thoughts = [delta("thinking_delta", thinking="One "), delta("thinking_delta", thinking="and two.")]
    signature = delta("signature_delta", signature="EqQBCgIYAhIM1gbcDa9GJwZA2b3h")
    hidden = block("redacted_thinking", 1, data="EmwKAhgBEgy3va3pzix")
    events = reply(
        start(),
        block("thinking", thinking=""),
        *thoughts,
        signature,
        hidden,
        block("text", 2),
        said("Three.", 2),
        over(),
    )
    assert reasoning_in(events) == "One and two."
    assert text_in(events) == "Three."


@pytest.mark.parametrize(
    ("payloads", "calls"),
    [
        pytest.param(
            [
                block("tool_use", 1, id="toolu_1", name="echo", input={}),
                *(delta("input_json_delta", 1, partial_json=piece) for piece in ("", '{"text": "go', 'ld"}')),
            ],
            [ToolCall("toolu_1", "echo", '{"text": "gold"}')],
            id="in pieces",
        ),
        pytest.param(
            [block("tool_use", 0, id="a", name="f", input={"n": 1})], [ToolCall("a", "f", '{"n": 1}')], id="whole"
        ),
        pytest.param(
            [block("tool_use", 0, id="a", name="f", input={}), block("tool_use", 1, id="b", name="f", input={})],
            [ToolCall("a", "f", ""), ToolCall("b", "f", "")],
            id="two without arguments",
        ),
        pytest.param(
            [block("server_tool_use", 0, id="a", name="web_search"), delta("input_json_delta", 0, partial_json="{}")],
            [],
            id="one of the server's own tools",
        ),
    ],
)
def test_calls_are_assembled_from_their_blocks(payloads: list[object], calls: list[ToolCall]) -> None:
    end = end_of(reply(start(), *payloads, over("tool_use"), STOP))
    assert list(end.calls) == calls
    assert end.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("beginning", "ending", "usage"),
    [
        ({"input_tokens": 5, "output_tokens": 1}, {"output_tokens": 7}, (5, 7, 12)),
        (
            {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 1},
            {"output_tokens": 7},
            (1005, 7, 1012),
        ),
        ({"input_tokens": 5, "output_tokens": 1}, {"input_tokens": 9, "output_tokens": 7}, (9, 7, 16)),
        ({"input_tokens": 5, "output_tokens": 1}, {"input_tokens": None, "output_tokens": 7}, (5, 7, 12)),
    ],
    ids=["counts", "cached tokens are of the prompt", "the end corrects the beginning", "a count that is missing"],
)
def test_tokens_are_counted_from_the_beginning_and_the_end(
    beginning: dict[str, int], ending: dict[str, int | None], usage: tuple[int, int, int]
) -> None:
    end = end_of(reply(start(**beginning), over("end_turn", **ending), STOP))
    assert tuple(end.usage.values())[:3] == usage
    assert list(end.usage)[:3] == ["prompt_tokens", "completion_tokens", "total_tokens"]


def test_tokens_that_the_cache_served_and_stored_are_told_apart() -> None:
    counts = {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 900}
    usage = end_of(reply(start(**counts), over("end_turn", output_tokens=7), STOP)).usage
    assert (usage["cached_tokens"], usage["cache_write_tokens"]) == (900, 100)
    assert "cached_tokens" not in end_of(reply(start(input_tokens=5), over(), STOP)).usage


def test_without_counts_no_usage_is_reported() -> None:
    assert end_of(reply(said("a"))).usage == {}


def test_a_whole_reply_to_a_request_for_a_stream_is_read() -> None:
    content = [{"type": "text", "text": "Hello."}, {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}}]
    usage = {"input_tokens": 3, "output_tokens": 4}
    events = reply({"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage})
    assert text_in(events) == "Hello."
    assert end_of(events).finish_reason == "tool_calls"
    assert end_of(events).calls == (ToolCall("a", "f", '{"n": 1}'),)
    assert end_of(events).usage["total_tokens"] == 7


def test_an_error_event_is_a_failure_with_its_body() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(FailedError) as caught:
        reply(start(), said("Hel"), error)
    assert caught.value.failure.body == error
    assert caught.value.failure.trouble is None


@pytest.mark.parametrize("data", ["<html>", "{", '"text"', "3", "null", "[1]", "[" * 100_000])
def test_data_of_another_kind_is_an_invalid_response(data: str) -> None:
    with pytest.raises(FailedError) as caught:
        reply(data)
    assert caught.value.failure.trouble is Trouble.INVALID_RESPONSE


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "message_start"},
        {"type": "message_start", "message": None},
        {"type": "content_block_start", "content_block": [], "index": "x"},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 3}},
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": None}, "index": None},
        {"type": "message_delta", "delta": None, "usage": {"output_tokens": "many"}},
        {"type": "message", "content": ["text"]},
        {},
    ],
)
def test_fields_of_another_kind_are_passed_over(payload: object) -> None:
    assert text_in(reply(payload, said("a"))) == "a"
