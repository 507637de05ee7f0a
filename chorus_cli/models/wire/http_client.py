"""Sends requests by httpx and reads their event streams. A thread imports this module later, because it is slow."""

from __future__ import annotations

import asyncio
import codecs
import socket
import ssl
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, cast
from urllib.request import getproxies

import httpx
from httpx_sse import EventSource

from chorus_cli import __version__
from chorus_cli.core import limits
from chorus_cli.machine.unpacking import AS_IT_IS, UnpackingError, unpacked
from chorus_cli.models.providers.failures import FailedError, Failure, Trouble, causes, decoded, error_body

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping

    from httpcore import AsyncNetworkStream

    from chorus_cli.models.wire.protocol import Post

    Over = Callable[["EventStream"], Awaitable[None]]

_CONNECT_SECONDS, _RACE_SECONDS = 30.0, 5.0
# Servers close idle connections after a minute or more; routers drop idle connections without notice.
_IDLE_SECONDS = 55.0
_HTTP = b"HTTP/"
_BLANK = b" \t\r\n"
_PROXIED = ("http", "https", "all")
_HIGHEST_PORT = 65_535
_ERRORS = (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError)
_LOST = "connection lost"


class HttpClient:
    """Sends one request at a time. It follows no redirect, so that a key is sent to no other server."""

    def __init__(self, *, is_secured: bool, is_direct: bool, race_seconds: float = _RACE_SECONDS) -> None:
        """Build the client; ``post`` sends a request again if a kept connection is lost within ``race_seconds``."""
        self._race_seconds = race_seconds
        proxies = {} if is_direct else getproxies()
        needs_certificates = is_secured or any(proxy.startswith("https") for proxy in proxies.values())
        try:
            _check_ports(proxies)
            self._client = httpx.AsyncClient(
                # Reading certificates takes longer than a request to this machine; the empty context trusts no server.
                verify=httpx.create_ssl_context() if needs_certificates else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                headers={"User-Agent": f"chorus/{__version__}", "Accept-Encoding": AS_IT_IS},
                http2=is_secured,
                trust_env=not is_direct,
                # The caller limits the time that a reply may take.
                timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
                limits=httpx.Limits(keepalive_expiry=_IDLE_SECONDS),
            )
        except OSError as error:
            words = f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read: {error.strerror}"
            raise FailedError(Failure(words=words)) from None
        except (httpx.InvalidURL, ValueError, ImportError) as error:
            raise FailedError(Failure(words=f"the proxy cannot be used: {error}")) from None

    async def post(self, address: str, post: Post, over: Over) -> EventStream:
        """Send a request and return the reply's stream, whose closing calls ``over``, or raise a ``FailedError``."""
        try:
            request = self._client.build_request("POST", address, headers=dict(post.headers), content=post.body)
            response = await self._answered(request)
            if response.is_success:
                return EventStream(response, over)
            try:
                raise FailedError(await _refusal(response))
            finally:
                await response.aclose()
        except _ERRORS as error:
            raise FailedError(_failure_of(error)) from None

    async def connect(self, origin: str) -> None:
        """Open a connection by a request without a key, because httpx has no other way; network errors are ignored."""
        with suppress(*_ERRORS):
            await self._client.head(origin, timeout=_CONNECT_SECONDS)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _answered(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and send it once more if the server closes an idle connection at that moment.

        If the connection is lost later, the server may have charged for an answer, so the request is not repeated.
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
            # If the TLS handshake is cancelled, the library forgets the connection without closing it.
            if unfinished is not None:
                await unfinished.aclose()
            raise
        return await self._client.send(request, stream=True)


def _refuse_other_protocols(stream: AsyncNetworkStream) -> None:
    """Make a stream fail if its first bytes are not HTTP, because the library would go on waiting for HTTP."""
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
    """Raise a ``ValueError`` if a proxy's port is too high; httpx would fail later, with a group of errors."""
    for scheme, address in proxies.items():
        port = httpx.URL(address).port if scheme in _PROXIED else None
        if port is not None and port > _HIGHEST_PORT:
            raise ValueError(f"there is no port {port}")


class EventStream:
    """Reads the data of the server-sent events of one response, or the whole body if the body is JSON."""

    def __init__(self, response: httpx.Response, over: Over, longest_event_bytes: int = limits.EVENT.most) -> None:
        self._response = response
        self._over = over
        self._longest_event_bytes = longest_event_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._event_bytes = 0
        self.is_at_end = False
        """Whether the server has closed the stream, perhaps in the middle of the newest event."""
        self.is_stopped = False
        """Whether the stream was closed before its end."""

    async def data(self) -> AsyncGenerator[str, None]:
        """Yield the data of each event that has data, or raise a ``FailedError``."""
        pieces = self._pieces()
        try:
            first = await _first_text(pieces)
            if first.startswith((b"{", b"[")):
                yield (first + b"".join([piece async for piece in pieces])).decode()
                return
            # The library refuses any other content type, and some servers declare a wrong one.
            declared = {"Content-Type": "text/event-stream"}
            events = httpx.Response(200, headers=declared, content=self._ended(first, pieces))
            async for event in EventSource(events).aiter_sse():
                self._event_bytes = 0
                if event.data.strip():
                    yield event.data
        except UnicodeDecodeError:
            raise FailedError(Failure(Trouble.INVALID_RESPONSE, words="not valid UTF-8")) from None
        except (httpx.HTTPError, UnpackingError, OSError) as error:
            raise FailedError(_failure_of(error)) from None
        finally:
            await pieces.aclose()

    async def aclose(self) -> None:
        """Close the response and call ``over``, which can stop a server that has more to send."""
        self.is_stopped = not self._response.is_closed
        try:
            await self._response.aclose()
        finally:
            await self._over(self)

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes, or raise an error if it is not UTF-8: the library would replace wrong bytes."""
        async with aclosing(_body_of(self._response)) as body:
            async for piece in body:
                self._event_bytes += len(piece)
                if self._event_bytes > self._longest_event_bytes:
                    words = f"an event of more than {self._longest_event_bytes:,} bytes"
                    raise FailedError(Failure(Trouble.INVALID_RESPONSE, words=words))
                try:
                    self._decoder.decode(piece)
                except UnicodeDecodeError as error:
                    # The events before the invalid byte are whole, so they are passed on.
                    yield piece[: max(0, error.start + len(piece) - len(error.object))]
                    raise
                yield piece

    async def _ended(self, first: bytes, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield the body, and then the blank line that some servers leave out after the last event."""
        yield first
        async for piece in pieces:
            yield piece
        self.is_at_end = True
        yield b"\n\n"


async def _first_text(pieces: AsyncIterator[bytes]) -> bytes:
    """Read up to the first piece that is not blank; return its text without a byte order mark and leading blanks."""
    text = b""
    async for piece in pieces:
        text = (text + piece).removeprefix(codecs.BOM_UTF8).lstrip(_BLANK)
        if not codecs.BOM_UTF8.startswith(text):
            break
    return text


def _failure_of(error: Exception) -> Failure:
    match error:
        case httpx.TimeoutException():
            return Failure(Trouble.UNANSWERED)
        case UnpackingError():
            return Failure(Trouble.INVALID_RESPONSE, words=str(error))
        case OSError() | httpx.NetworkError() | httpx.ProxyError() | httpx.RemoteProtocolError():
            return Failure(Trouble.UNREACHABLE, words=_words(error))
        case _:
            # The address or a header cannot be sent. The error's words may quote the key, so only its type is given.
            return Failure(words=type(error).__name__)


def _body_of(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    encoding = response.headers.get("Content-Encoding", "")
    if encoding:
        return unpacked(response.aiter_raw(), encoding)
    # A body that is not compressed needs no unpacking. The library returns a generator, but does not declare it.
    return cast("AsyncGenerator[bytes, None]", response.aiter_raw())


async def _refusal(response: httpx.Response) -> Failure:
    if response.has_redirect_location:
        return Failure(status=response.status_code, words=f"redirected to {response.headers['location']}")
    headers = {name.lower(): value for name, value in response.headers.items()}
    async with aclosing(_body_of(response)) as pieces:
        return Failure(status=response.status_code, body=decoded(await error_body(pieces)), headers=headers)


def _words(error: BaseException) -> str:
    for cause in causes(error):
        match cause:
            case ConnectionRefusedError():
                return "connection refused"
            case socket.gaierror():
                return "host name not found"
            case ssl.SSLCertVerificationError():
                return f"the server's certificate is not trusted: {cause.verify_message}"
            case ConnectionError():
                return _LOST
            case ssl.SSLError(reason="WRONG_VERSION_NUMBER"):
                return "the server does not speak TLS"
            case OSError(strerror=str(words)):
                return words
    return str(error) if type(error).__name__.startswith(("Connect", "Proxy")) else _LOST
