"""Connections: kept for the next request, secured, and leading to no other server than the one that is named."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme

from chorus_cli.core.errors import ModelError
from chorus_cli.models.providers.failures import FailedError
from chorus_cli.models.providers.providers import Endpoint
from chorus_cli.models.rules.events import ModelEvent, ReplyEnd, TextDelta
from chorus_cli.models.wire.client import Connection
from chorus_cli.models.wire.protocol import Post
from tests.models.providers.fault_server import DONE, Server, chunk, running, serving
from tests.models.wire.conversations import ASKING, KEY, client_of, events_of

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(slots=True)
class KeptServer(Server):
    """A server that keeps its connections: each answers ``requests_of_each`` requests and is closed with the next."""

    requests_of_each: int
    ends_replies: bool
    asked: list[str] = field(default_factory=list)
    given_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            for _ in range(self.requests_of_each):
                method = await self._request(reader)
                writer.write(EMPTY if method == "HEAD" else self._reply())
                await writer.drain()
            await self._request(reader)
        self.given_up.set()
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


RAINS: list[ModelEvent] = [TextDelta("It rains."), ReplyEnd("stop")]
ASKED, ASKING_POST = "POST /v1/chat/completions", Post("/chat/completions", {}, b"{}")


async def test_the_next_request_uses_the_connection_of_the_last_and_two_at_once_use_two() -> None:
    async with storage() as server, client_of(server.address) as client:
        for _ in range(3):
            assert await events_of(client) == RAINS
        assert (len(server.connections), server.asked) == (1, [ASKED] * 3)
        assert [*await asyncio.gather(events_of(client), events_of(client))] == [RAINS, RAINS]
        async with aclosing(client.stream(ASKING)) as begun:
            assert await anext(begun) == RAINS[0]
            assert await events_of(client) == RAINS
        assert len(server.connections) == 2


async def test_a_server_that_closes_nothing_after_the_end_is_not_waited_for() -> None:
    began = time.monotonic()
    async with storage(ends_replies=False) as server, client_of(server.address) as client:
        assert await events_of(client) == RAINS
        assert await events_of(client) == RAINS
    assert time.monotonic() - began < 5


async def test_a_connection_that_is_lost_before_the_answer_is_told_and_may_be_tried_again() -> None:
    async with storage(requests_of_each=0) as server, client_of(server.address) as client:
        with pytest.raises(ModelError, match=r"^Cannot reach openai/m at .* \(connection lost\)") as caught:
            await events_of(client)
    assert (len(server.asked), caught.value.retryable) == (1, True)


async def test_a_connection_that_was_opened_beforehand_serves_the_next_request() -> None:
    async with storage() as server, aclosing(Connection()) as connection:
        for _ in range(2):
            await connection.preconnect(server.address)
        stream = await connection.send(ASKING_POST, Endpoint("openai", "m", server.address, KEY))
        assert [data async for data in stream.data()][-1] == "[DONE]"
        await stream.aclose()
        await connection.preconnect(server.address)
    assert (len(server.connections), server.asked) == (1, ["HEAD /", ASKED])


async def test_a_server_on_this_machine_is_not_connected_to_beforehand() -> None:
    async with storage() as server, client_of(server.address) as client:
        await client.preconnect("openai/m")
    assert server.connections == []


async def test_a_server_that_cannot_be_reached_beforehand_is_no_error(unused_tcp_port: int) -> None:
    async with aclosing(Connection()) as connection:
        address = f"http://127.0.0.1:{unused_tcp_port}/v1"
        await connection.preconnect(address)
        with pytest.raises(FailedError):
            await connection.send(ASKING_POST, Endpoint("openai", "m", address, KEY))


async def test_no_redirect_is_followed_with_the_key() -> None:
    async with storage() as other:
        moved = f"HTTP/1.1 307 Moved\r\nLocation: {other.address}/x\r\nContent-Length: 0\r\n\r\n".encode()
        async with serving(moved) as server, client_of(server.address) as client:
            with pytest.raises(ModelError) as caught:
                await events_of(client)
    assert str(caught.value) == (
        f"The server of openai/m at {server.address} redirects elsewhere, status 307 "
        f"(redirected to {other.address}/x). Correct its address."
    )
    assert other.asked == []


async def test_certificates_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    async with client_of("https://127.0.0.1:9/v1") as client:
        with pytest.raises(ModelError, match=r"SSL_CERT_FILE .*cannot be read: No such file") as caught:
            await events_of(client)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("http_proxy", "http://proxy.example:port", ""),
        ("http_proxy", "ftp://u:hidden@proxy.example", ""),
        ("no_proxy", "[::x", ""),
        ("http_proxy", "http://[::1", "Invalid port: ':1'"),
        ("http_proxy", "socks9://127.0.0.1", "Unknown scheme for proxy URL"),
    ],
)
async def test_an_unfit_proxy_is_told(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, why: str) -> None:
    monkeypatch.setenv(variable, value)
    async with client_of("http://provider.example/v1") as client:
        with pytest.raises(ModelError) as caught:
            await events_of(client)
    assert f"(the proxy cannot be used: {why}" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_without_proxies_a_server_on_this_machine_needs_no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    monkeypatch.setenv("http_proxy", "https://proxy.example")
    connection = Connection(is_direct=True)
    assert connection.warm("http://127.0.0.1") is connection.warm("http://127.0.0.1:1/v1")


async def test_a_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with storage() as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        async with client_of("http://provider.example/v1") as client:
            assert await events_of(client) == RAINS
    assert proxy.asked == ["POST http://provider.example/v1/chat/completions"]


async def test_a_host_that_needs_no_proxy_is_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    async with storage() as server, storage() as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        async with client_of(server.address) as client:
            assert await events_of(client) == RAINS
    assert proxy.asked == []


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """Return an authority whose certificates are trusted."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    return authority


def certified(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    """Return the context of a server of this name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


async def test_a_secured_connection_is_kept(authority: trustme.CA) -> None:
    async with storage(context=certified(authority)) as server, client_of(server.address) as client:
        assert [await events_of(client) for _ in range(2)] == [RAINS, RAINS]
    assert (len(server.connections), len(server.asked)) == (1, 2)


async def test_closing_a_secured_reply_stops_the_server_and_no_other_reply(authority: trustme.CA) -> None:
    async with (
        storage(context=certified(authority), ends_replies=False) as server,
        client_of(server.address) as client,
        aclosing(client.stream(ASKING)) as first,
    ):
        assert await anext(first) == RAINS[0]
        async with aclosing(client.stream(ASKING)) as second:
            assert await anext(second) == RAINS[0]
            await first.aclose()
            async with asyncio.timeout(1):
                await server.given_up.wait()
            assert [event async for event in second] == RAINS[1:]


@pytest.mark.parametrize("case", ["another authority", "another name"])
async def test_with_a_certificate_that_is_not_trusted_nothing_is_asked(authority: trustme.CA, case: str) -> None:
    context = certified(trustme.CA()) if case == "another authority" else certified(authority, "other.example")
    async with storage(context=context) as server, client_of(server.address) as client:
        with pytest.raises(ModelError, match=r"^Cannot reach openai/m at .*the server's certificate is not trusted: "):
            await events_of(client)
    assert server.asked == []


async def test_a_server_without_tls_is_told() -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 This is plain HTTP\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, client_of(f"https://127.0.0.1:{port}/v1") as client:
        with pytest.raises(ModelError, match=rf"Cannot reach openai/m at .*:{port}/v1 \(the server does not speak TLS"):
            await events_of(client)
