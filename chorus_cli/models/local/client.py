"""The model client for models in files: it starts their servers and asks them over the wire."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from chorus_cli.models.local.server import LoadedModel, LocalServer, started
from chorus_cli.models.providers.attached import not_stored
from chorus_cli.models.rules.thoughts import Echo, Span
from chorus_cli.models.wire.client import WireClient
from chorus_cli.models.wire.connection import Connection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from chorus_cli.models.local.files import LocalFiles
    from chorus_cli.models.providers.attached import Load
    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.rules.request import ModelRequest

# A processor reads some ten tokens of a long prompt in a second.
_FIRST_TOKEN_SECONDS = 1800.0
_LOOPBACK = "http://127.0.0.1"


class LocalClient:
    """A ``ModelClient`` for local models; their servers are given ``environment``, ``load`` the bytes of attachments.

    One model is kept in memory: the next one that is asked takes its place, as soon as no reply is being written by it.
    """

    def __init__(
        self, environment: Mapping[str, str], model_map: ModelMap, files: LocalFiles, load: Load = not_stored
    ) -> None:
        # No proxy can reach a server on loopback, and none is to see the messages.
        self._connection = Connection(is_direct=True)
        self._wire = WireClient(
            environment,
            model_map,
            first_token_seconds=_FIRST_TOKEN_SECONDS,
            connection=self._connection,
            load=load,
        )
        self._files = files
        self._environment = environment
        self._servers: list[LocalServer] = []
        self._starting = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply as it arrives, and ``ReplyEnd`` last; the first one waits until the model is loaded.

        Raises:
            ModelError: the model is missing or cannot be loaded, or its server failed; the events already yielded
                remain valid.
        """
        loaded = await asyncio.to_thread(self._wanted, request)
        async with self._starting:
            server = await self._serving(loaded)
            server.uses += 1
        try:
            async with aclosing(self._wire.stream(request, server.endpoint)) as events:
                async for event in events:
                    yield event
        finally:
            server.uses -= 1

    def echo(self, _model: str) -> Echo:
        """Return which of its thoughts a model is sent again: those of the turn, which its template decides about."""
        return Echo(Span.TURN)

    def warm(self, _model: str) -> None:
        """Import all that the first request needs; any thread may do so."""
        self._connection.warm(_LOOPBACK)

    async def aclose(self) -> None:
        """End all servers."""
        servers, self._servers = self._servers, []
        for server in servers:
            await server.aclose()
        await self._wire.aclose()

    def _wanted(self, request: ModelRequest) -> LoadedModel:
        model = request.model
        return LoadedModel(model, self._files.file(model), self._files.context_tokens(model, request.context_tokens))

    async def _serving(self, wanted: LoadedModel) -> LocalServer:
        """Return a server of the model with as large a context as wanted, started if need be."""
        self._servers = [server for server in self._servers if server.is_running]
        for server in self._servers:
            if server.loaded.file == wanted.file and server.loaded.context_tokens >= wanted.context_tokens:
                return server
        for server in [server for server in self._servers if not server.uses]:
            self._servers.remove(server)
            await server.aclose()
        server = await started(wanted, self._environment)
        self._servers.append(server)
        return server
