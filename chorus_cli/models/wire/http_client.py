"""Sends requests by httpx and reads their event streams. A thread imports this module, because the import is slow."""

from __future__ import annotations

import codecs
import socket
import ssl
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, cast
from urllib.request import getproxies

import httpx
from httpx_sse import EventSource

from chorus_cli import __version__
from chorus_cli.core import limits
from chorus_cli.machine.unpacking import AS_IT_IS, UnpackingError, unpacked
from chorus_cli.models.providers.failures import FailedError, Failure, Trouble, causes, decoded, error_body

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from chorus_cli.models.wire.protocol import Post

_CONNECT_SECONDS = 30.0
# Servers close idle connections after a minute or more; routers drop idle connections without notice.
_IDLE_SECONDS = 55.0
_BLANK = b" \t\r\n"
# The library that connects raises a group of errors if a proxy's port is too high.
_ERRORS = (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError, ExceptionGroup)
_LOST = "connection lost"


class HttpClient:
    """Sends requests by HTTP/1.1, and follows no redirect, so that a key is sent to no other server."""

    def __init__(self, *, is_secured: bool, is_direct: bool) -> None:
        proxies = {} if is_direct else getproxies()
        needs_certificates = is_secured or any(proxy.startswith("https") for proxy in proxies.values())
        try:
            self._client = httpx.AsyncClient(
                # Reading certificates takes longer than a request to this machine. The empty context trusts no server.
                verify=httpx.create_ssl_context() if needs_certificates else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                headers={"User-Agent": f"chorus/{__version__}", "Accept-Encoding": AS_IT_IS},
                trust_env=not is_direct,
                # The caller limits the time that a reply may take.
                timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
                limits=httpx.Limits(keepalive_expiry=_IDLE_SECONDS),
            )
        except OSError as error:
            words = f"SSL_CERT_FILE or SSL_CERT_DIR names certificates that cannot be read: {error.strerror}"
            raise FailedError(Failure(words=words)) from None
        except (httpx.InvalidURL, ValueError, ImportError) as error:
            raise FailedError(Failure(words=f"the proxy cannot be used: {error}")) from None

    async def post(self, address: str, post: Post) -> EventStream:
        """Send a request and return the reply's stream, or raise a ``FailedError``."""
        try:
            request = self._client.build_request("POST", address, headers=dict(post.headers), content=post.body)
            response = await self._client.send(request, stream=True)
            if response.is_success:
                return EventStream(response)
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


class EventStream:
    """Reads the data of the server-sent events of one response, or the whole body if the body is JSON."""

    def __init__(self, response: httpx.Response, longest_event_bytes: int = limits.EVENT.most) -> None:
        self._response = response
        self._longest_event_bytes = longest_event_bytes
        self._event_bytes = 0

    async def data(self) -> AsyncGenerator[str, None]:
        """Yield the data of each event that has data, or raise a ``FailedError``."""
        pieces = self._pieces()
        try:
            first = await _first_text(pieces)
            if first.startswith((b"{", b"[")):
                yield (first + b"".join([piece async for piece in pieces])).decode(errors="replace")
                return
            # The library refuses any content type but this one, and some servers declare a wrong one.
            declared = {"Content-Type": "text/event-stream"}
            events = httpx.Response(200, headers=declared, content=_ended(first, pieces))
            async for event in EventSource(events).aiter_sse():
                self._event_bytes = 0
                if event.data.strip():
                    yield event.data
        except (httpx.HTTPError, UnpackingError, OSError) as error:
            raise FailedError(_failure_of(error)) from None
        finally:
            await pieces.aclose()

    async def aclose(self) -> None:
        """Close the response; if more was to come, the connection is closed, too, and the server stops."""
        await self._response.aclose()

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes, or raise a ``FailedError`` if an event is too long."""
        async with aclosing(_body_of(self._response)) as body:
            async for piece in body:
                self._event_bytes += len(piece)
                if self._event_bytes > self._longest_event_bytes:
                    words = f"an event of more than {self._longest_event_bytes:,} bytes"
                    raise FailedError(Failure(Trouble.INVALID_RESPONSE, words=words))
                yield piece


async def _ended(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield a body, and then the blank line that some servers leave out after the last event."""
    yield first
    async for piece in pieces:
        yield piece
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
            return Failure(Trouble.UNREACHABLE, words="no answer in time")
        case UnpackingError():
            return Failure(Trouble.INVALID_RESPONSE, words=str(error))
        case OSError() | httpx.NetworkError() | httpx.ProxyError() | httpx.RemoteProtocolError():
            return Failure(Trouble.UNREACHABLE, words=_words(error))
        case ExceptionGroup():
            return Failure(Trouble.UNREACHABLE, words="the address or the proxy cannot be used")
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
