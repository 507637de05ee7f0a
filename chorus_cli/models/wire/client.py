"""The model client that asks providers directly, and the connections that it keeps open."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from chorus_cli.core.errors import ModelError
from chorus_cli.core.text.redaction import redact, secrets_in
from chorus_cli.machine.clock import Patience, Pauses
from chorus_cli.models.providers import providers
from chorus_cli.models.providers.chat_messages import not_stored
from chorus_cli.models.providers.echoes import echo_rule
from chorus_cli.models.providers.failures import Asked, FailedError, Failure, Trouble, model_error, silence_error
from chorus_cli.models.providers.parameters import NEWER_NAMES, refused_parameter
from chorus_cli.models.providers.servers import is_ollama, is_on_this_machine, ollama_endpoint, request_problem
from chorus_cli.models.rules.events import ModelEvent, Notice, ReplyEnd
from chorus_cli.models.rules.request import NO_ECHO, USUAL_TIMEOUTS, Timeouts, with_files_after_results
from chorus_cli.models.wire.anthropic import AnthropicMessages
from chorus_cli.models.wire.chat_completions import ChatCompletions
from chorus_cli.models.wire.gemini import GeminiContents
from chorus_cli.models.wire.protocol import Post, ReplyReader, WireProtocol
from chorus_cli.models.wire.responses import OpenAIResponses, has_no_responses

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence

    from chorus_cli.models.providers.chat_messages import Load
    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.rules.request import Echo, ModelRequest
    from chorus_cli.models.wire.http_client import EventStream, HttpClient

_Answer = TypeVar("_Answer")

_CLOSING_SECONDS = 0.2
_WITH_FILES_IN_RESULTS = frozenset({"mistral"})
"""The providers that take files in the result of a call, and refuse a message of the user after it."""


class WireClient:
    """A ``ModelClient`` for models whose providers are asked directly; with ``CHORUS_WIRE=off`` it reaches no model."""

    def __init__(
        self,
        environment: Mapping[str, str],
        model_map: ModelMap,
        *,
        timeouts: Timeouts = USUAL_TIMEOUTS,
        connection: Connection | None = None,
        load: Load = not_stored,
    ) -> None:
        self._environment = environment
        self._protocols: Mapping[providers.ProtocolName, WireProtocol] = {
            providers.ProtocolName.CHAT_COMPLETIONS: ChatCompletions(model_map, load),
            providers.ProtocolName.RESPONSES: OpenAIResponses(model_map, load),
            providers.ProtocolName.ANTHROPIC: AnthropicMessages(model_map, load),
            providers.ProtocolName.GEMINI: GeminiContents(model_map, load),
        }
        self._model_map = model_map
        self._connection = connection or Connection()
        self._timeouts = timeouts
        self._pauses = Pauses()
        self._refused: dict[tuple[str, str], frozenset[str]] = {}
        self._without_responses: set[str] = set()

    def reaches(self, model: str) -> bool:
        """Return whether this client can ask ``model``."""
        is_off = self._environment.get("CHORUS_WIRE", "").strip().lower() == "off"
        return not is_off and self._reached(model) is not None

    def echo(self, model: str) -> Echo:
        """Return which thoughts of ``model`` later requests send back to it."""
        endpoint = self._endpoint(model)
        return NO_ECHO if endpoint is None else echo_rule(endpoint).echo

    def prefills(self, request: ModelRequest) -> bool:
        """Return whether the model continues a reply by itself if the reply is the last message of a request."""
        endpoint = self._endpoint(request.model)
        if endpoint is None or endpoint.protocol is not providers.ProtocolName.ANTHROPIC:
            return False
        # A model that thinks does not continue a reply.
        is_thinking = request.effort not in {None, "none"}
        return not is_thinking and bool(self._model_map.supports(request.model, "assistant_prefill"))

    async def stream(self, request: ModelRequest, endpoint: Endpoint | None = None) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply, ``ReplyEnd`` last, or raise a ``ModelError``; the default ``endpoint`` is the provider's."""
        if problem := request_problem(request.model, self._environment):
            raise ModelError(redact(problem, secrets_in(self._environment)))
        endpoint = endpoint or self._endpoint(request.model)
        if endpoint is None:
            raise model_error(Failure(Trouble.UNKNOWN_MODEL), Asked(request.model))
        try:
            async with aclosing(self._replied(request, endpoint)) as events:
                async for event in events:
                    yield event
        except FailedError as error:
            # The original error may hold a key, and a log file would show the original error as the cause.
            raise model_error(error.failure, Asked(request.model, endpoint.address, self._environment)) from None

    def warm(self, model: str) -> None:
        """Import the modules for the first request to ``model``, and build an HTTP client; any thread may call this."""
        endpoint = self._reached(model)
        if endpoint is not None:
            # The first request will fail in the same way and tell the user.
            with suppress(FailedError):
                self._connection.warm(endpoint.address)

    async def preconnect(self, model: str) -> None:
        """Open a connection to the server of ``model``, unless the server is on this machine or the key is missing."""
        endpoint = self._reached(model)
        if endpoint and not is_on_this_machine(endpoint.address) and not providers.lacks_key(endpoint):
            with suppress(FailedError):
                await self._connection.preconnect(endpoint.address)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connection.aclose()

    async def _replied(self, request: ModelRequest, endpoint: Endpoint) -> AsyncGenerator[ModelEvent, None]:
        begun = False
        patience = Patience(self._timeouts.first_token_seconds)
        known = endpoint._replace(refused=self._refused.get((endpoint.address, request.model), frozenset()))
        stream, accepted = await self._in_time(self._sent(request, known), request.model, patience, begun=begun)
        reply = _received(self._protocols[accepted.protocol].reader(), stream)
        try:
            for notice in _notices(request.model, known, accepted):
                yield notice
            while (events := await self._in_time(anext(reply, None), request.model, patience, begun=begun)) is not None:
                for event in events:
                    begun = True
                    yield event
                patience = Patience(self._timeouts.gap_seconds) if begun else patience
                await self._pauses.after_chunk()
        except FailedError as error:
            raise FailedError(replace(error.failure, trouble=Trouble.BROKE_OFF) if begun else error.failure) from None
        finally:
            try:
                await _quietly(reply.aclose())
            finally:
                # The stream is closed even if a second cancellation stops the line above.
                await _quietly(stream.aclose())

    async def _sent(self, request: ModelRequest, endpoint: Endpoint) -> tuple[EventStream, Endpoint]:
        """Send the request, and again without refused parameters; return the stream and the endpoint that worked."""
        if providers.lacks_key(endpoint):
            raise FailedError(Failure(Trouble.NO_KEY))
        if endpoint.provider not in _WITH_FILES_IN_RESULTS:
            request = with_files_after_results(request)
        while True:
            write = self._protocols[endpoint.protocol].post
            # Attachments take long to read and to encode, so a thread writes a request that has any.
            is_long = any(message.attachments for message in request.messages)
            post = await asyncio.to_thread(write, request, endpoint) if is_long else write(request, endpoint)
            try:
                stream = await self._connection.send(post, endpoint)
            except FailedError as error:
                is_at_openai = endpoint.address == providers.PROVIDERS[endpoint.provider].address
                is_by_responses = endpoint.protocol is providers.ProtocolName.RESPONSES
                if is_by_responses and not is_at_openai and has_no_responses(error.failure):
                    self._without_responses.add(endpoint.address)
                    endpoint = endpoint._replace(protocol=providers.ProtocolName.CHAT_COMPLETIONS)
                    continue
                refused = refused_parameter(error.failure, post.optional)
                if refused is None or post.optional[refused] in endpoint.refused:
                    raise
                endpoint = endpoint._replace(refused=endpoint.refused | {post.optional[refused]})
            else:
                self._refused[endpoint.address, request.model] = endpoint.refused
                return stream, endpoint

    async def _in_time(self, awaitable: Awaitable[_Answer], model: str, patience: Patience, *, begun: bool) -> _Answer:
        try:
            return await patience.wait_for(awaitable)
        except TimeoutError:
            raise silence_error(model, patience.seconds, begun=begun) from None

    def _endpoint(self, model: str) -> Endpoint | None:
        """Return the endpoint of a model, with chat completions if the server turned out to have no /responses."""
        endpoint = self._reached(self._model_map.meant(model), self._model_map.thinks)
        if endpoint is not None and endpoint.address in self._without_responses:
            return endpoint._replace(protocol=providers.PROVIDERS[endpoint.provider].protocol)
        return endpoint

    def _reached(self, model: str, thinks: Callable[[str], bool | None] = lambda _model: None) -> Endpoint | None:
        if is_ollama(model):
            return ollama_endpoint(model, self._environment)
        return providers.endpoint(model, self._environment, thinks)


