"""Claude and Gemini asked over HTTP by the wire: their replies, and their errors as sentences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest
from chorus_cli.models.wire.client import WireClient
from tests.models.providers.asked_models import HELLO
from tests.models.providers.fault_server import HTML_ANSWER, STREAM_HEAD, event, failure, serving
from tests.models.providers.ways import MODEL_MAP
from tests.models.wire.conversations import ECHO

if TYPE_CHECKING:
    from chorus_cli.models.rules.events import ModelEvent
    from tests.models.providers.fault_server import FaultServer

KEY = "a-key-0123456789"
CLAUDE, GEMINI = "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"
BOTH = pytest.mark.parametrize("model", [CLAUDE, GEMINI])

MESSAGE = {"type": "message", "stop_reason": "end_turn", "content": [{"type": "text", "text": "Hello"}]}
CANDIDATE = {"content": {"role": "model", "parts": [{"text": "Hello"}]}, "finishReason": "STOP", "index": 0}
WORD = {
    CLAUDE: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
    GEMINI: {"candidates": [CANDIDATE | {"finishReason": None}]},
}
END = {
    CLAUDE: event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}) + event({"type": "message_stop"}),
    GEMINI: event({"candidates": [{"finishReason": "STOP", "index": 0}]}),
}
ERROR = {
    CLAUDE: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    GEMINI: {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}},
}
WHOLE = {CLAUDE: MESSAGE, GEMINI: {"candidates": [CANDIDATE]}}
JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"


async def asked(server: FaultServer, request: ModelRequest) -> list[ModelEvent]:
    address = server.address.removesuffix("/v1")
    addresses = {"ANTHROPIC_BASE_URL": address, "GEMINI_API_BASE": f"{address}/v1beta"}
    client = WireClient(addresses | {"ANTHROPIC_API_KEY": KEY, "GEMINI_API_KEY": KEY}, MODEL_MAP)
    try:
        return [event async for event in client.stream(request)]
    finally:
        await client.aclose()


async def reply(model: str, *pieces: bytes) -> list[ModelEvent]:
    async with serving(*pieces) as server:
        return await asked(server, ModelRequest(model, HELLO))


async def error(model: str, *pieces: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply(model, *pieces)
    return caught.value


@BOTH
async def test_a_reply_comes_with_its_end(model: str) -> None:
    assert await reply(model, STREAM_HEAD, event(WORD[model]), END[model]) == [TextDelta("Hello"), ReplyEnd("stop")]


@BOTH
async def test_a_reply_without_its_end_is_a_cut(model: str) -> None:
    assert await reply(model, STREAM_HEAD, event(WORD[model])) == [TextDelta("Hello"), ReplyEnd(None)]


@BOTH
async def test_a_whole_reply_to_a_request_for_a_stream_is_read(model: str) -> None:
    whole = json.dumps(WHOLE[model]).encode()
    assert await reply(model, JSON_HEAD, whole) == [TextDelta("Hello"), ReplyEnd("stop")]


async def test_a_list_to_a_request_for_events_of_gemini_is_read() -> None:
    whole = json.dumps([WORD[GEMINI], WHOLE[GEMINI]]).encode()
    assert await reply(GEMINI, JSON_HEAD, whole) == [TextDelta("Hello"), TextDelta("Hello"), ReplyEnd("stop")]


@BOTH
async def test_an_error_in_the_middle_leaves_what_has_arrived(model: str) -> None:
    found = await error(model, STREAM_HEAD, event(WORD[model]), event(ERROR[model]))
    assert "overloaded" in str(found).lower()


@pytest.mark.parametrize(("model", "status"), [(CLAUDE, 529), (GEMINI, 503)])
async def test_an_error_instead_of_a_reply_has_the_status_that_its_type_stands_for(model: str, status: int) -> None:
    found = await error(model, STREAM_HEAD, event(ERROR[model]))
    assert found.status_code == status
    assert found.retryable


@BOTH
async def test_a_page_is_no_reply(model: str) -> None:
    assert await reply(model, HTML_ANSWER) == [ReplyEnd(None)]


@pytest.mark.parametrize(
    ("model", "answer", "variable"),
    [
        (CLAUDE, failure(401, {"error": {"type": "authentication_error", "message": "No"}}), "ANTHROPIC_API_KEY"),
        (GEMINI, failure(400, {"error": {"code": 400, "message": "API key not valid."}}), "GEMINI_API_KEY"),
    ],
)
async def test_a_rejected_key_is_named(model: str, answer: bytes, variable: str) -> None:
    assert f"Check {variable}" in str(await error(model, answer))


async def test_a_server_without_tool_choice_is_asked_without_it_and_keeps_its_tools() -> None:
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "tool_choice: not supported"}}
    request = ModelRequest(CLAUDE, HELLO, tools=(ECHO,), may_call=False)
    async with serving(failure(400, refusal)) as server:
        with pytest.raises(ModelError):
            await asked(server, request)
    assert [body.body.get("tool_choice") for body in server.asked] == [{"type": "none"}, None]
    assert server.asked[0].body["tools"] == server.asked[1].body["tools"]


async def test_calls_of_gemini_come_with_their_signatures() -> None:
    part = {"functionCall": {"name": "echo", "args": {}, "id": "c"}, "thoughtSignature": "QQ=="}
    called = event({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]})
    (end,) = await reply(GEMINI, STREAM_HEAD, called)
    parts = [{"called": "c", "thoughtSignature": "QQ=="}]
    assert end == ReplyEnd(
        "tool_calls", calls=(ToolCall("c", "echo", "{}"),), thought_parts=json.dumps({"form": "gemini", "parts": parts})
    )
