"""A proxy on loopback that answers for every host, with certificates of its own, and records the requests."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import trustme

from tests.models.providers.fault_server import request_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    import pytest


class Recorded(NamedTuple):
    """One request, with the whole URL; header names are in lower case."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, object]


@dataclass(slots=True)
class RecordingProxy:
    """A running proxy: its answer to every request, and the requests so far."""

    answer: bytes
    recorded: list[Recorded] = field(default_factory=list)
    authority: trustme.CA = field(default_factory=trustme.CA)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
    server = await asyncio.start_server(proxy.connected, "127.0.0.1", 0)
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "authority.pem"))
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield proxy
    finally:
        server.close()
        await server.wait_closed()
