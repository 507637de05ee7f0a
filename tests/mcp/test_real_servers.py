"""Servers that nobody here wrote, and one of the official library: both ages of the protocol, and all kinds of results.

They run where they are installed: the package mcp-server-time, and server-everything, whose folder NODE_PATH has.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from chorus_cli.mcp.answers import Result
from chorus_cli.mcp.connections import Connection, Connections, Patience
from chorus_cli.mcp.rules.configuration import Server
from chorus_cli.mcp.rules.offers import arguments_of
from tests.loopback_providers import CallingProvider, split_call
from tests.terminal.driver import PROMPT, Home

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the library mcp is not installed"),
    pytest.mark.timeout(300),
]

WRITTEN_WITH_THE_LIBRARY = """
from mcp.server import MCPServer
server = MCPServer("small")

@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

server.run()
"""


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    opened = Connections(dict(os.environ), lambda _line: None, Patience(200, 60))
    yield opened
    await opened.close()


async def connected(connections: Connections, server: Server) -> Connection:
    connection = connections.open(server)
    await asyncio.wrap_future(connection.settled)
    assert connection.problem == ""
    return connection


async def test_a_server_of_the_library_itself(connections: Connections) -> None:
    connection = await connected(connections, Server("sum", sys.executable, ("-c", WRITTEN_WITH_THE_LIBRARY)))
    assert [(each.name, each.description) for each in connection.found] == [("add", "Add two numbers.")]
    result = await connections.call(connection, "add", {"a": 19, "b": 23})
    assert (result.text, result.is_error) == ("42", False)
    assert (await connections.call(connection, "add", {"a": "many"})).is_error


def program(name: str) -> str:
    """Return the path of a program beside the library, or on the PATH; skip without it."""
    spec = importlib.util.find_spec("mcp")
    beside = Path(spec.origin or "").parents[4] / "bin" / name if spec else Path()
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


async def test_mcp_server_time(connections: Connections) -> None:
    connection = await connected(connections, Server("time", program("mcp-server-time")))
    assert {each.name for each in connection.found} == {"get_current_time", "convert_time"}
    result = await connections.call(connection, "get_current_time", {"timezone": "Europe/Rome"})
    assert '"timezone": "Europe/Rome"' in result.text
    assert (await connections.call(connection, "get_current_time", {"timezone": "Nowhere"})).is_error


def test_the_way_of_the_readme_with_mcp_server_time(talking: Home, provider: CallingProvider) -> None:
    assert talking.run("mcp", "add", "time", "--", program("mcp-server-time")).code == 0
    assert talking.run("settings", "set", "mcp_wait", "60").code == 0
    asked = split_call("time__get_current_time", {"timezone": "Europe/Rome"})
    with talking.chat() as chat:
        for answer, text in (("a", "First"), ("", "Second")):
            provider.call(*asked)
            provider.say(f"{text}: it is noon.")
            chat.say("What time is it in Rome?")
            if answer:
                chat.await_text("The model wants to run get_current_time of the server time, which says that it only")
                chat.say(answer)
            chat.await_text(f"{text}: it is noon.")
            chat.await_line(PROMPT)
        assert '"timezone": "Europe/Rome"' in provider.asked[-1]["messages"][-1]["content"]
        chat.ask("/tools", "runs always")
        chat.await_line(PROMPT)
        chat.ask("/tools ask time.get_current_time", "Chorus asks you before it runs time.get_current_time.")
        chat.await_line(PROMPT)
        provider.call(*asked)
        provider.say("So be it.")
        chat.say("And now?")
        chat.await_text("wants to run", times=2)
        chat.say("n")
        chat.await_text("So be it.")


@pytest.fixture
async def everything(connections: Connections) -> Connection:
    everything = "@modelcontextprotocol/server-everything/dist/index.js"
    folders = [Path(each) for each in os.environ.get("NODE_PATH", "").split(os.pathsep) if each]
    found = next((folder / everything for folder in folders if (folder / everything).is_file()), None)
    if found is None or shutil.which("node") is None:
        pytest.skip("server-everything is not installed")
    return await connected(connections, Server("everything", "node", (str(found),)))


async def test_prompts_and_resources_of_server_everything(connections: Connections, everything: Connection) -> None:
    offers = await asyncio.wrap_future(connections.offers(everything))
    prompts = {each.name: each for each in offers.prompts}
    given = arguments_of(prompts["args-prompt"], "/everything:args-prompt", "New York state=NY")
    assert given == {"city": "New York", "state": "NY"}
    (said,) = await connections.prompt(everything, "args-prompt", given)
    assert (said.speaker, said.text) == ("user", "What's weather in New York, NY?")
    embedded = {"resourceType": "Text", "resourceId": "1"}
    _, resource = await connections.prompt(everything, "resource-prompt", embedded)
    assert (resource.name, resource.text[:11]) == ("demo://resource/dynamic/text/1", "Resource 1:")
    addresses = {each.uri for each in offers.resources}
    assert addresses >= {"demo://resource/static/document/features.md", "demo://resource/dynamic/blob/{resourceId}"}
    (text,) = await connections.resource(everything, "demo://resource/static/document/features.md")
    assert "Everything Server" in text.text
    (blob,) = await connections.resource(everything, "demo://resource/dynamic/blob/2")
    assert blob.data.startswith(b"Resource 2: This is a base64 blob")


async def test_server_everything(connections: Connections, everything: Connection) -> None:
    async def call(tool: str, arguments: Mapping[str, object]) -> Result:
        return await connections.call(everything, tool, arguments)

    assert (await call("echo", {"message": "gold"})).text == "Echo: gold"
    ((picture, data),) = (await call("get-tiny-image", {})).files
    assert (picture.name, picture.media_type) == ("everything.get-tiny-image.png", "image/png")
    assert data.startswith(b"\x89PNG")
    assert '"temperature"' in (await call("get-structured-content", {"location": "Chicago"})).text
    assert "demo://resource" in (await call("get-resource-links", {"count": 2})).text
    assert "completed" in (await call("trigger-long-running-operation", {"duration": 1, "steps": 2})).text
    assert (await call("echo", {})).is_error
