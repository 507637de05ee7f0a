"""Replies of Gemini in its own protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.rules.events import ReplyEnd
from tests.models.providers.asked_models import BY_LITELLM, events_of, text_of
from tests.models.providers.fault_server import STREAM_HEAD, event, serving

if TYPE_CHECKING:
    from tests.mock_provider import MockProvider
    from tests.models.providers.ways import MakeClient

pytestmark = BY_LITELLM

MODEL = "gemini/gemini-2.5-flash"
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def gemini_key(test_key: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put a key for Gemini in the environment, and return it."""
    monkeypatch.setenv("GEMINI_API_KEY", test_key)
    return test_key


def piece(text: str, finish_reason: str | None = None) -> bytes:
    """Return an event of ``streamGenerateContent``."""
    candidate: dict[str, object] = {"index": 0, "content": {"role": "model", "parts": [{"text": text}]}}
    if finish_reason:
        candidate["finishReason"] = finish_reason
    return event({"candidates": [candidate], "modelVersion": "gemini-2.5-flash", "responseId": "r"})


async def test_a_whole_reply_of_gemini_is_whole(
    make_client: MakeClient, mock_provider: MockProvider, gemini_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_BASE", f"{mock_provider.address}/gemini/v1beta")
    mock_provider.behave(type="reply", text="Good day to you.")
    events = await events_of(make_client, NOWHERE, gemini_key, model=MODEL)
    assert text_of(events) == "Good day to you."
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].finish_reason == "stop"


@pytest.mark.parametrize(
    ("pieces", "finish_reason"),
    [
        ((piece("Hel"), piece("lo", "STOP")), "stop"),
        ((piece("Hel"), piece("lo", "MAX_TOKENS")), "length"),
        ((piece("Hel"), piece("lo", "SAFETY")), "content_filter"),
        ((), None),
    ],
    ids=["whole", "cut by the token limit", "filtered", "nothing at all"],
)
async def test_a_reply_of_gemini_ends_as_its_last_piece_says(
    make_client: MakeClient,
    gemini_key: str,
    monkeypatch: pytest.MonkeyPatch,
    pieces: tuple[bytes, ...],
    finish_reason: str | None,
) -> None:
    async with serving(STREAM_HEAD, *pieces) as server:
        monkeypatch.setenv("GEMINI_API_BASE", f"{server.address}beta")
        events = await events_of(make_client, NOWHERE, gemini_key, model=MODEL)
    assert text_of(events) == ("Hello" if pieces else "")
    assert isinstance(events[-1], ReplyEnd)
    assert events[-1].finish_reason == finish_reason
