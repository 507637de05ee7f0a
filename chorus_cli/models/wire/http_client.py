"""HTTP by httpx, which takes long to import: so this module is imported late, by a thread."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

import httpx

from chorus_cli import __version__
from chorus_cli.machine.unpacking import AS_IT_IS
from chorus_cli.models.providers.failures import FailedError, Failure, Trouble
from chorus_cli.models.wire.events import EventStream
from chorus_cli.models.wire.http_failures import failure_of, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from httpcore import AsyncNetworkStream

    from chorus_cli.models.wire.events import Over
    from chorus_cli.models.wire.protocol import Post

_CONNECT_SECONDS = 30.0
# Servers close idle connections after a minute or more; routers forget them without a word.
_IDLE_SECONDS = 55.0
_RACE_SECONDS = 5.0
_HTTP = b"HTTP/"
_PROXIED = ("http", "https", "all")
_HIGHEST_PORT = 65_535
_ERRORS = (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError)


class HttpClient:
    """Sends one request at a time, over TLS if ``is_secured``, and keeps the connection open.

    Proxies and certificates are those that the environment names for httpx; with ``is_direct`` no proxy is used. No
    redirect is followed, so that a key goes to no other server.
    """

    def __init__(self, *, is_secured: bool, is_direct: bool, race_seconds: float = _RACE_SECONDS) -> None:
        """Build the client; a kept connection that is lost within ``race_seconds`` is taken for one that was idle.

        Raises:
            FailedError: the certificates or the proxies cannot be used.
        """
        self._race_seconds = race_seconds
        proxies = {} if is_direct else getproxies()
        needs_certificates = is_secured or any(proxy.startswith("https") for proxy in proxies.values())
        try:
            _check_ports(proxies)
            self._client = httpx.AsyncClient(
                # Reading the certificates takes longer than a request to this machine; without any, none is trusted.
                verify=httpx.create_ssl_context() if needs_certificates else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                headers={"User-Agent": f"chorus/{__version__}", "Accept-Encoding": AS_IT_IS},
                http2=is_secured,
                trust_env=not is_direct,
                # The patience with a reply is the caller's.
                timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
                limits=httpx.Limits(keepalive_expiry=_IDLE_SECONDS),
            )
        except OSError as error:
            words = f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read: {error.strerror}"
            raise FailedError(Failure(words=words)) from None
        except (httpx.InvalidURL, ValueError, ImportError) as error:
            raise FailedError(Failure(words=f"the proxy cannot be used: {error}")) from None

    async def post(self, address: str, post: Post, over: Over) -> EventStream:
        """Send a request and return the stream of the reply, which is to be closed and tells ``over`` then.

        Raises:
            FailedError: there is no answer, or it is an error.
        """
        try:
            request = self._client.build_request("POST", address, headers=dict(post.headers), content=post.body)
            response = await self._answered(request)
            if response.is_success:
                return EventStream(response, over)
            try:
                raise FailedError(await refusal(response))
            finally:
                await response.aclose()
        except _ERRORS as error:
            raise FailedError(failure_of(error)) from None

    async def connect(self, origin: str) -> None:
        """Open a connection; httpx has no other way than a request, which goes without a key. Errors are not told."""
        with suppress(*_ERRORS):
            await self._client.head(origin, timeout=_CONNECT_SECONDS)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _answered(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response.

        A server may close an idle connection in the very moment in which a request is sent on it, so that it gets the
        request once more. One that gives up later may have answered already, at a price.
        """
        is_new = False
        unfinished: AsyncNetworkStream | None = None

        async def note(name: str, told: Mapping[str, Any]) -> None:
            nonlocal is_new, unfinished
            is_new = is_new or name == "connection.connect_tcp.started"
            if name == "connection.connect_tcp.complete":
                unfinished = told["return_value"]
                _refuse_other_protocols(told["return_value"])
            elif name.startswith(("http11.", "http2.")):
                unfinished = None

        request.extensions = {**request.extensions, "trace": note}
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            return await self._client.send(request, stream=True)
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            if is_new or clock() - began >= self._race_seconds:
                raise
        except asyncio.CancelledError:
            # The library forgets a connection on which the handshake of TLS is cancelled, and leaves it open.
            if unfinished is not None:
                await unfinished.aclose()
            raise
        return await self._client.send(request, stream=True)


def _refuse_other_protocols(stream: AsyncNetworkStream) -> None:
    """Have a stream without TLS fail as soon as it reads something else than HTTP.

    The library waits for the end of what is no header, and calls it a lost connection then.
    """
    read, begun = stream.read, bytearray()

    async def checked(max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - the library names it
        data = await read(max_bytes, timeout)
        begun.extend(data[: len(_HTTP)])
        if len(begun) >= len(_HTTP):
            stream.read = read  # type: ignore[method-assign]
        if not (begun.startswith(_HTTP) or _HTTP.startswith(begun)):
            raise FailedError(Failure(Trouble.NOT_HTTP))
        return data

    with suppress(AttributeError):
        stream.read = checked  # type: ignore[method-assign]


def _check_ports(proxies: Mapping[str, str]) -> None:
    """Raise an error if the port of a proxy is none: httpx would find that out late, and with a group of errors.

    Raises:
        httpx.InvalidURL, ValueError: an address cannot be read, or its port is above 65535.
    """
    for scheme, address in proxies.items():
        port = httpx.URL(address).port if scheme in _PROXIED else None
        if port is not None and port > _HIGHEST_PORT:
            raise ValueError(f"there is no port {port}")
