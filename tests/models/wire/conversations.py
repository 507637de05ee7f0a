"""Requests of every kind that a protocol of the wire writes, and short ways to ask a model over it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import httpx

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.declaration import Kind, Parameter, Tool
from chorus_cli.models.rules.events import ModelEvent, ReplyEnd
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.chat_completions import ChatReader
from chorus_cli.models.wire.client import WireClient
from chorus_cli.models.wire.http_client import EventStream
from tests.models.providers.asked_models import HELLO as ASKED
from tests.models.providers.asked_models import meaning
from tests.models.providers.fault_server import serving
from tests.models.providers.ways import MODEL_MAP

ECHO = Tool("echo", "Say a text again.", (Parameter("text", "Any text."),))
COUNT = Tool(
    "count",
    "Count.",
    (
        Parameter("most", "The last number.", Kind.NUMBER, is_required=False),
        Parameter("way", "The way.", choices=("up", "down")),
    ),
)
NOW = Tool("now", "Tell the time.")

SYSTEM = PromptMessage("system", "You are Frodo.")
HELLO = PromptMessage("user", "hello")
ANSWER = PromptMessage("assistant", "Let me see.")


def user(text: str) -> PromptMessage:
    return PromptMessage("user", text)


def assistant(text: str) -> PromptMessage:
    return PromptMessage("assistant", text)


def called(id_: str, arguments: str = '{"text": "gold"}') -> PromptMessage:
    return PromptMessage("assistant", "", tool_calls=ToolCall(id_, "echo", arguments).as_json)


def result(id_: str, text: str = "gold") -> PromptMessage:
    return PromptMessage("tool", text, tool_call_id=id_)


ASKED_TOOL = (SYSTEM, HELLO, ANSWER, called("c1"), result("c1"))
TOOL_AFTER_TOOL = (*ASKED_TOOL, called("c2", "{}"), result("c2", "more"))


KEY = "sk-test-0123456789"
ASKING = ModelRequest("openai/m", ASKED)


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


async def closed(_stream: EventStream) -> None:
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
