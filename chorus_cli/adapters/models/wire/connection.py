"""The connections to providers: one client of httpx for the run, and the events of its responses."""

from __future__ import annotations

import asyncio
import codecs
import json
import threading
from typing import TYPE_CHECKING

from chorus_cli.adapters.models.failures import FailedError, Failure, Trouble
from chorus_cli.adapters.models.wire import http_library

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    import httpx

    from chorus_cli.adapters.models.wire.protocol import Endpoint, Post

_CONNECT_SECONDS = 30.0
# Servers close idle connections after a minute or more; routers forget them without a word.
_IDLE_SECONDS = 55.0
_LONGEST_EVENT_BYTES = 64_000_000
_LONGEST_ERROR_BYTES = 1_000_000
_BLANK = b" \t\r\n"


class Connection:
    """The connections of a run, which are kept open for the next request; built when first needed."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._building = threading.Lock()

    async def send(self, post: Post, endpoint: Endpoint) -> httpx.Response:
        """Send a request and return the response, whose body is still to come; it is to be closed.

        Raises:
            FailedError: there is no answer, or it is an error.
        """
        client = await asyncio.to_thread(self.warm) if self._client is None else self._client
        address = endpoint.address + post.path
        import httpx  # noqa: PLC0415 - imported beside the prompt

        try:
            request = client.build_request("POST", address, headers=post.headers, content=post.body)
            response = await client.send(request, stream=True)
            if response.is_success:
                return response
            try:
                raise FailedError(await _refusal(response))
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise FailedError(_failure(error)) from None

    async def aclose(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def warm(self) -> httpx.AsyncClient:
        """Import httpx and build its client, once, and return it; any thread may do so, as it takes a while."""
        http_library.load()
        import httpx  # noqa: PLC0415 - imported beside the prompt
        import httpx_sse  # noqa: F401, PLC0415 - imported beside the prompt

        with self._building:
            if self._client is None:
                self._client = httpx.AsyncClient(
                    http2=True,
                    # The patience with a reply is the caller's.
                    timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
                    limits=httpx.Limits(keepalive_expiry=_IDLE_SECONDS),
                )
            return self._client


class EventStream:
    """The data of the server-sent events of one response, or its whole body if that is JSON."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._since_event = 0
        self.is_at_end = False
        """Whether the newest event was not ended by the server."""

    async def data(self) -> AsyncGenerator[str, None]:
        """Yield the data of each event that has any.

        Raises:
            FailedError: the connection was lost, an event is too long, or the bytes are not UTF-8.
        """
        import httpx  # noqa: PLC0415 - imported beside the prompt
        from httpx_sse import EventSource  # noqa: PLC0415 - imported beside the prompt

        pieces = self._pieces()
        try:
            first = await _first_text(pieces)
            if first.startswith(b"{"):
                yield (first + b"".join([piece async for piece in pieces])).decode()
                return
            # The reader of events wants UTF-8 of the right type, which not every server says that it sends.
            events = httpx.Response(
                200, headers={"Content-Type": "text/event-stream"}, content=self._terminated(first, pieces)
            )
            async for event in EventSource(events).aiter_sse():
                self._since_event = 0
                if event.data.strip():
                    yield event.data
        except UnicodeDecodeError:
            raise FailedError(Failure(Trouble.INVALID_RESPONSE, words="not valid UTF-8")) from None
        except httpx.HTTPError as error:
            raise FailedError(_failure(error)) from None
        finally:
            await pieces.aclose()

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes, checked to be UTF-8."""
        async for piece in self._response.aiter_bytes():
            self._since_event += len(piece)
            if self._since_event > _LONGEST_EVENT_BYTES:
                words = f"an event of more than {_LONGEST_EVENT_BYTES // 1_000_000} MB"
                raise FailedError(Failure(Trouble.INVALID_RESPONSE, words=words))
            self._decoder.decode(piece)
            yield piece

    async def _terminated(self, first: bytes, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield the body, and a blank line for an event that the server did not end."""
        yield first
        async for piece in pieces:
            yield piece
        self.is_at_end = True
        yield b"\n\n"


async def _first_text(pieces: AsyncIterator[bytes]) -> bytes:
    """Return the beginning of a body, up to a piece that is not blank."""
    text = b""
    async for piece in pieces:
        text = (text + piece).removeprefix(codecs.BOM_UTF8).lstrip(_BLANK)
        if text:
            break
    return text


async def _refusal(response: httpx.Response) -> Failure:
    """Return the error that the provider answers with."""
    if response.is_redirect:
        words = f"redirected to {response.headers['location']}"
        return Failure(status=response.status_code, words=words)
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _LONGEST_ERROR_BYTES:
            break
    text = body.decode(errors="replace")
    headers = {name.lower(): value for name, value in response.headers.items()}
    try:
        return Failure(status=response.status_code, body=json.loads(text), headers=headers, words=text)
    except (ValueError, RecursionError):
        return Failure(status=response.status_code, body=text, headers=headers, words=text)


def _failure(error: Exception) -> Failure:
    """Return the failure that an error of httpx means."""
    import httpx  # noqa: PLC0415 - imported beside the prompt

    match error:
        case httpx.TimeoutException():
            return Failure(Trouble.UNANSWERED)
        case httpx.DecodingError():
            return Failure(Trouble.INVALID_RESPONSE, words="not compressed as it says")
        case httpx.RequestError():
            return Failure(Trouble.UNREACHABLE, words=_words(error))
        case _:
            return Failure(words=str(error))


def _words(error: BaseException) -> str:
    """Return the cause of a lost connection in a few words."""
    import httpx  # noqa: PLC0415 - imported beside the prompt

    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case ConnectionRefusedError():
                return "connection refused"
            case ConnectionError():
                return "connection lost"
            case OSError() if type(cause).__name__ == "gaierror":
                return "host name not found"
        cause = cause.__cause__ or cause.__context__
    return "connection lost" if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError) else str(error)
