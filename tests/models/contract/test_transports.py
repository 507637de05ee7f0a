"""A reply is the same in whichever way its bytes travel, in each protocol."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.rules.events import ReplyEnd
from chorus_cli.models.rules.request import ModelRequest
from tests.models.providers.asked_models import BY_LITELLM, HELLO, STOP, text_of
from tests.models.providers.fault_server import STREAM_HEAD, byte_by_byte, compressed, serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.models.providers.ways import MakeClient

pytestmark = BY_LITELLM

KEY = "0123456789abcdef"
LETTERS = "Grüße, \N{GRINNING FACE}"
SEPARATED = "one\u2028two\x85three"
OPENAI = "openai/m"
CLAUDE = "anthropic/claude-sonnet-4-5"
GEMINI = "gemini/gemini-2.5-flash"


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
    "compressed": Transport(compressed),
    "lines that end with CR and LF": Transport(lambda body: STREAM_HEAD + body.replace(b"\n", b"\r\n")),
    "data without a blank": Transport(lambda body: STREAM_HEAD + body.replace(b"data: ", b"data:")),
    "comments between events": Transport(lambda body: STREAM_HEAD + body.replace(b"\n\n", b"\n\n: ping\n\n")),
    "an event with empty data": Transport(lambda body: STREAM_HEAD + b"data:\n\n" + body, (OPENAI,)),
    "another type of content": Transport(lambda body: STREAM_HEAD.replace(b"event-stream", b"plain") + body),
}


@pytest.fixture(autouse=True)
def _keys(test_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert test_key
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)


async def came(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, model: str, answer: bytes
) -> tuple[str, str | None] | str:
    """Return the text and the finish reason of a reply, or the problem of its error."""
    async with serving(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.address)
        monkeypatch.setenv("ANTHROPIC_API_BASE", server.address.removesuffix("/v1"))
        monkeypatch.setenv("GEMINI_API_BASE", f"{server.address}beta")
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
    reply = await came(make_client, monkeypatch, model, transport.answer(REPLIES[model]))
    assert (reply == (LETTERS, "stop")) is not is_lost


@pytest.mark.parametrize("model", REPLIES)
async def test_separators_of_lines_within_a_text_are_text(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    body = REPLIES[model].replace(LETTERS.encode(), SEPARATED.encode())
    assert await came(make_client, monkeypatch, model, STREAM_HEAD + body) == (SEPARATED, "stop")
