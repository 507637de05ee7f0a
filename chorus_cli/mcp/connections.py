"""Connections to servers, made with the protocol's library.

They run in a thread with its own event loop. Otherwise the import of the library, which takes a second, or a server
that writes without end would block the keyboard.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from chorus_cli import __version__
from chorus_cli.core import limits
from chorus_cli.core.errors import CommandError, JobError, ToolError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.text.redaction import redact
from chorus_cli.machine.child import Child, Program, start
from chorus_cli.machine.installation import install_command
from chorus_cli.mcp import answers
from chorus_cli.mcp.files import Tokens
from chorus_cli.mcp.rules.declarations import Declared, tools_of, within_limit
from chorus_cli.mcp.rules.offers import Offers, Part

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from chorus_cli.mcp.rules.configuration import Server
    from chorus_cli.models.rules.declaration import Tool
    from mcp import Client

_Value = TypeVar("_Value")
_Streams = tuple[Any, Any]

_CLOSING_SECONDS = 5.0
_LONGEST_REASON = 200
_MOST_TIMES = 10
"""The longest time for an answer while the server reports progress, as a multiple of ``call_seconds``."""
_ENDED, _SWITCHED_OFF = "it has ended", "it is switched off"
_TOOLS_CHANGED = "ToolListChangedNotification"
_OFFERS_CHANGED = frozenset({"PromptListChangedNotification", "ResourceListChangedNotification"})
_UNAUTHORIZED, _CHALLENGE = 401, "www-authenticate"
_SESSION_GONE = frozenset({400, 404})
"""The HTTP statuses with which a restarted server refuses a former session of MCP; the protocol demands 404."""
_LOGGERS = ("mcp", "client")
"""The names of the library's loggers."""


class Patience(NamedTuple):
    """How long a server may take to connect and to answer a call, and how long a user may take to sign in."""

    connect_seconds: float = 60.0
    call_seconds: float = 600.0
    sign_in_seconds: float = 300.0


class Connection:
    """A connection to a server; other threads may read its attributes.

    ``settled`` is done once the server is connected or has failed. ``problem`` says in a clause why the connection
    failed or ended, and is empty until then. ``found`` are the server's declarations, ``tools`` the tools made from
    them for the model; ``left_out`` counts tools that cannot be offered.
    ``refusal`` is the HTTP status of the newest answer if that was an error, else 0. ``offers`` is ``None`` until
    Chorus requests them, and again once the server has changed them. ``wanted`` says what the user must do if the
    server demands a sign-in: ``sign in`` or ``sign in again``. ``has_changed`` is true if the server has changed its
    tools since Chorus last requested the list; the task ``renewing`` requests it again. ``over`` is set at the end.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.settled: Future[None] = Future()
        self.found: tuple[Declared, ...] = ()
        self.tools: tuple[Tool, ...] = ()
        self.left_out = 0
        self.problem = ""
        self.refusal = 0
        self.offers: Future[Offers] | None = None
        self.wanted = ""
        self.was_connected = False
        self.has_changed = False
        self.renewing: asyncio.Task[None] | None = None
        self.over = asyncio.Event()
        self.client: Client | None = None

    def begin(self, client: Client) -> None:
        """Take the connected client."""
        self.client, self.was_connected = client, True
        self.settle()

    def take(self, found: Sequence[Declared | None]) -> None:
        """Take the server's declarations; ``None`` replaces a tool that cannot be offered."""
        self.found = within_limit([each for each in found if each is not None])
        self.tools = tools_of(self.server.name, self.found)
        self.left_out = len(found) - len(self.found)

    def settle(self) -> None:
        """Wake the tasks that wait for the connection to be made or to fail."""
        if not self.settled.done():
            self.settled.set_result(None)

    def end(self, problem: str) -> None:
        """End the connection; the ``problem`` of the first call is kept."""
        self.problem = self.problem or problem
        self.over.set()


