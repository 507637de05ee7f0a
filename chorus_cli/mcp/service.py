"""The servers that the user has configured: their tools, which the model calls, and their prompts and resources.

A tool runs only if the user allows it. Only the user requests prompts and resources, never the model.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import wait
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.attachments.service.attachments import File
from chorus_cli.core.errors import AttachmentError, CommandError, PersonaError, StorageError, ToolError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.mcp.rules import permissions
from chorus_cli.mcp.rules.offers import Offers, arguments_of
from chorus_cli.mcp.rules.permissions import grant_of, is_allowed, question, refusal
from chorus_cli.models.rules.events import Decision, PermissionAsked
from chorus_cli.tools.service import Answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from chorus_cli.machine.ports import Clock
    from chorus_cli.mcp.answers import Result
    from chorus_cli.mcp.connections import Connection, Connections
    from chorus_cli.mcp.rules.configuration import Server
    from chorus_cli.mcp.rules.declarations import Declared
    from chorus_cli.mcp.rules.offers import Part, Prompt, Resource
    from chorus_cli.mcp.rules.permissions import Grant
    from chorus_cli.models.rules.declaration import Origin, ReadCall, Tool
    from chorus_cli.tools.service import Caller

_LISTING_SECONDS = 5.0
_MOST_RESTARTS = 3
"""How many times in a run Chorus connects again to a server that was connected and has ended."""

_GONE = "{tool} is no longer configured, or is off, so nothing was done."
_CHANGED = "The server {server} has just changed the declaration of {tool}, so nothing was done."
_SIGN_IN = "{server} wants you to {wanted}: {command} {server}"
UNKNOWN = 'There is no server "{server}". /mcp lists the servers.'
_OFF = "The server {server} is switched off. /tools on {server} switches it on."
_STILL = "The server {server} is still connecting; /tools shows when it is connected."
_UNREACHED = "The server {server} is not connected: {problem}."
_REPORTED = "The tool reports an error:\n{text}"


class Configured(NamedTuple):
    """A persona's servers; a message waits for a server until ``wait_seconds`` after Chorus began to connect to it."""

    servers: tuple[Server, ...] = ()
    wait_seconds: float = 10.0

    @property
    def on(self) -> tuple[Server, ...]:
        """The servers that are on and can be used."""
        return tuple(server for server in self.servers if server.is_on and not server.problem)


class Rights(NamedTuple):
    """Whether the user can be asked, and a function that stores a lasting permission for a persona, given its slug."""

    may_ask: bool
    allow: Callable[[str, Grant], Awaitable[object]]


class ServerState(NamedTuple):
    """A server, its state in words, its tools, each tool's permission in words, and how many cannot be offered."""

    server: Server
    words: str
    tools: tuple[Tool, ...] = ()
    permissions: tuple[str, ...] = ()
    left_out: int = 0


