"""Requests of every kind that a protocol of the wire writes, short ways to ask a model over it, and a proxy."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.declaration import Kind, Parameter, Tool
from chorus_cli.models.rules.events import ModelEvent
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.client import WireClient
from tests.models.providers.asked_models import HELLO as ASKED
from tests.models.providers.asked_models import MODEL_MAP, meaning
from tests.models.providers.fault_server import Server, request_in, running, serving

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


def client_of(address: str) -> AbstractAsyncContextManager[WireClient]:
    """Return a client for the server at ``address``; its connections are closed in the end."""
    return aclosing(WireClient({"OPENAI_BASE_URL": address, "OPENAI_API_KEY": KEY}, MODEL_MAP))


async def replied(*pieces: bytes) -> list[ModelEvent]:
    """Return the events of a reply from a server that sends ``pieces``."""
    async with serving(*pieces) as server, client_of(server.address) as client:
        return await events_of(client)


async def events_of(client: WireClient, request: ModelRequest = ASKING) -> list[ModelEvent]:
    return [meaning(event) async for event in client.stream(request)]


class Recorded(NamedTuple):
    """One request, with the whole URL; header names are in lower case."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, object]


@dataclass(slots=True)
class RecordingProxy(Server):
    """A proxy: its answer to every request, and the requests so far."""

    answer: bytes
    recorded: list[Recorded] = field(default_factory=list)
    authority: trustme.CA = field(default_factory=trustme.CA)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client: first that the way to the host is open, then in the place of the host."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            method, target, _ = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ", 2)
            host, _, port = target.rpartition(":")
            assert (method, port) == ("CONNECT", "443")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self.authority.issue_cert(host).configure_cert(context)
            await writer.start_tls(context)
            asked = await request_in(reader)
            self.recorded.append(Recorded(f"https://{host}{asked.path}", asked.headers, asked.body))
            writer.write(self.answer)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def recording(folder: Path, monkeypatch: pytest.MonkeyPatch, *pieces: bytes) -> AsyncIterator[RecordingProxy]:
    """Have the environment lead all requests to a proxy that answers with ``pieces``, and trust its certificates."""
    proxy = RecordingProxy(b"".join(pieces))
    proxy.authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "authority.pem"))
    async with running(proxy):
        for name in ("https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.address.removesuffix("/v1"))
        yield proxy