class Connections:
    """Connects to servers and calls their tools; ``note`` gets each line that a connecting server writes to stderr.

    ``tokens`` keeps the tokens from sign-ins, by default until the end of the run.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        note: Callable[[str], None],
        patience: Patience | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        self._environment = environment
        self._note = note
        self._patience = patience or Patience()
        self._tokens = tokens or Tokens()
        self._loop = asyncio.new_event_loop()
        self._holding: dict[Connection, asyncio.Task[None]] = {}
        self._lock = threading.Lock()
        self._is_running = self._is_over = False
        self._thread = threading.Thread(target=self._run, name="servers", daemon=True)
        self._thread.start()

    def open(self, server: Server) -> Connection:
        """Begin to connect to a server."""
        connection = Connection(server)
        self._loop.call_soon_threadsafe(self._begin, connection)
        return connection

    def end(self, connection: Connection) -> None:
        """End a connection; the process of the server ends with it."""
        self._loop.call_soon_threadsafe(connection.end, _SWITCHED_OFF)

    async def call(self, connection: Connection, tool: str, arguments: Mapping[str, object]) -> answers.Result:
        """Call a tool; a cancellation is passed to the server. Raise a ``ToolError`` if there is no answer.

        The time limit starts again whenever the server reports progress; a call takes at most ten times the limit.
        """
        latest = self._loop.time() + _MOST_TIMES * self._patience.call_seconds

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            _ = progress, total, message
            limit.reschedule(min(latest, self._loop.time() + self._patience.call_seconds))

        async def called(client: Client) -> answers.Result:
            answer = await client.call_tool(tool, dict(arguments), progress_callback=progressed)
            return answers.result(answer, connection.server.name, tool)

        limit = asyncio.Timeout(self._loop.time() + self._patience.call_seconds)
        return await self._within(self._asked(connection, called, limit))

    def offers(self, connection: Connection) -> Future[Offers]:
        """Return a server's offers, requested now unless known or on the way; the future may raise a ``ToolError``."""
        listed = connection.offers
        if listed is None or (listed.done() and (listed.cancelled() or listed.exception() is not None)):
            listed = asyncio.run_coroutine_threadsafe(self._asked(connection, answers.offers), self._loop)
            connection.offers = listed
        return listed

    async def prompt(self, connection: Connection, name: str, arguments: Mapping[str, str]) -> tuple[Part, ...]:
        """Return what a prompt says with these arguments. Raise a ``ToolError`` if there is no answer."""

        async def got(client: Client) -> tuple[Part, ...]:
            return answers.prompted(await client.get_prompt(name, dict(arguments)))

        return await self._within(self._asked(connection, got))

    async def resource(self, connection: Connection, uri: str) -> tuple[Part, ...]:
        """Read a resource. Raise a ``ToolError`` if there is no answer."""

        async def read(client: Client) -> tuple[Part, ...]:
            return answers.contents(await client.read_resource(uri))

        return await self._within(self._asked(connection, read))

    async def sign_in(self, server: Server, show: Callable[[str], object]) -> None:
        """Sign the user in; ``show`` gets the page's address. A failure raises a ``CommandError``; old tokens stay."""
        loop = asyncio.get_running_loop()
        await self._within(self._signed_in(server, lambda page: loop.call_soon_threadsafe(show, page)))

    async def sign_out(self, server: Server) -> bool:
        """Delete the tokens of a server; return whether there were any."""
        return await asyncio.to_thread(self._tokens.forget, server.url)

    async def close(self) -> None:
        """End all connections; a second call does nothing."""
        with self._lock:
            was_over, self._is_over = self._is_over, True
        # A thread that still imports the library has started nothing, and will not start anything now.
        if was_over or not self._is_running:
            return
        with suppress(TimeoutError):
            # A server that never rests may keep the loop busy.
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._within(self._end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, _CLOSING_SECONDS)

    async def _within(self, work: Coroutine[None, None, _Value]) -> _Value:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        # If the import fails, the first connection says so.
        with suppress(Exception):
            import_module("mcp")
        for name in _LOGGERS:
            # The library would log to the screen, and its messages about a sign-in may contain tokens.
            logging.getLogger(name).addHandler(logging.NullHandler())
            logging.getLogger(name).propagate = False
        with self._lock:
            self._is_running = not self._is_over
        # When the block ends, the runner cancels the remaining tasks and awaits them.
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            loop = runner.get_loop()
            if self._is_running:
                loop.run_forever()

    def _begin(self, connection: Connection) -> None:
        self._holding[connection] = asyncio.create_task(self._hold(connection))

    async def _end_all(self) -> None:
        for connection in self._holding:
            connection.end(_SWITCHED_OFF)
        if self._holding:
            await asyncio.wait(self._holding.values())

    async def _hold(self, connection: Connection) -> None:
        """Connect to a server, and stay connected until either side ends the connection."""
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._patience.connect_seconds):
                    client = await self._connected(connection, stack)
                    await _list(connection, client)
                connection.begin(client)
                self._renew_if_changed(connection)
                await connection.over.wait()
        except Exception as error:  # noqa: BLE001 - a server that fails in any way must not end the talk
            connection.end(_reason(error, connection, self._tokens))
        finally:
            connection.client = None
            connection.end(_ENDED)
            connection.settle()

    def _noted(self, connection: Connection, line: str) -> None:
        # Once connected, a server may quote arguments of calls, and a purge does not search the log file.
        if not connection.was_connected:
            self._note(f"{connection.server.name}: {redact(line, connection.server.secrets)}")

    async def _connected(self, connection: Connection, stack: AsyncExitStack) -> Client:
        try:
            from mcp_types import Implementation

            from mcp import Client
        except ImportError as error:
            raise JobError(_no_library()) from error
        server = connection.server
        if server.url:
            transport = await _http(connection, self._tokens, stack)
        else:
            program = Program(server.command, server.arguments, server.environment, server.folder)
            child = await start(program, self._environment, partial(self._noted, connection))
            stack.push_async_callback(child.close)
            transport = _stdio(child, connection)

        async def heard(message: object) -> None:
            kind = type(message).__name__
            if kind in _OFFERS_CHANGED:
                connection.offers = None
            connection.has_changed |= kind == _TOOLS_CHANGED
            # The library reads no answer until this handler returns, so the handler must not wait for one.
            self._renew_if_changed(connection)

        known = Implementation(name="chorus", version=__version__)
        return await stack.enter_async_context(
            Client(answers.sifted(transport), client_info=known, message_handler=heard)
        )

    def _renew_if_changed(self, connection: Connection) -> None:
        """Begin to list the tools again if they have changed, once the server is connected."""
        is_renewing = connection.renewing is not None and not connection.renewing.done()
        if connection.has_changed and not is_renewing and connection.client is not None:
            connection.renewing = asyncio.create_task(self._renew(connection, connection.client))

    async def _renew(self, connection: Connection, client: Client) -> None:
        """List the tools again until they do not change meanwhile; if that fails, keep the former list."""
        with suppress(Exception):
            async with asyncio.timeout(self._patience.call_seconds):
                while connection.has_changed:
                    connection.has_changed = False
                    await _list(connection, client)

    async def _signed_in(self, server: Server, show: Callable[[str], object]) -> None:
        try:
            from chorus_cli.mcp.oauth import SignIn
        except ImportError as error:
            raise CommandError(f"You are not signed in to {server.name}: {_no_library()}") from error
        signing, seconds = SignIn(server.url), self._patience.sign_in_seconds
        try:
            async with asyncio.timeout(seconds):
                entry = await signing.begin(server.headers, show)
        except TimeoutError as error:
            raise CommandError(f"You have not signed in to {server.name} within {seconds / 60:g} minutes.") from error
        except Exception as error:
            raise CommandError(f"You are not signed in to {server.name}: {signing.clause(error)}.") from error
        await asyncio.to_thread(self._tokens.keep, server.url, entry)

    async def _asked(
        self, connection: Connection, ask: Callable[[Client], Awaitable[_Value]], limit: asyncio.Timeout | None = None
    ) -> _Value:
        client, server = connection.client, connection.server
        if client is None:
            raise ToolError(f"The server {server.name} cannot be reached: {connection.problem}.")
        try:
            async with limit or asyncio.timeout(self._patience.call_seconds):
                return await ask(client)
        except Exception as error:
            problem = connection.problem or _reason(error, connection, self._tokens)
            if connection.wanted or (connection.refusal in _SESSION_GONE and "session" in str(error).casefold()):
                connection.end(problem)
            raise ToolError(f"The server {server.name} gave no result: {problem}.") from error


