"""A server on loopback that speaks HTTP/2, and counts its connections."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded

from tests.models.providers.fault_server import DONE, chunk

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

REPLY_HEAD = [(":status", "200"), ("content-type", "text/event-stream")]


@dataclass(slots=True)
class TwoServer:
    """A running server: the paths it was asked for, and how many connections it had.

    It answers ``replies`` requests and resets the streams of all others, but keeps the connection. With ``hangs`` it
    ends no reply; if it ``is_mute`` it begins none and sets ``silent``. ``given_up`` is set when a client hangs up.
    """

    replies: int = 100
    hangs: bool = False
    is_mute: bool = False
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    given_up: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""
    connections: int = 0
    asked: list[str] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.add(asyncio.get_running_loop().create_task(self._serve(reader, writer)))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
    two = TwoServer(replies, hangs)
    server = await asyncio.start_server(two.connected, "127.0.0.1", 0, ssl=context)
    two.address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield two
    finally:
        server.close()
        await two.close()
