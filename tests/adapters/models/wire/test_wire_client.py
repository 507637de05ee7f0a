"""A reply comes over the wire as it was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.adapters.models.model_map import ModelMap
from chorus_cli.adapters.models.wire.client import WireClient
from chorus_cli.core.errors import ModelError
from chorus_cli.core.models.events import ReplyEnd, TextDelta
from chorus_cli.core.models.exchange import ModelRequest, PromptMessage
from tests.adapters.models.fault_server import DONE, STREAM_HEAD, chunk, failure, serving, usage_chunk

if TYPE_CHECKING:
    from chorus_cli.core.models.events import ModelEvent

MODEL_MAP = ModelMap()
HELLO = (PromptMessage("user", "hello"),)
KEY = "sk-test-0123456789"


async def replied(*pieces: bytes) -> list[ModelEvent]:
    async with serving(*pieces) as server:
        client = WireClient({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": KEY}, MODEL_MAP)
        events = [event async for event in client.stream(ModelRequest("openai/m", HELLO))]
        await client.aclose()
    return events


async def test_a_reply_comes_with_its_end_and_its_usage() -> None:
    events = await replied(
        STREAM_HEAD, chunk("It "), chunk("rains."), chunk(finish_reason="stop"), usage_chunk(5, 2), DONE
    )
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    assert events == [TextDelta("It "), TextDelta("rains."), ReplyEnd("stop", usage)]


async def test_an_error_is_a_sentence() -> None:
    with pytest.raises(ModelError, match=r"rejected the key \(No\). Check OPENAI_API_KEY"):
        await replied(failure(401, {"error": {"message": "No"}}))
