"""A server on loopback that keeps its connections open, as providers do, and counts them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.models.providers.fault_server import DONE, chunk

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(slots=True)
class KeptServer:
    """A running server. Each connection answers ``requests_of_each`` requests, and is closed with the next one."""

    requests_of_each: int
    ends_replies: bool
    address: str = ""
    asked: list[str] = field(default_factory=list)
    connections: list[asyncio.StreamWriter] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        self._tasks.add(asyncio.get_running_loop().create_task(self._serve(reader, writer)))

    async def close(self) -> None:
        for writer in self.connections:
            writer.transport.abort()
        await asyncio.gather(*self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
    kept = KeptServer(requests_of_each, ends_replies)
    server = await asyncio.start_server(kept.connected, "127.0.0.1", 0, ssl=context)
    kept.address = f"{'https' if context else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield kept
    finally:
        server.close()
        await kept.close()
