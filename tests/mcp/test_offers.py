"""What servers offer to the user, asked of real processes: only of those that have it, and only once it is wanted."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chorus_cli.core.errors import ToolError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.mcp.connections import Connection, Connections, Patience
from chorus_cli.mcp.rules.configuration import Server
from chorus_cli.mcp.rules.offers import Argument, Offers, Part, Prompt, Resource

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the library mcp is not installed")

SMALL = Path(__file__).with_name("small_server.py")

FILE = Argument("file", is_required=True)

OF_THE_LIBRARY = """
from mcp.server import MCPServer
server = MCPServer("small")

@server.prompt()
def review(file: str) -> str:
    "Review a file."
    return f"Review {file}."

@server.resource("note://{number}", description="A note.")
def note(number: str) -> str:
    return f"Note {number}." if number != "0" else ""

server.run()
"""


@pytest.fixture
def methods(tmp_path: Path) -> Path:
    return tmp_path / "methods"


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    opened = Connections(dict(os.environ), lambda _line: None, Patience(60, 5))
    yield opened
    await opened.close()


def asked(methods: Path) -> str:
    return methods.read_text(encoding="utf-8")


async def connected(connections: Connections, *arguments: str, methods: Path | None = None) -> Connection:
    variables = {"METHODS": str(methods)} if methods else {}
    connection = connections.open(Server("small", sys.executable, arguments, variables))
    await asyncio.wrap_future(connection.settled)
    assert connection.problem == ""
    return connection


async def test_nothing_is_listed_before_it_is_wanted_and_then_once(connections: Connections, methods: Path) -> None:
    connection = await connected(connections, str(SMALL), "offers", methods=methods)
    assert "prompts/" not in asked(methods)
    assert "resources/" not in asked(methods)
    for _ in range(2):
        offers = await asyncio.wrap_future(connections.offers(connection))
        assert offers.prompts == (
            Prompt("review", "Review a \x1b[2Jfile.", (FILE, Argument("style", "How to say it."))),
            Prompt("greet", "Say hello."),
        )
        assert offers.resources == (
            Resource("note://1", "About \x1b]0;owned\x07gold."),
            Resource("note://{number}", shortened(f"Any {'long ' * 1000}")),
        )
    assert [method for method in asked(methods).split() if method.endswith("/list")] == [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ]


async def test_a_server_without_them_is_not_asked(connections: Connections) -> None:
    connection = await connected(connections, str(SMALL), "")
    assert await asyncio.wrap_future(connections.offers(connection)) == Offers()


async def test_a_server_that_changes_its_prompts_is_asked_again(connections: Connections, methods: Path) -> None:
    connection = await connected(connections, str(SMALL), "offers", methods=methods)
    before = connections.offers(connection)
    await asyncio.wrap_future(before)
    assert connections.offers(connection) is before
    await connections.prompt(connection, "greet", {})
    for _ in range(500):
        await asyncio.sleep(0.01 if connections.offers(connection) is before else 0)
    await asyncio.wrap_future(connections.offers(connection))
    assert asked(methods).count("prompts/list\n") == 2


async def test_prompts_that_could_not_be_listed_are_asked_for_again_and_wait_for_no_resource(
    connections: Connections,
) -> None:
    connection = await connected(connections, str(SMALL), "shaky")
    with pytest.raises(ToolError, match="no such method"):
        await asyncio.wrap_future(connections.offers(connection))
    offers = await asyncio.wrap_future(connections.offers(connection))
    assert (len(offers.prompts), offers.resources) == (2, ())


async def test_prompts_and_resources_are_read(connections: Connections) -> None:
    connection = await connected(connections, str(SMALL), "offers")
    (said,) = await connections.prompt(connection, "review", {"file": "a"})
    assert said == Part('Review {"file": "a"}.\x1b[2J', speaker="user")
    *texts, picture = await connections.prompt(connection, "greet", {})
    assert [(each.speaker, each.text) for each in texts] == [("user", "Say hello."), ("assistant", "Hello.")]
    assert (picture.data[:4], picture.file_name) == (b"\x89PNG", "image.png")
    assert await connections.resource(connection, "note://7") == (Part("Gold is heavy.", name="note://7"),)
    with pytest.raises(ToolError, match="The server small gave no result: no such method"):
        await connections.resource(connection, "nowhere://1")
    with pytest.raises(ToolError, match="gave no result: its answer has 2,000 parts, and Chorus takes 1,000"):
        await connections.resource(connection, "note://many")


async def test_a_server_of_the_library_itself_in_the_new_age(connections: Connections) -> None:
    connection = await connected(connections, "-c", OF_THE_LIBRARY)
    offers = await asyncio.wrap_future(connections.offers(connection))
    (prompt,), (note,) = offers.prompts, offers.resources
    assert (prompt.name, prompt.arguments[0].is_required, note.uri) == ("review", True, "note://{number}")
    assert (await connections.prompt(connection, "review", {"file": "a.py"}))[0].text == "Review a.py."
    assert await connections.resource(connection, "note://3") == (Part("Note 3.", name="note://3"),)
    (empty,) = await connections.resource(connection, "note://0")
    assert (empty.is_file, empty.told) == (False, "")
