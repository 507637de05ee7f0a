"""Servers of the official library: both ages of the protocol over both transports, with all kinds of results."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from chorus_cli.core.errors import ToolError
from chorus_cli.mcp.connections import Connection, Connections, Patience
from chorus_cli.mcp.rules.configuration import Server

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the library mcp is not installed"),
    pytest.mark.timeout(300),
]

PROGRAM = str(Path(__file__).with_name("library_server.py"))
CALL_SECONDS = 3


@pytest.fixture(scope="module", params=["2025", "2026"])
def age(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["stdio", "http"])
def server(request: pytest.FixtureRequest, age: str) -> Iterator[Server]:
    if request.param == "stdio":
        yield Server("library", sys.executable, (PROGRAM, "stdio", age))
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, PROGRAM, "http", age, str(port)])
    yield Server("library", url=f"http://127.0.0.1:{port}/mcp")
    process.kill()
    process.wait()


class Reached(NamedTuple):
    """A connection to the server, and what calls its tools."""

    connections: Connections
    connection: Connection

    async def call(self, tool: str, **arguments: object) -> str:
        result = await self.connections.call(self.connection, tool, arguments)
        return f"error: {result.text}" if result.is_error else result.text


async def connected(connections: Connections, server: Server) -> Connection:
    connection = connections.open(server)
    await asyncio.wrap_future(connection.settled)
    return connection


@pytest.fixture
def call_seconds() -> float:
    return CALL_SECONDS


@pytest.fixture
async def reached(server: Server, call_seconds: float) -> AsyncIterator[Reached]:
    connections = Connections(dict(os.environ), lambda _line: None, Patience(200, call_seconds))
    connection = await connected(connections, server)
    while connection.problem.startswith("All connection attempts failed"):
        await asyncio.sleep(0.1)
        connection = await connected(connections, server)
    assert connection.problem == ""
    yield Reached(connections, connection)
    await connections.close()


async def test_the_age_is_that_of_the_server_and_its_tools_are_listed(reached: Reached, age: str) -> None:
    client = reached.connection.client
    assert client is not None
    assert client.protocol_version == {"2025": "2025-11-25", "2026": "2026-07-28"}[age]
    assert [each.name for each in reached.connection.found] == ["add", "picture", "weather", "fail", "work"]


async def test_texts_structures_pictures_and_errors(reached: Reached) -> None:
    assert await reached.call("add", a=19, b=23) == "42"
    assert '"sky": "blue"' in await reached.call("weather", city="Rome")
    assert await reached.call("fail") == "error: Error executing tool fail: no such city"
    assert (await reached.call("add", a="many")).startswith("error: ")
    result = await reached.connections.call(reached.connection, "picture", {})
    assert (result.text, [attachment.name for attachment, _ in result.files]) == ("Here.", ["library.picture.png"])


async def test_a_call_may_take_longer_while_it_reports_progress(reached: Reached) -> None:
    assert await reached.call("work", seconds=CALL_SECONDS + 1) == "done"
    with pytest.raises(ToolError, match="it did not answer in time"):
        await reached.call("work", seconds=CALL_SECONDS + 1, reports=False)
    assert await reached.call("add", a=1, b=2) == "3"


@pytest.mark.parametrize("call_seconds", [0.3])
async def test_progress_without_end_ends_a_call_after_ten_times_its_limit(reached: Reached) -> None:
    async with asyncio.timeout(60):
        with pytest.raises(ToolError, match="it did not answer in time"):
            await reached.call("work", seconds=120)
    assert not reached.connection.over.is_set()