def _no_library() -> str:
    return f"the library for it is missing; install it with: {install_command('chorus-cli[mcp]')}"


@asynccontextmanager
async def _stdio(child: Child, connection: Connection) -> AsyncIterator[_Streams]:
    """Yield the streams of messages from and to a program; skip lines of its output that are not messages."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    arriving, arrived = anyio.create_memory_object_stream[Any](0)
    sending, sent = anyio.create_memory_object_stream[Any](0)

    async def receive() -> None:
        async with arriving:
            try:
                while line := await child.line():
                    with suppress(ValueError):
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                        await arriving.send(SessionMessage(message))
            except ValueError:
                connection.end(f"it sent a message of more than {limits.SERVER_LINE.size}")
        connection.end(_ENDED)

    async def send() -> None:
        with suppress(OSError):
            async for each in sent:
                line = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await child.send(line.encode() + b"\n")

    with arriving, arrived, sending, sent:
        async with anyio.create_task_group() as group:
            group.start_soon(receive)
            group.start_soon(send)
            try:
                yield arrived, sending
            finally:
                group.cancel_scope.cancel()


async def _http(connection: Connection, tokens: Tokens, stack: AsyncExitStack) -> Any:  # noqa: ANN401 - a type of the library
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from chorus_cli.mcp import oauth

    server = connection.server
    is_known = not server.has_own_token and bool(tokens.of(server.url))

    async def answered(response: httpx2.Response) -> None:
        # The library also sends a GET for a stream of events; servers without such a stream refuse the GET.
        if response.request.method == "POST" and not oauth.is_of_sign_in(response):
            connection.refusal = response.status_code if response.is_error else 0
            # Without a challenge, the server may have refused a key in another header of the settings.
            asks = not server.has_own_token and (_CHALLENGE in response.headers or not server.headers)
            wants = response.status_code == _UNAUTHORIZED and asks
            connection.wanted = ("sign in again" if is_known else "sign in") if wants else ""

    client = httpx2.AsyncClient(
        auth=oauth.SignedIn(server.url, tokens) if is_known else None,
        headers={**oauth.UNPACKED, **server.headers},
        timeout=httpx2.Timeout(30.0, read=None),
        event_hooks={"response": [oauth.bounded, answered]},
    )
    http = await stack.enter_async_context(client)
    # The library follows no redirect to another host, so only this host gets the headers.
    return streamable_http_client(server.url, http_client=http, max_sse_event_size=limits.SERVER_LINE.most)


async def _list(connection: Connection, client: Client) -> None:
    """Request the declarations of a server's tools."""
    if client.server_capabilities.tools is not None:
        connection.take([answers.declared_tool(tool) for tool in await answers.pages(client.list_tools, "tools")])


def _reason(error: BaseException, connection: Connection, tokens: Tokens) -> str:
    """Say in a clause why a server failed, without the secrets that it was given."""
    server = connection.server
    if connection.wanted:
        return f"it wants you to {connection.wanted}"
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    told = redact(answers.words_of(error), (*server.secrets, *tokens.secrets(server.url)))
    words = shortened(told, _LONGEST_REASON).rstrip(".") or type(error).__name__
    return f"{words} (HTTP {connection.refusal})" if connection.refusal else words
