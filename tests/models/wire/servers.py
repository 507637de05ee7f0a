"""Servers on loopback: one that keeps its connections, one that speaks HTTP/2, and a proxy that records requests."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded

from tests.models.providers.fault_server import DONE, Server, chunk, request_in, running

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(slots=True)
class KeptServer(Server):
    """A server. Each connection answers ``requests_of_each`` requests, and is closed with the next one."""

    requests_of_each: int
    ends_replies: bool
    asked: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            for _ in range(self.requests_of_each):
                method = await self._request(reader)
                writer.write(EMPTY if method == "HEAD" else self._reply())
                await writer.drain()
            await self._request(reader)
        writer.close()

    async def _request(self, reader: asyncio.StreamReader) -> str:
        """Return the method of the next request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lengths = [line for line in head.lower().splitlines() if line.startswith("content-length:")]
        await reader.readexactly(int(lengths[0].partition(":")[2]) if lengths else 0)
        self.asked.append(head.partition(" HTTP/")[0])
        return head.partition(" ")[0]

    def _reply(self) -> bytes:
        body = chunk("It rains.") + chunk(finish_reason="stop") + DONE
        return HEAD + b"%x\r\n%b\r\n" % (len(body), body) + (b"0\r\n\r\n" if self.ends_replies else b"")


@asynccontextmanager
async def storage(
    *, requests_of_each: int = 100, ends_replies: bool = True, context: ssl.SSLContext | None = None
) -> AsyncIterator[KeptServer]:
    """Serve, with the certificate of ``context``; without ``ends_replies`` a reply is not closed after ``[DONE]``."""
    async with running(KeptServer(requests_of_each, ends_replies), context) as kept:
        yield kept


REPLY_HEAD = [(":status", "200"), ("content-type", "text/event-stream")]


@dataclass(slots=True)
class TwoServer(Server):
    """A server: it answers ``replies`` requests and resets the streams of others, or ends or begins none."""

    replies: int = 100
    hangs: bool = False
    is_mute: bool = False
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    given_up: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        spoken = H2Connection(H2Configuration(client_side=False))
        spoken.initiate_connection()
        try:
            with suppress(ConnectionError):
                while True:
                    writer.write(spoken.data_to_send())
                    received = await reader.read(65_536)
                    if not received:
                        self.given_up.set()
                        return
                    self._answer(spoken, received)
        finally:
            writer.transport.abort()

    def _answer(self, spoken: H2Connection, received: bytes) -> None:
        for event in spoken.receive_data(received):
            match event:
                case RequestReceived(headers=headers) if headers:
                    self.asked += [value.decode() for name, value in headers if name == b":path"]
                case DataReceived(flow_controlled_length=int(length), stream_id=int(stream)):
                    spoken.acknowledge_received_data(length, stream)
                case StreamEnded(stream_id=int(stream)) if len(self.asked) > self.replies:
                    spoken.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)
                case StreamEnded() if self.is_mute:
                    self.silent.set()
                case StreamEnded(stream_id=int(stream)) if self.hangs:
                    spoken.send_headers(stream, REPLY_HEAD)
                    spoken.send_data(stream, chunk("Once"))
                case StreamEnded(stream_id=int(stream)):
                    spoken.send_headers(stream, REPLY_HEAD)
                    spoken.send_data(stream, chunk("It rains.") + chunk(finish_reason="stop") + DONE, end_stream=True)
                case _:
                    pass


@asynccontextmanager
async def speaking_two(context: ssl.SSLContext, *, replies: int = 100, hangs: bool = False) -> AsyncIterator[TwoServer]:
    """Serve with the certificate of ``context``."""
    context.set_alpn_protocols(["h2"])
    async with running(TwoServer(replies, hangs), context) as two:
        yield two


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