class ServerTools:
    """The tools of servers; ``keep`` stores a file. ``connect`` has slow imports, so it is called only when needed."""

    def __init__(
        self,
        configured: Callable[[str], Configured],
        connect: Callable[[], Connections],
        rights: Rights,
        clock: Clock,
        keep: Callable[[bytes], Awaitable[object]],
    ) -> None:
        self._configured = configured
        self._connect = connect
        self._rights = rights
        self._clock = clock
        self._keep = keep
        self._connections: Connections | None = None
        self._open: list[Connection] = []
        self._on: dict[str, tuple[Server, ...]] = {}
        self._began: dict[Connection, float] = {}
        self._told: set[tuple[Connection | None, str]] = set()
        self._granted: set[Grant] = set()
        self._waiting: dict[tuple[int, str], asyncio.Future[tuple[Decision, str, Grant]]] = {}

    def connecting(self, slug: str) -> tuple[str, ...]:
        """Begin to connect to the persona's servers; return the names of those that a message should wait for."""
        configured = self._read(slug)
        return tuple(
            server.name
            for server in configured.on
            if self._may_run(server)
            and not (connection := self._opened(server)).settled.done()
            and self._left_seconds(connection, configured.wait_seconds) > 0
        )

    async def connected(self, slug: str) -> list[str]:
        """Wait for the persona's servers; return the sentences about missing ones that no earlier call returned."""
        configured = self._read(slug)
        connections = [self._opened(server) for server in configured.on if self._may_run(server)]
        await self._wait(connections, configured.wait_seconds)
        found: list[tuple[Connection | None, str]] = [(each, self._fault(each)) for each in connections]
        unusable = [each for each in configured.servers if each.problem]
        found += [(None, _UNREACHED.format(server=each.name, problem=each.problem)) for each in unusable]
        news = [each for each in found if each[1] and each not in self._told]
        self._told.update(news)
        return [sentence for _, sentence in news]

    async def listed(self, slug: str) -> list[ServerState]:
        """Wait for the persona's servers, even those without a tool that may run here, and return their states."""
        configured = self._read(slug)
        await self._wait([self._opened(server) for server in configured.on], configured.wait_seconds)
        return self.known(slug)

    async def _wait(self, connections: Sequence[Connection], most_seconds: float) -> None:
        if waiting := [each for each in connections if not each.settled.done()]:
            seconds = max(self._left_seconds(each, most_seconds) for each in waiting)
            await asyncio.wait([asyncio.wrap_future(each.settled) for each in waiting], timeout=max(0.0, seconds))

    def usable(self, slug: str, name: str) -> Server:
        """Return a server of the persona; raise a ``ToolError`` if there is none, or if it cannot be used."""
        server = self.server(slug, name)
        if server is None:
            raise ToolError(UNKNOWN.format(server=name))
        if not server.is_on:
            raise ToolError(_OFF.format(server=name))
        if server.problem:
            raise ToolError(_UNREACHED.format(server=name, problem=server.problem))
        return server

    async def reached(self, slug: str, name: str) -> Connection:
        """Wait for a server as a message does, and return its connection; raise a ``ToolError`` if there is none."""
        connection = self._opened(self.usable(slug, name))
        await self._wait([connection], self._read(slug).wait_seconds)
        if fault := self._fault(connection):
            raise ToolError(fault)
        return connection

    def names(self, slug: str) -> frozenset[str]:
        """Return the names of the persona's servers, including those that are off."""
        return frozenset(server.name for server in self._read(slug).servers)

    def ready(self, slug: str) -> list[Connection]:
        """Return the connections to those of the persona's servers that are connected now."""
        found = [self._connection(server) for server in self._read(slug).on]
        return [each for each in found if each is not None and each.settled.done() and not each.problem]

    @property
    def connections(self) -> Connections:
        """The connections to all servers."""
        if self._connections is None:
            self._connections = self._connect()
        return self._connections

    def _fault(self, connection: Connection) -> str:
        """Return a sentence that says why a server is not connected; empty if it is."""
        name = connection.server.name
        if connection.problem and connection.wanted:
            return _SIGN_IN.format(server=name, wanted=connection.wanted, command=self._login)
        if connection.problem:
            return _UNREACHED.format(server=name, problem=connection.problem)
        return "" if connection.settled.done() else _STILL.format(server=name)

    @property
    def _login(self) -> str:
        return "/mcp login" if self._rights.may_ask else "chorus mcp login"

    def _may_run(self, server: Server) -> bool:
        """Return whether any tool of a server may run here: without a question, or because the user can be asked."""
        return self._rights.may_ask or server.trust or bool(server.allow)

    def tools(self, slug: str) -> Sequence[Tool]:
        """Return the tools that may run here, ordered by server, of those servers that are on and connected."""
        found: dict[str, Tool] = {}
        for server in self._read(slug).on:
            connection = self._connection(server)
            for tool in connection.tools if connection and not connection.problem else ():
                origin = tool.origin
                if origin is None or origin.tool in server.excluded:
                    continue
                if self._rights.may_ask or is_allowed(server, origin, ()):
                    # Tools of the servers a and a__b may get the same name; only the first is offered.
                    found.setdefault(tool.name, tool)
        return [*found.values()]

    def asked(self, call: ReadCall, origin: Origin, caller: Caller) -> PermissionAsked | None:
        """Return the question whether a call may run; ``None`` if it needs no question, or nobody can be asked."""
        server = self._server(caller, origin)
        if server is None or not self._rights.may_ask or is_allowed(server, origin, self._granted):
            return None
        waiting: asyncio.Future[tuple[Decision, str, Grant]] = asyncio.get_running_loop().create_future()
        self._waiting[caller.turn_id, call.call.id] = waiting

        def answer(decision: Decision, why: str) -> None:
            if not waiting.done():
                waiting.set_result((decision, why, grant_of(server, origin)))

        known = self._declared(server, origin)
        asked = question(server, origin, call.given, says_it_only_reads=known is not None and known.says_it_only_reads)
        return PermissionAsked(
            asked,
            answer,
            lambda: not waiting.done(),
            lambda: waiting.done() and not waiting.cancelled(),
        )

    async def answer(self, call: ReadCall, origin: Origin, caller: Caller) -> Answer:
        """Wait for the user's decision if `asked` asked for it, and carry out the call if it is allowed."""
        waiting = self._waiting.pop((caller.turn_id, call.call.id), None)
        decision, why, asked = await waiting if waiting is not None else (None, "", None)
        if decision is Decision.NO:
            return Answer(refusal(why), "not allowed", was_refused=True)
        server = self._server(caller, origin)
        if server is None or (asked and asked != grant_of(server, origin)):
            raise ToolError(_GONE.format(tool=origin.label))
        grant = grant_of(server, origin)
        if decision is None and not is_allowed(server, origin, self._granted):
            outcome = f"not run, because {origin.label} needs your permission in a chat"
            return Answer(permissions.NOBODY_ASKED, outcome, was_refused=True)
        if decision is Decision.SESSION:
            self._granted.add(grant)
        if decision is Decision.ALWAYS:
            await self._rights.allow(caller.persona.slug, grant)
        connection = await self.reached(caller.persona.slug, server.name)
        known = self._declared(server, origin)
        if known is None or known.digest != origin.digest:
            raise ToolError(_CHANGED.format(server=server.name, tool=origin.tool))
        try:
            return await self._kept(await self.connections.call(connection, origin.tool, call.given))
        except ToolError as error:
            # The tool may have done something before the error, so the answer is no refusal.
            return Answer(str(error), shortened(str(error)))

    async def _kept(self, result: Result) -> Answer:
        """Keep the files of a result, and return the answer, which names the files that cannot be kept."""
        answer = Answer(_REPORTED.format(text=result.text) if result.is_error else result.text, result.outcome)
        for attachment, data in result.files:
            try:
                await self._keep(data)
                answer = answer._replace(attachments=(*answer.attachments, attachment))
            except (AttachmentError, StorageError) as error:
                lost = f"{attachment.name}: {error}"
                answer = answer._replace(text=f"{answer.text}\n\n{lost}".strip(), outcome=shortened(lost))
        return answer

    def known(self, slug: str) -> list[ServerState]:
        """Return the state of each of the persona's servers; begin to connect to those that are on."""
        return [self._state(server) for server in self._read(slug).servers]

    def _state(self, server: Server) -> ServerState:
        if not server.is_on:
            return ServerState(server, "off")
        if server.problem:
            return ServerState(server, f"failed: {server.problem}")
        connection = self._opened(server)
        if connection.problem and connection.wanted:
            return ServerState(server, f"wants you to {connection.wanted}: {self._login} {server.name}")
        if connection.problem or not connection.settled.done():
            return ServerState(server, f"failed: {connection.problem}" if connection.problem else "connecting")
        tools = connection.tools
        permissions = tuple(self._permission(server, tool.origin) for tool in tools if tool.origin)
        return ServerState(server, "connected", tools, permissions, connection.left_out)

    def _permission(self, server: Server, origin: Origin) -> str:
        if origin.tool in server.excluded:
            return "off"
        if server.trust:
            return "runs, trusted"
        grant = grant_of(server, origin)
        if server.allow.get(origin.tool) == grant.digest:
            return "runs always"
        return "runs in this session" if grant in self._granted else "asks"

    def revoke(self, server: Server, tool: str) -> None:
        """End the permission that the user gave a tool for this run."""
        self._granted -= {each for each in self._granted if (each.server, each.tool) == (server.name, tool)}

    def forget(self, server: Server) -> None:
        """End the connection to a server; if the server is on, the next message connects to it again."""
        self._end(self._of(server))

    def end_unused(self) -> None:
        """End the connections to servers that are no longer on for any persona."""
        self._on = {slug: self._load(slug).on for slug in self._on}
        used = [_place(server) for servers in self._on.values() for server in servers]
        self._end([each for each in self._open if _place(each.server) not in used])

    def _end(self, connections: Sequence[Connection]) -> None:
        self._open = [each for each in self._open if each not in connections]
        for connection in connections:
            self.connections.end(connection)

    def server(self, slug: str, name: str) -> Server | None:
        """Return a server of the persona by its name, without connecting to it."""
        return next((each for each in self._read(slug).servers if each.name == name), None)

    async def sign_in(self, server: Server, show: Callable[[str], object]) -> None:
        """Sign the user in to a server and end its connection; ``show`` gets the address of the page for the user."""
        await self.connections.sign_in(server, show)
        self.forget(server)

    async def sign_out(self, server: Server) -> bool:
        """Delete the tokens of a server and end its connection; return whether there were any tokens."""
        was_signed_in = await self.connections.sign_out(server)
        self.forget(server)
        return was_signed_in

    async def close(self) -> None:
        """End all connections."""
        if self._connections is not None:
            await self._connections.close()

    def _read(self, slug: str) -> Configured:
        """Return the persona's servers from the present settings; after a change, end unused connections."""
        configured = self._load(slug)
        if self._on.get(slug) != configured.on:
            self._on[slug] = configured.on
            self.end_unused()
        return configured

    def _load(self, slug: str) -> Configured:
        try:
            return self._configured(slug)
        except PersonaError:
            # The user's message fails and reports that the persona cannot be read.
            return Configured()

    def _server(self, caller: Caller, origin: Origin) -> Server | None:
        on = self._read(caller.persona.slug).on
        return next((each for each in on if each.name == origin.server and origin.tool not in each.excluded), None)

    def _of(self, server: Server) -> list[Connection]:
        return [each for each in self._open if _place(each.server) == _place(server)]

    def _connection(self, server: Server) -> Connection | None:
        return next(reversed(self._of(server)), None)

    def _opened(self, server: Server) -> Connection:
        """Return the connection to a server; begin one if there is none, or if a connected server has gone away."""
        known = self._of(server)
        connection = self._connection(server)
        is_away = connection is not None and connection.problem and any(each.was_connected for each in known)
        if connection is None or (is_away and len(known) <= _MOST_RESTARTS):
            connection = self.connections.open(server)
            self._open.append(connection)
            self._began[connection] = self._clock.monotonic()
        return connection

    def _declared(self, server: Server, origin: Origin) -> Declared | None:
        connection = self._connection(server)
        return next((each for each in connection.found if each.name == origin.tool), None) if connection else None

    def _left_seconds(self, connection: Connection, wait_seconds: float) -> float:
        return self._began[connection] + wait_seconds - self._clock.monotonic()


