"""Signs in to servers with the protocol's library, which takes a second to import.

The requests of a sign-in have a time limit, and are encrypted unless they stay on this machine; the size of answers is
limited. At the end of a sign-in, the browser returns to a page on this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar, cast

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from chorus_cli import __version__
from chorus_cli.core import limits
from chorus_cli.core.errors import SettingsError, SignInError
from chorus_cli.core.text.redaction import redact
from chorus_cli.mcp.rules import sign_in

if TYPE_CHECKING:
    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.mcp.files import Tokens

_Model = TypeVar("_Model", bound=BaseModel)

UNPACKED = {"Accept-Encoding": "identity"}
"""Asks for an uncompressed answer, because a few compressed bytes may unpack to very many."""

_PATH = "/callback"
_LONGEST_REQUEST_BYTES, _REQUEST_SECONDS = 64_000, 10.0
_OF_ANOTHER = "Chorus did not take this answer: it belongs to another sign-in. Go on in the page that Chorus opened."
_PAGE = "<!doctype html><meta charset=utf-8><title>Chorus</title><p>{told} You can close this page."

_MARK = "chorus_sign_in"
_SECONDS = 30.0
_MOST_REDIRECTS = 5
_REFUSED, _MANY, _BROKEN = 401, 429, 500
_HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "chorus", "version": __version__},
    },
}


class _Nowhere:
    """A storage for the library that stores nothing: Chorus itself stores the tokens, once a sign-in is complete."""

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        pass

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass


class _Guarded(OAuthClientProvider):
    """The library's sign-in; its own requests get a time limit, and `check_address` refuses unsafe addresses."""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = super().async_auth_flow(request)
        try:
            asked = await anext(flow)
            while True:
                if asked is not request:
                    sign_in.check_address(str(asked.url), self.context.server_url)
                    asked.extensions.update({_MARK: True, "timeout": httpx2.Timeout(_SECONDS).as_dict()})
                asked = await flow.asend((yield asked))
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()


class SignedIn(_Guarded):
    """Adds a server's access token to requests and renews it; never asks the user to sign in."""

    def __init__(self, address: str, tokens: Tokens) -> None:
        super().__init__(address, OAuthClientMetadata(redirect_uris=None), _Nowhere())
        self._tokens = tokens

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        refused = ""
        for _ in range(2):
            async with self.context.lock:
                # Another Chorus may have renewed the tokens.
                if not self.context.is_token_valid() or self._token == refused:
                    self._load()
                is_over = not self.context.is_token_valid() or self._token == refused
                if is_over and self.context.can_refresh_token():
                    await self._renew((yield await self._refresh_token()))
                token = self._token
            if refused and token in {"", refused}:
                return
            self._add_auth_header(request)
            response = yield request
            if response.status_code != _REFUSED or not token:
                return
            refused = token

    @property
    def _token(self) -> str:
        tokens = self.context.current_tokens
        return tokens.access_token if tokens else ""

    def _load(self) -> None:
        entry, context = self._tokens.of(self.context.server_url), self.context
        context.current_tokens = _read(OAuthToken, entry.get("tokens"))
        context.client_info = _read(OAuthClientInformationFull, entry.get("client"))
        context.oauth_metadata = _read(OAuthMetadata, entry.get("metadata"))
        context.protected_resource_metadata = _read(ProtectedResourceMetadata, entry.get("resource"))
        expires_at = entry.get("expires_at")
        context.token_expiry_time = float(expires_at) if isinstance(expires_at, int | float) else None

    async def _renew(self, answer: httpx2.Response) -> None:
        if answer.status_code == _MANY or answer.status_code >= _BROKEN:
            raise SignInError(f"your sign-in cannot be renewed now (HTTP {answer.status_code})")
        tried = self._token
        if await self._handle_refresh_response(answer):
            # If the file cannot be written, the new tokens last until the end of the run.
            with suppress(SettingsError):
                await asyncio.to_thread(self._tokens.keep, self.context.server_url, _entry(self))
            return
        self._load()
        if self._token == tried:
            self.context.clear_tokens()


