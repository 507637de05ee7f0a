"""The connections to providers, which live as long as the run."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import sys
import threading
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli.models.providers.failures import FailedError

if TYPE_CHECKING:
    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.wire.http_client import EventStream, HttpClient
    from chorus_cli.models.wire.writing import Post

_FRESH_SECONDS = 40.0
_COMMAND_LINE = "httpx._main"
# anyio, by which httpx connects, imports these with the first connection, which takes a tenth of a second.
_FIRST_REQUEST_MODULES = ("sniffio", "anyio.streams.tls", "anyio._backends._asyncio")


class Connection:
    """The connections of a run, which are kept open for the next request; with ``is_direct`` no proxy is used.

    Each client serves one request at a time: a server that speaks HTTP/2 is stopped only by closing its client.
    """

    def __init__(self, *, is_direct: bool = False) -> None:
        self._is_direct = is_direct
        self._idle: defaultdict[str, list[HttpClient]] = defaultdict(list)
        self._busy: set[HttpClient] = set()
        self._used_at: dict[str, float] = {}
        self._building = threading.Lock()

    def warm(self, address: str) -> None:
        """Import httpx and build a client for ``address`` if none is idle. It takes long; any thread may."""
        scheme = urlsplit(address).scheme
        with self._building:
            if not self._idle[scheme]:
                self._idle[scheme].append(_built(is_secured=scheme == "https", is_direct=self._is_direct))

    async def send(self, post: Post, endpoint: Endpoint) -> EventStream:
        """Send a request and return the stream of the reply, which is to be closed."""
        client = await self._taken(endpoint.address)
        self._used_at[_origin(endpoint.address)] = asyncio.get_running_loop().time()

        async def over(*, is_stopped: bool) -> None:
            if is_stopped:
                await self._end(client, endpoint.address)
            else:
                self._free(client, endpoint.address)

        try:
            return await client.post(_joined(endpoint.address, post.path), post, over)
        except FailedError:
            self._free(client, endpoint.address)
            raise
        except BaseException:
            await self._end(client, endpoint.address)
            raise

    async def preconnect(self, address: str) -> None:
        """Open a connection to the server at ``address``, unless one was used a moment ago; errors are not told."""
        origin = _origin(address)
        now = asyncio.get_running_loop().time()
        if now - self._used_at.get(origin, -_FRESH_SECONDS) >= _FRESH_SECONDS:
            self._used_at[origin] = now
            client = await self._taken(address)
            try:
                await client.connect(origin)
            finally:
                self._free(client, address)

    async def aclose(self) -> None:
        """Close all connections."""
        clients = [*self._busy, *itertools.chain.from_iterable(self._idle.values())]
        self._busy.clear()
        self._idle.clear()
        for client in clients:
            await client.aclose()

    async def _taken(self, address: str) -> HttpClient:
        """Take the client that was used last; if one must be built, the keyboard does not wait for that."""
        while not (idle := self._idle[urlsplit(address).scheme]):
            await asyncio.to_thread(self.warm, address)
        client = idle.pop()
        self._busy.add(client)
        return client

    def _free(self, client: HttpClient, address: str) -> None:
        """Keep a client for the next request, unless all have been closed meanwhile."""
        if client in self._busy:
            self._busy.remove(client)
            self._idle[urlsplit(address).scheme].append(client)

    async def _end(self, client: HttpClient, address: str) -> None:
        """Close a client in the middle of a request; the next connection may be opened beforehand again."""
        self._busy.discard(client)
        self._used_at.pop(_origin(address), None)
        await client.aclose()


def _built(*, is_secured: bool, is_direct: bool) -> HttpClient:
    """Import httpx and the modules of its first request, and return a client.

    httpx is imported without its command line, which would bring rich and pygments along: half of its import. It goes
    on without that module where one of its libraries is not installed.
    """
    if "httpx" not in sys.modules:
        # Python's own way to say that there is no such module.
        sys.modules[_COMMAND_LINE] = None  # type: ignore[assignment]
    try:
        from chorus_cli.models.wire.http_client import HttpClient  # noqa: PLC0415 - it imports httpx
    finally:
        if sys.modules.get(_COMMAND_LINE, sys) is None:
            # Two connections may be built at once.
            sys.modules.pop(_COMMAND_LINE, None)
    for name in _FIRST_REQUEST_MODULES:
        # A later version may have moved one; then the first request is slower, no more.
        with suppress(ImportError):
            importlib.import_module(name)
    return HttpClient(is_secured=is_secured, is_direct=is_direct)


def _origin(address: str) -> str:
    return urlsplit(address)._replace(path="/", query="", fragment="").geturl()


def _joined(address: str, path: str) -> str:
    """Return the address with ``path`` below it; both may have a query."""
    base = urlsplit(address)
    below, _, query = path.partition("?")
    queries = "&".join(filter(None, (base.query, query)))
    return base._replace(path=base.path.rstrip("/") + below, query=queries).geturl()