def _place(server: Server) -> tuple[object, ...]:
    """Return the name of a server and everything that says how to reach it."""
    started = (server.command, server.arguments, dict(server.environment), server.folder)
    return (server.name, *started, server.url, dict(server.headers))


class ServerTexts(NamedTuple):
    """Prompts and resources from the servers of the persona in focus; ``in_focus`` returns the persona's slug."""

    servers: ServerTools
    in_focus: Callable[[], str]

    def names(self) -> frozenset[str]:
        """Return the names of the servers, including those that are off."""
        return self.servers.names(self.in_focus())

    def known_prompts(self) -> list[tuple[str, Prompt]]:
        """Return the prompts listed so far, each with its server; begin to list those that are missing."""
        return [(each.server.name, prompt) for each in self._asked() for prompt in _so_far(each).prompts]

    def known_resources(self, server: str) -> list[Resource]:
        """Return the resources of a connected server listed so far; begin to list them if they are missing."""
        asked = [each for each in self._asked() if each.server.name == server]
        return [resource for each in asked for resource in _so_far(each).resources]

    async def listed(self, most_seconds: float) -> bool:
        """Wait for the lists of prompts and resources that are not finished; return whether there were any."""
        waiting = [each.offers for each in self._ready() if each.offers and not each.offers.done()]
        if waiting:
            await asyncio.to_thread(wait, waiting, most_seconds)
        return bool(waiting)

    async def offered(self) -> Mapping[str, Offers]:
        """List what the connected servers offer; leave out lists that take more than five seconds."""
        asked = self._asked()
        await self.listed(_LISTING_SECONDS)
        return {each.server.name: _so_far(each) for each in asked}

    async def say(self, name: str, typed: str) -> tuple[Part, ...]:
        """Return the parts of the prompt ``name`` (``server:prompt``) with the arguments that the user ``typed``."""
        server, _, word = name.partition(":")
        connection = await self.servers.reached(self.in_focus(), server)
        offers = await asyncio.wrap_future(self.servers.connections.offers(connection))
        found = next((each for each in offers.prompts if each.word.casefold() == word.casefold()), None)
        if found is None:
            raise CommandError(f'The server {server} has no prompt "{word}". /tools lists the prompts.')
        return await self.servers.connections.prompt(connection, found.name, arguments_of(found, f"/{name}", typed))

    async def read(self, server: str, uri: str) -> list[File]:
        """Read a resource, which may have several texts and files; raise an ``AttachmentError`` if that fails."""
        try:
            connection = await self.servers.reached(self.in_focus(), server)
            parts = await self.servers.connections.resource(connection, uri)
        except ToolError as error:
            raise AttachmentError(f"{error} Nothing was sent.") from error
        if not parts:
            raise AttachmentError(f"The server {server} has nothing at {uri}. Nothing was sent.")
        return [File(f"{server}:{each.name}", each.data or each.text.encode(), server) for each in parts]

    def _ready(self) -> list[Connection]:
        return self.servers.ready(self.in_focus())

    def _asked(self) -> list[Connection]:
        """Begin to list what the connected servers offer, and return the servers' connections."""
        ready = self._ready()
        for each in ready:
            self.servers.connections.offers(each)
        return ready


def _so_far(connection: Connection) -> Offers:
    """Return the offers listed so far; no offers if the server has not answered yet or has failed."""
    listed = connection.offers
    if listed is None or not listed.done() or listed.cancelled() or listed.exception():
        return Offers()
    return listed.result()
