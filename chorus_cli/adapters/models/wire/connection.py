"""The connections to providers: clients of httpx that live as long as the run."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli import __version__
from chorus_cli.adapters.models.error_bodies import decoded
from chorus_cli.adapters.models.failures import FailedError, Failure, Trouble
from chorus_cli.adapters.models.wire import http_library

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from chorus_cli.adapters.models.providers import Endpoint
    from chorus_cli.adapters.models.wire.protocol import Post

_CONNECT_SECONDS = 30.0
# Servers close idle connections after a minute or more; routers forget them without a word.
_IDLE_SECONDS = 55.0
_FRESH_SECONDS = 40.0
_LONGEST_ERROR_BYTES = 1_000_000
_LOST = "connection lost"


class Connection:
    """The connections of a run, which are kept open for the next request.

    Proxies and certificates are those that the environment names for httpx; with ``is_direct`` no proxy is used. No
    redirect is followed, so that a key goes to no other server.
    """

    def __init__(self, *, is_direct: bool = False) -> None:
        self._is_direct = is_direct
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._used_at: dict[str, float] = {}
        self._building = threading.Lock()

    def warm(self, address: str) -> httpx.AsyncClient:
        """Import httpx and build the client for ``address``, which takes a while, once; any thread may do so.

        Raises:
            FailedError: the certificates or the proxies that the environment names cannot be used.
        """
        scheme = urlsplit(address).scheme
        with self._building:
            if scheme not in self._clients:
                self._clients[scheme] = _client(is_secured=scheme == "https", is_direct=self._is_direct)
            return self._clients[scheme]

    async def send(self, post: Post, endpoint: Endpoint) -> httpx.Response:
        """Send a request and return the response, whose body is still to come; it is to be closed.

        Raises:
            FailedError: there is no answer, or it is an error.
        """
        client = await self._client_of(endpoint.address)
        import httpx  # noqa: PLC0415 - imported beside the prompt

        address = _joined(endpoint.address, post.path)
        self._used_at[_origin(address)] = asyncio.get_running_loop().time()
        try:
            request = client.build_request("POST", address, headers=dict(post.headers), content=post.body)
            response = await _answered(client, request)
            if response.is_success:
                return response
            try:
                raise FailedError(await _refusal(response))
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
            raise FailedError(failure_of(error)) from None

    async def preconnect(self, address: str) -> None:
        """Open a connection to the server at ``address``, unless one was used a moment ago; errors are not told.

        It is opened by a request without a key, as httpx has no other way, and is kept for the next one.
        """
        now = asyncio.get_running_loop().time()
        if now - self._used_at.get(_origin(address), -_FRESH_SECONDS) < _FRESH_SECONDS:
            return
        self._used_at[_origin(address)] = now
        client = await self._client_of(address)
        import httpx  # noqa: PLC0415 - imported beside the prompt

        with suppress(httpx.HTTPError, httpx.InvalidURL, ValueError):
            await client.head(_origin(address), timeout=_CONNECT_SECONDS)

    async def aclose(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    async def _client_of(self, address: str) -> httpx.AsyncClient:
        """Return the client for ``address``; if it must be built, the keyboard does not wait for that."""
        built = self._clients.get(urlsplit(address).scheme)
        return await asyncio.to_thread(self.warm, address) if built is None else built


def failure_of(error: Exception) -> Failure:
    """Return the failure that an error of httpx means."""
    import httpx  # noqa: PLC0415 - imported beside the prompt

    match error:
        case httpx.TimeoutException():
            return Failure(Trouble.UNANSWERED)
        case httpx.DecodingError():
            return Failure(Trouble.INVALID_RESPONSE, words="not compressed as it says")
        case OSError():
            return Failure(Trouble.UNREACHABLE, words=_words(error))
        case httpx.TransportError() if not isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
            return Failure(Trouble.UNREACHABLE, words=_words(error))
        case _:
            # An address or a header that cannot be sent: its words may quote the key.
            return Failure(words=type(error).__name__)


def _client(*, is_secured: bool, is_direct: bool) -> httpx.AsyncClient:
    http_library.load()
    from urllib.request import getproxies  # noqa: PLC0415 - httpx imports it too

    import httpx  # noqa: PLC0415 - imported beside the prompt

    needs_certificates = is_secured or any(proxy.startswith("https") for proxy in getproxies().values())
    try:
        return httpx.AsyncClient(
            # Reading the certificates takes longer than a request to this machine; without any, no server is trusted.
            verify=httpx.create_ssl_context() if needs_certificates else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            headers={"User-Agent": f"chorus/{__version__}"},
            http2=is_secured,
            trust_env=not is_direct,
            # The patience with a reply is the caller's.
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(keepalive_expiry=_IDLE_SECONDS),
        )
    except OSError as error:
        words = f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read: {error.strerror}"
        raise FailedError(Failure(words=words)) from None
    except (ValueError, ImportError) as error:
        raise FailedError(Failure(words=f"the proxy cannot be used: {error}")) from None


async def _answered(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """Send a request and return the response.

    A server may close an idle connection in the very moment in which a request is sent on it, so that it gets the
    request by a new one then.
    """
    import httpx  # noqa: PLC0415 - imported beside the prompt

    is_new = False

    async def note(name: str, _: object) -> None:
        nonlocal is_new
        is_new = is_new or name == "connection.connect_tcp.started"

    request.extensions = {**request.extensions, "trace": note}
    while True:
        try:
            return await client.send(request, stream=True)
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            if is_new:
                raise


def _origin(address: str) -> str:
    return urlsplit(address)._replace(path="/", query="", fragment="").geturl()


def _joined(address: str, path: str) -> str:
    """Return the address with ``path`` below it; both may have a query."""
    base = urlsplit(address)
    below, _, query = path.partition("?")
    queries = "&".join(filter(None, (base.query, query)))
    return base._replace(path=base.path.rstrip("/") + below, query=queries).geturl()


async def _refusal(response: httpx.Response) -> Failure:
    """Return the error that the provider answers with."""
    if response.has_redirect_location:
        return Failure(status=response.status_code, words=f"redirected to {response.headers['location']}")
    content = b""
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > _LONGEST_ERROR_BYTES:
            break
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Failure(status=response.status_code, body=decoded(content), headers=headers)


def _words(error: BaseException) -> str:
    """Return the cause of a failed connection in a few words."""
    for cause in _with_causes(error):
        match cause:
            case ConnectionRefusedError():
                return "connection refused"
            case socket.gaierror():
                return "host name not found"
            case ssl.SSLCertVerificationError():
                return f"its certificate is not trusted: {cause.verify_message}"
            case ConnectionError():
                return _LOST
            case OSError(strerror=str(words)):
                return words
    return str(error) if type(error).__name__.startswith(("Connect", "Proxy")) else _LOST


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        # A group has the errors of all addresses of the host.
        group = error if isinstance(error, BaseExceptionGroup) else None
        error = group.exceptions[0] if group else error.__cause__ or error.__context__