class _Landing:
    """The page to which the browser returns; it takes the first answer that belongs to the sign-in."""

    def __init__(self) -> None:
        self.address = ""
        self._state = ""
        self._arrived: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    def expect(self, state: str) -> None:
        """Take an answer from now on, but only one with this state."""
        self._state = state

    async def brought(self) -> Mapping[str, str]:
        """Wait for the browser's answer; raise a ``SignInError`` if it has no code."""
        return await self._arrived

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a request."""
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head.decode("latin-1")))
                await writer.drain()
        writer.close()

    def _answer(self, head: str) -> bytes:
        method, target, *_ = [*head.partition("\r\n")[0].split(" "), "", ""]
        path, _, query = target.partition("?")
        # Browsers ask for an icon too.
        if (method, path) != ("GET", _PATH) or self._arrived.done() or not self._state:
            return _response("404 Not Found", "This is no page of Chorus.")
        try:
            found = sign_in.brought(query, self._state)
        except SignInError as error:
            self._arrived.set_exception(error)
            return _response("400 Bad Request", f"You are not signed in: {error}.")
        if found is None:
            return _response("400 Bad Request", _OF_ANOTHER)
        self._arrived.set_result(found)
        return _response("200 OK", "Chorus has the answer.")


def _response(status: str, told: str) -> bytes:
    body = _PAGE.format(told=escape(told)).encode()
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        # The page's own address contains the code.
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
        "Connection: close",
    )
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def _landing() -> AsyncIterator[_Landing]:
    """Serve the page to this machine alone, on a free port, until the block ends."""
    page = _Landing()
    server = await asyncio.start_server(page.serve, "127.0.0.1", 0, limit=_LONGEST_REQUEST_BYTES)
    try:
        page.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{_PATH}"
        yield page
    finally:
        server.close()


class SignIn:
    """A sign-in of the user to the server at ``address``."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._last = ""

    async def begin(self, headers: Mapping[str, str], show: Callable[[str], object]) -> Mapping[str, JsonValue]:
        """Sign in and return the entry for `Tokens`; ``show`` gets the address of the page for the user."""
        sign_in.check_address(self._address, self._address)
        async with _landing() as page:

            async def redirect(address: str) -> None:
                sign_in.check_address(address, self._address)
                page.expect(sign_in.state_of(address))
                show(address)

            async def callback() -> AuthorizationCodeResult:
                return AuthorizationCodeResult(**await page.brought())

            about = OAuthClientMetadata(client_name="Chorus", redirect_uris=[AnyUrl(page.address)])
            provider = _Guarded(self._address, about, _Nowhere(), redirect, callback)
            response = await self._ask(provider, headers)
        if provider.context.current_tokens is None:
            told = "it asks for no sign-in" if response.is_success else f"it answered HTTP {response.status_code}"
            raise SignInError(told)
        if response.status_code == _REFUSED:
            raise SignInError("it does not accept the token that you were given")
        return _entry(provider)

    def clause(self, error: Exception) -> str:
        """Say in a clause why the sign-in failed, without any tokens of an answer."""
        match error:
            case SignInError():
                return str(error)
            case OAuthRegistrationError():
                again = "add it again with a token of yours in --header"
                return f"it does not let unknown programs sign in ({self._last}); {again}"
            case OAuthTokenError():
                return f"it gave no token ({self._last})"
            case OAuthFlowError():
                return sign_in.shorter(redact(str(error), ())).rstrip(".")
            case httpx2.TransportError() | OSError():
                return f"there is no connection ({type(error).__name__})"
            case _:
                return f"its answer cannot be read ({self._last})"

    async def _ask(self, provider: _Guarded, headers: Mapping[str, str]) -> httpx2.Response:
        """Send the server a request, for which the library signs in; return the final answer without its body."""
        accepted = {"Accept": "application/json, text/event-stream", **UNPACKED}
        hooks: dict[str, list[Callable[..., Any]]] = {"response": [bounded, self._answered]}
        address = httpx2.URL(self._address)
        async with httpx2.AsyncClient(
            auth=provider, headers={**headers, **accepted}, timeout=_SECONDS, event_hooks=hooks
        ) as client:
            for _ in range(_MOST_REDIRECTS):
                async with client.stream("POST", address, json=_HELLO) as response:
                    following = response.next_request
                if following is None or _origin(following.url) != _origin(address):
                    break
                address = following.url
        return response

    async def _answered(self, response: httpx2.Response) -> None:
        self._last = f"{sign_in.host(str(response.request.url))}, HTTP {response.status_code}"


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer; raises ``refused`` if there are more than ``most``."""

    def __init__(self, response: httpx2.Response, most: int, refused: Exception) -> None:
        self._stream = cast("httpx2.AsyncByteStream", response.stream)
        self._most, self._refused = most, refused

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for part in self._stream:
            count += len(part)
            if count > self._most:
                raise self._refused
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bounded(response: httpx2.Response) -> None:
    """Refuse a compressed answer, and limit the size of others; the library itself limits each event of a stream."""
    at_sign_in = is_of_sign_in(response)
    limit = limits.SIGN_IN if at_sign_in else limits.SERVER_LINE
    is_packed = response.headers.get("content-encoding", "identity") != "identity"
    fault = "packed, which was not asked for" if is_packed else f"larger than {limit.size}"
    # After a ``StreamError``, the library lets only the call fail and keeps the connection.
    error: type[Exception] = SignInError if at_sign_in else httpx2.StreamError
    if is_packed or not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        refused = error(f"{'an answer at the sign-in' if at_sign_in else 'the answer'} is {fault}")
        response.stream = _Bounded(response, -1 if is_packed else limit.most, refused)


def is_of_sign_in(response: httpx2.Response) -> bool:
    """Return whether an answer belongs to a sign-in, and not to a request of the protocol itself."""
    return _MARK in response.request.extensions


def _origin(address: httpx2.URL) -> tuple[object, ...]:
    return address.scheme, address.host, address.port


def _entry(provider: OAuthClientProvider) -> dict[str, JsonValue]:
    context = provider.context
    return {
        "tokens": _written(context.current_tokens),
        "expires_at": context.token_expiry_time,
        "client": _written(context.client_info),
        "metadata": _written(context.oauth_metadata),
        "resource": _written(context.protected_resource_metadata),
    }


def _written(model: BaseModel | None) -> JsonValue:
    return model.model_dump(mode="json", exclude_none=True) if model else None


def _read(kind: type[_Model], value: JsonValue) -> _Model | None:
    try:
        return kind.model_validate(value) if value else None
    except ValidationError:
        return None
