"""Attachments are large: they neither stop the chat while a request is written nor fill the memory."""

from __future__ import annotations

import threading
from contextlib import aclosing

from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.client import WireClient
from chorus_cli.models.wire.protocol import EncodedMessages
from tests.attached_files import attachment, loaded
from tests.models.providers.asked_models import STOP
from tests.models.providers.fault_server import STREAM_HEAD, chunk, serving
from tests.models.providers.ways import MODEL_MAP


async def test_a_request_with_an_attachment_is_written_by_a_thread() -> None:
    threads: list[threading.Thread] = []

    def load(digest: str) -> bytes:
        threads.append(threading.current_thread())
        return loaded(digest)

    asked = PromptMessage("user", "what is it?", attachments=(attachment("photo.png"),))
    async with serving(STREAM_HEAD, chunk("hi") + STOP) as server:
        environment = {"OPENAI_API_BASE": server.address, "OPENAI_API_KEY": "0123456789abcdef"}
        client = WireClient(environment, MODEL_MAP, load=load)
        async with aclosing(client.stream(ModelRequest("openai/gpt-4o", (asked,)))) as events:
            _ = [event async for event in events]
        await client.aclose()
    assert len(threads) == 1
    assert threading.main_thread() not in threads


def test_so_many_bytes_of_encoded_messages_are_kept() -> None:
    encoded: list[str] = []

    def encode(message: str) -> bytes:
        encoded.append(message)
        return message.encode()

    messages = EncodedMessages(encode, most_bytes=10)
    for _ in range(2):
        assert messages.joined(["12345", "67890", "abcde"]) == b"[12345,67890,abcde]"
    assert encoded == ["12345", "67890", "abcde", "abcde"]