async def _received(reader: ReplyReader, stream: EventStream) -> AsyncGenerator[Sequence[ModelEvent], None]:
    async with aclosing(stream.data()) as pieces:
        async for data in pieces:
            events = tuple(reader.events(data))
            if events and isinstance(events[-1], ReplyEnd):
                with suppress(Exception):
                    async with asyncio.timeout(_CLOSING_SECONDS):
                        # A connection whose response was read to its end can be used again.
                        async for _ in pieces:
                            pass
                yield events
                return
            yield events
    yield tuple(reader.end())


def _notices(model: str, asked: Endpoint, accepted: Endpoint) -> Iterator[Notice]:
    if accepted.protocol is not asked.protocol:
        yield Notice(f"{accepted.address} has no /responses, so Chorus asks {model} by chat completions.")
    for what in sorted(accepted.refused - asked.refused - NEWER_NAMES.keys()):
        yield Notice(f"Chorus leaves out {what}, which {model} does not accept.")


async def _quietly(closing: Awaitable[None]) -> None:
    with suppress(Exception):
        async with asyncio.timeout(_CLOSING_SECONDS):
            await closing


_FRESH_SECONDS = 40.0
_COMMAND_LINE = "httpx._main"
# httpx connects by anyio, whose import of these modules would delay the first connection by a tenth of a second.
_FIRST_REQUEST_MODULES = ("sniffio", "anyio.streams.tls", "anyio._backends._asyncio")


