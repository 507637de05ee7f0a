"""Servers over Streamable HTTP: their headers are sent to them and to nobody else, and what goes wrong is told."""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

import pytest

from benchmarks.loopback import Quiet, listening
from chorus_cli.core.errors import ToolError
from chorus_cli.mcp.connections import Connections, Patience
from chorus_cli.mcp.rules.configuration import Server
from tests.mcp.small_server import answer

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the library mcp is not installed")

ENDLESS_BYTES = 100_000_000
TOKEN = "Bearer token-0123456789"


@dataclass
class Remote:
    """A server on loopback: what it does wrong, the headers that it got, and how much of an endless answer it sent.

    It refuses every session but ``session``, in the words ``refusal`` if it has some.
    """

    fault: str = ""
    elsewhere: str = ""
    address: str = ""
    authorizations: list[str | None] = field(default_factory=list)
    encodings: set[str | None] = field(default_factory=set)
    sent_bytes: int = 0
    session: str = ""
    refusal: tuple[int, str] = (404, "")


class Handler(Quiet, BaseHTTPRequestHandler):
    remote: Remote

    def do_POST(self) -> None:
        self.remote.authorizations.append(self.headers.get("Authorization"))
        self.remote.encodings.add(self.headers.get("Accept-Encoding"))
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_call = message.get("method") == "tools/call"
        if self.remote.fault == "401":
            self.reply(401, b'{"error": "Bearer token-0123456789 is not valid"}')
        elif self.remote.fault == "quotes":
            words = f"{self.headers['Authorization'].split()[1]} and {self.path.split('/')[1]} are not valid"
            error = {"code": -32000, "message": words}
            self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        elif self.remote.elsewhere:
            self.reply(307, b"", Location=self.remote.elsewhere)
        elif is_call and self.remote.fault:
            self.spoil()
        elif message["method"] != "initialize" and self.headers.get("Mcp-Session-Id", "") != self.remote.session:
            status, words = self.remote.refusal
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": words}}
            self.reply(status, json.dumps(error).encode() if words else b"")
        elif "id" not in message:
            self.reply(202, b"")
        else:
            told = answer("", message)
            reply = {"result": told} if told is not None else {"error": {"code": -32601, "message": "no"}}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}).encode()
            self.reply(200, body, **{"Mcp-Session-Id": self.remote.session, "Content-Length": str(len(body))})

    def spoil(self) -> None:
        match self.remote.fault:
            case "endless":
                self.reply(200, b"{", Connection="close")
                with suppress(OSError):
                    while self.remote.sent_bytes < ENDLESS_BYTES:
                        self.remote.sent_bytes += self.wfile.write(b" " * 1_000_000)
            case "packed":
                self.reply(200, gzip.compress(b" " * ENDLESS_BYTES), **{"Content-Encoding": "gzip"})
            case _:
                self.reply(200, b"event: message\ndata: {", kind="text/event-stream")

    def do_GET(self) -> None:
        self.remote.authorizations.append(self.headers.get("Authorization"))
        self.reply(405, b"")

    def reply(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in (headers or {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def remote(fault: str = "", elsewhere: str = "") -> Iterator[Remote]:
    server = Remote(fault, elsewhere)
    with listening(type("OneHandler", (Handler,), {"remote": server})) as server.address:
        yield server


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    opened = Connections(dict(os.environ), lambda _line: None, Patience(60, 5))
    yield opened
    await opened.close()


def configured(server: Remote) -> Server:
    return Server("far", url=f"{server.address}/mcp", headers={"Authorization": TOKEN})


async def test_tools_are_listed_and_called_with_the_headers(connections: Connections) -> None:
    with remote() as server:
        connection = connections.open(configured(server))
        await asyncio.wrap_future(connection.settled)
        assert (connection.problem, [each.name for each in connection.found]) == ("", ["ping", "environment"])
        assert (await connections.call(connection, "ping", {})).text == "pong"
        assert set(server.authorizations) == {TOKEN}


async def test_a_refusal_is_told_without_the_token(connections: Connections) -> None:
    with remote("401") as server:
        connection = connections.open(configured(server))
        await asyncio.wrap_future(connection.settled)
        assert connection.problem.endswith("(HTTP 401)")
        assert "0123456789" not in connection.problem
        assert connection.found == ()


async def test_an_error_that_quotes_keys_without_the_words_before_them_is_told_without_them(
    connections: Connections,
) -> None:
    with remote("quotes") as server:
        place = configured(server)._replace(url=f"{server.address}/key-in-the-path/mcp")
        connection = connections.open(place)
        await asyncio.wrap_future(connection.settled)
        assert connection.problem == "[redacted] and [redacted] are not valid"


async def test_no_header_follows_a_redirect_to_another_host(connections: Connections) -> None:
    with remote() as other, remote(elsewhere=f"{other.address}/mcp") as server:
        connection = connections.open(configured(server))
        await asyncio.wrap_future(connection.settled)
        assert connection.problem
        assert server.authorizations
        assert other.authorizations == []


async def test_a_stream_that_is_cut_fails_the_call_alone(connections: Connections) -> None:
    with remote("cut") as server:
        connection = connections.open(configured(server))
        await asyncio.wrap_future(connection.settled)
        with pytest.raises(ToolError, match="gave no result"):
            await connections.call(connection, "ping", {})
        assert connection.problem == ""


@pytest.mark.parametrize(
    ("fault", "told"),
    [("endless", "the answer is larger than 16 MB."), ("packed", "the answer is packed, which was not asked for.")],
)
async def test_an_answer_without_measure_fails_the_call_alone(connections: Connections, fault: str, told: str) -> None:
    with remote(fault) as server:
        connection = connections.open(configured(server))
        await asyncio.wrap_future(connection.settled)
        with pytest.raises(ToolError, match=f"The server far gave no result: .*{told}"):
            await connections.call(connection, "ping", {})
        assert connection.problem == ""
        assert server.encodings == {"identity"}
        assert server.sent_bytes < ENDLESS_BYTES


@pytest.mark.parametrize("refusal", [(404, ""), (400, "Bad Request: No valid session ID provided")])
async def test_a_restart_of_the_server_ends_the_connection_so_that_another_begins(
    connections: Connections, refusal: tuple[int, str]
) -> None:
    with remote() as server:
        server.session, server.refusal = "first", refusal
        connection = connections.open(configured(server))
        await asyncio.wrap_future(connection.settled)
        assert (await connections.call(connection, "ping", {})).text == "pong"
        server.session = "second"
        with pytest.raises(ToolError, match=r"[Ss]ession"):
            await connections.call(connection, "ping", {})
        assert connection.problem.endswith(f"(HTTP {refusal[0]})")
        again = connections.open(configured(server))
        await asyncio.wrap_future(again.settled)
        assert (await connections.call(again, "ping", {})).text == "pong"


async def test_a_server_that_is_not_there_is_told(connections: Connections) -> None:
    connection = connections.open(Server("far", url="http://127.0.0.1:9/mcp"))
    await asyncio.wrap_future(connection.settled)
    assert connection.problem
