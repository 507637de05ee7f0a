"""Short ways to ask a model over the wire."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx

from chorus_cli.models.rules.events import ReplyEnd
from chorus_cli.models.rules.request import ModelRequest
from chorus_cli.models.wire.chat_completions import ChatReader
from chorus_cli.models.wire.client import WireClient
from chorus_cli.models.wire.http_client import EventStream
from tests.models.providers.asked_models import HELLO, meaning
from tests.models.providers.fault_server import serving
from tests.models.providers.ways import MODEL_MAP

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from chorus_cli.models.rules.events import ModelEvent

KEY = "sk-test-0123456789"
ASKING = ModelRequest("openai/m", HELLO)


@asynccontextmanager
async def client_of(address: str) -> AsyncIterator[WireClient]:
    """Yield a client for the server at ``address``; its connections are closed in the end."""
    client = WireClient({"OPENAI_BASE_URL": address, "OPENAI_API_KEY": KEY}, MODEL_MAP)
    try:
        yield client
    finally:
        await client.aclose()


async def replied(*pieces: bytes) -> list[ModelEvent]:
    """Return the events of a reply from a server that sends ``pieces``."""
    async with serving(*pieces) as server, client_of(server.address) as client:
        return await events_of(client)


async def events_of(client: WireClient, request: ModelRequest = ASKING) -> list[ModelEvent]:
    return [meaning(event) async for event in client.stream(request)]


async def closed(_is_stopped: object) -> None:
    """Do nothing: there is no connection."""


async def read_pieces(pieces: Iterable[bytes], longest_event_bytes: int = 64_000_000) -> list[ModelEvent]:
    """Return the events of a reply whose body comes in these pieces."""

    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    reader = ChatReader()
    events: list[ModelEvent] = []
    async for data in EventStream(httpx.Response(200, content=body()), closed, longest_event_bytes).data():
        events += reader.events(data)
    return events if events and isinstance(events[-1], ReplyEnd) else [*events, *reader.end()]