class Connection:
    """Keeps connections open for the next requests; with ``is_direct`` it uses no proxy."""

    def __init__(self, *, is_direct: bool = False) -> None:
        self._is_direct = is_direct
        self._clients: dict[str, HttpClient] = {}
        self._used_at: dict[str, float] = {}
        self._building = threading.Lock()

    def warm(self, address: str) -> HttpClient:
        """Return the client for ``address``. The first call imports httpx, which is slow, so call it from a thread."""
        scheme = urlsplit(address).scheme
        with self._building:
            if scheme not in self._clients:
                self._clients[scheme] = _built(is_secured=scheme == "https", is_direct=self._is_direct)
            return self._clients[scheme]

    async def send(self, post: Post, endpoint: Endpoint) -> EventStream:
        """Send a request and return the reply's stream, which the caller closes, or raise a ``FailedError``."""
        client = await self._client(endpoint.address)
        self._used_at[_origin(endpoint.address)] = asyncio.get_running_loop().time()
        return await client.post(_joined(endpoint.address, post.path), post)

    async def preconnect(self, address: str) -> None:
        """Open a connection to ``address`` unless one was used in the last 40 s; network errors are ignored."""
        origin = _origin(address)
        now = asyncio.get_running_loop().time()
        if now - self._used_at.get(origin, -_FRESH_SECONDS) >= _FRESH_SECONDS:
            self._used_at[origin] = now
            client = await self._client(address)
            await client.connect(origin)

    async def aclose(self) -> None:
        """Close all connections."""
        clients, self._clients = [*self._clients.values()], {}
        for client in clients:
            await client.aclose()

    async def _client(self, address: str) -> HttpClient:
        client = self._clients.get(urlsplit(address).scheme)
        return await asyncio.to_thread(self.warm, address) if client is None else client


def _built(*, is_secured: bool, is_direct: bool) -> HttpClient:
    """Import httpx and return a client; leave out httpx's command line, because it would import rich and pygments."""
    if "httpx" not in sys.modules:
        # Python treats a module as missing if its entry in ``sys.modules`` is ``None``.
        sys.modules[_COMMAND_LINE] = None  # type: ignore[assignment]
    try:
        from chorus_cli.models.wire.http_client import HttpClient  # it imports httpx
    finally:
        if sys.modules.get(_COMMAND_LINE, sys) is None:
            # Another thread may build a client at the same time and remove the entry first.
            sys.modules.pop(_COMMAND_LINE, None)
    for name in _FIRST_REQUEST_MODULES:
        # A later version of anyio may have moved a module; then only the first request is slower.
        with suppress(ImportError):
            importlib.import_module(name)
    return HttpClient(is_secured=is_secured, is_direct=is_direct)


def _origin(address: str) -> str:
    return urlsplit(address)._replace(path="/", query="", fragment="").geturl()


def _joined(address: str, path: str) -> str:
    """Return ``address`` with ``path`` added to its path, and with the queries of both."""
    base = urlsplit(address)
    below, _, query = path.partition("?")
    queries = "&".join(filter(None, (base.query, query)))
    return base._replace(path=base.path.rstrip("/") + below, query=queries).geturl()
