"""Servers that a test scripts: what they declare, when they connect, and what they answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from chorus_cli.core.errors import ToolError
from chorus_cli.mcp.answers import Result
from chorus_cli.mcp.connections import Connection, Connections
from chorus_cli.mcp.rules.configuration import Server, servers
from chorus_cli.mcp.rules.declarations import Declared
from chorus_cli.mcp.rules.offers import Offers, Part, Prompt, Resource
from chorus_cli.mcp.rules.permissions import grant_of
from chorus_cli.models.rules.declaration import Origin

CLOCK = Declared("now", "Tell the time.", json.dumps({"type": "object", "properties": {"zone": {"type": "string"}}}))


def allowance(name: str, command: str, tool: Declared = CLOCK) -> str:
    """Return what the settings have of a tool that the user allowed for always."""
    (server,) = servers({"mcpServers": {name: {"command": command}}}, {})
    return grant_of(server, Origin(name, tool.name, tool.digest, tool.schema)).digest


NOON = Result("It is noon.", "1 line")


@dataclass
class ScriptedServers(Connections):
    """Connections that never leave the process.

    ``declared`` has the tools of each server, ``None`` for a server that never connects. A server that is not in it
    fails, and asks the user for what ``wanting`` has. ``called`` has the calls that arrived; with a ``failure``, none
    of them has a result. ``said`` has the parts of
    each prompt by its name, and ``read`` those of each resource by its address.
    """

    declared: dict[str, list[Declared] | None] = field(default_factory=lambda: {"time": [CLOCK]})
    result: Result = NOON
    failure: str = ""
    called: list[tuple[str, str, Mapping[str, object]]] = field(default_factory=list)
    opened: list[Connection] = field(default_factory=list)
    is_closed: bool = False
    offered: tuple[Prompt, ...] = ()
    said: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    read: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    signed_in: list[str] = field(default_factory=list)
    wanting: dict[str, str] = field(default_factory=dict)

    def open(self, server: Server) -> Connection:
        connection = Connection(server)
        connection.wanted = self.wanting.get(server.name, "")
        self.opened.append(connection)
        found = self.declared.get(server.name, [])
        if found is not None:
            connection.take(found)
            connection.was_connected = bool(found)
            connection.problem = "" if found else "it has ended"
            connection.settle()
        return connection

    def end(self, connection: Connection) -> None:
        connection.problem = "it has ended"

    async def call(self, connection: Connection, tool: str, arguments: Mapping[str, object]) -> Result:
        if connection.problem:
            raise ToolError(f"The server {connection.server.name} cannot be reached: {connection.problem}.")
        self.called.append((connection.server.name, tool, arguments))
        await asyncio.sleep(0)
        if self.failure:
            raise ToolError(self.failure)
        return self.result

    def offers(self, connection: Connection) -> Future[Offers]:
        connection.offers = Future()
        connection.offers.set_result(Offers(self.offered, tuple(map(Resource, self.read))))
        return connection.offers

    async def prompt(self, connection: Connection, name: str, arguments: Mapping[str, str]) -> tuple[Part, ...]:
        self.called.append((connection.server.name, name, arguments))
        return self.said[name]

    async def resource(self, connection: Connection, uri: str) -> tuple[Part, ...]:
        if uri not in self.read:
            raise ToolError(f"The server {connection.server.name} gave no result: nothing is there.")
        self.called.append((connection.server.name, uri, {}))
        return self.read[uri]

    async def sign_in(self, server: Server, show: Callable[[str], object]) -> None:
        show(f"{server.url}/authorize")
        self.signed_in.append(server.url)

    async def sign_out(self, server: Server) -> bool:
        was_signed_in = server.url in self.signed_in
        self.signed_in = [url for url in self.signed_in if url != server.url]
        return was_signed_in

    async def close(self) -> None:
        self.is_closed = True
