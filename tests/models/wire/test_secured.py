"""Over TLS a key goes to no server without a trusted certificate; HTTP/2 is spoken with one that speaks it."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trustme

from chorus_cli.core.errors import ModelError
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from tests.models.wire.kept_server import storage
from tests.models.wire.two_server import speaking_two
from tests.models.wire.wire_talk import ASKING, client_of, events_of

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.models.rules.events import ModelEvent

RAINS: list[ModelEvent] = [TextDelta("It rains."), ReplyEnd("stop")]


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


async def test_a_connection_over_tls_is_kept(authority: trustme.CA) -> None:
    async with storage(context=certified(authority)) as server, client_of(server.address) as client:
        for _ in range(2):
            assert await events_of(client) == RAINS
    assert len(server.connections) == 1


async def test_requests_one_after_another_share_a_connection_of_http_2(authority: trustme.CA) -> None:
    async with speaking_two(certified(authority)) as server, client_of(server.address) as client:
        for _ in range(2):
            assert await events_of(client) == RAINS
    assert (server.connections, server.asked) == (1, ["/v1/chat/completions"] * 2)


async def test_closing_a_reply_of_http_2_stops_the_server_and_no_other_reply(authority: trustme.CA) -> None:
    async with speaking_two(certified(authority), hangs=True) as server, client_of(server.address) as client:
        first, second = client.stream(ASKING), client.stream(ASKING)
        async with aclosing(first), aclosing(second):
            assert [await anext(first), await anext(second)] == [TextDelta("Once")] * 2
            await first.aclose()
            async with asyncio.timeout(1):
                await server.given_up.wait()
            server.given_up.clear()
            server.hangs = False
            assert await events_of(client) == RAINS
            assert (server.connections, server.given_up.is_set()) == (3, False)


async def test_cancelling_a_request_of_http_2_before_its_answer_stops_the_server(authority: trustme.CA) -> None:
    async with speaking_two(certified(authority)) as server, client_of(server.address) as client:
        assert await events_of(client) == RAINS
        server.is_mute = True
        reading = asyncio.create_task(events_of(client))
        await server.silent.wait()
        reading.cancel()
        await asyncio.wait({reading})
        async with asyncio.timeout(1):
            await server.given_up.wait()


async def test_cancelling_the_reader_of_a_reply_of_http_2_stops_the_server(authority: trustme.CA) -> None:
    async with speaking_two(certified(authority), hangs=True) as server, client_of(server.address) as client:
        heard = asyncio.Event()

        async def read() -> None:
            async for _ in client.stream(ASKING):
                heard.set()

        reading = asyncio.create_task(read())
        await heard.wait()
        reading.cancel()
        await asyncio.wait({reading})
        async with asyncio.timeout(1):
            await server.given_up.wait()
        assert reading.cancelled()


async def test_a_stream_that_is_reset_again_and_again_is_not_asked_for_ever(authority: trustme.CA) -> None:
    async with speaking_two(certified(authority), replies=1) as server, client_of(server.address) as client:
        assert await events_of(client) == RAINS
        with pytest.raises(ModelError, match=r"^Cannot reach openai/m at .* \(connection lost\)"):
            async with asyncio.timeout(10):
                await events_of(client)
    assert len(server.asked) == 3


async def test_cancelling_within_the_handshake_hangs_up() -> None:
    came, gone = asyncio.Event(), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server, client_of(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1") as client:
        reading = asyncio.create_task(events_of(client))
        await came.wait()
        await asyncio.sleep(0.1)
        reading.cancel()
        await asyncio.wait({reading})
        async with asyncio.timeout(1):
            await gone.wait()
        assert reading.cancelled()


@pytest.mark.parametrize("case", ["another authority", "another name"])
async def test_a_certificate_that_is_not_trusted_is_told_and_the_server_is_told_nothing(
    authority: trustme.CA, case: str
) -> None:
    context = certified(trustme.CA()) if case == "another authority" else certified(authority, "other.example")
    async with storage(context=context) as server, client_of(server.address) as client:
        with pytest.raises(ModelError, match=r"^Cannot reach openai/m at .*its certificate is not trusted: "):
            await events_of(client)
    assert server.asked == []


async def test_a_server_without_tls_is_told() -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 This is plain HTTP\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, client_of(f"https://127.0.0.1:{port}/v1") as client:
        with pytest.raises(ModelError, match=rf"Cannot reach openai/m at .*:{port}/v1 \(it does not speak TLS\)"):
            await events_of(client)
