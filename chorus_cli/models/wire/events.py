"""The server-sent events of a response."""

from __future__ import annotations

import codecs
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import httpx
from httpx_sse import EventSource

from chorus_cli.core import limits
from chorus_cli.machine.unpacking import UnpackingError
from chorus_cli.models.providers.failures import FailedError, Failure, Trouble
from chorus_cli.models.wire.http_failures import body_of, failure_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

_BLANK = b" \t\r\n"


async def _nothing(*, is_stopped: bool) -> None:
    """Do nothing after a response that came by no connection."""


class Over(Protocol):
    """Called when a response is closed."""

    async def __call__(self, *, is_stopped: bool) -> None:
        """Go on after a response; with ``is_stopped`` it was not read to its end."""


class EventStream:
    """The data of the server-sent events of one response, or its whole body if that is JSON.

    ``over`` is called when it is closed. An event may have
    ``longest_event_bytes``, which the memory must hold several times.
    """

    def __init__(
        self, response: httpx.Response, over: Over = _nothing, *, longest_event_bytes: int = limits.EVENT.most
    ) -> None:
        self._response = response
        self._over = over
        self._longest_event_bytes = longest_event_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._event_bytes = 0
        self.is_at_end = False
        """Whether the server has closed the stream, maybe within the newest event."""

    async def data(self) -> AsyncGenerator[str, None]:
        """Yield the data of each event that has any.

        Raises:
            FailedError: the connection was lost, an event is too long, or the bytes are not UTF-8.
        """
        pieces = self._pieces()
        try:
            first = await _first_text(pieces)
            if first.startswith((b"{", b"[")):
                yield (first + b"".join([piece async for piece in pieces])).decode()
                return
            # The library refuses other types of content, which not every server declares right.
            events = httpx.Response(
                200, headers={"Content-Type": "text/event-stream"}, content=self._ended(first, pieces)
            )
            async for event in EventSource(events).aiter_sse():
                self._event_bytes = 0
                if event.data.strip():
                    yield event.data
        except UnicodeDecodeError:
            raise FailedError(Failure(Trouble.INVALID_RESPONSE, words="not valid UTF-8")) from None
        except (httpx.HTTPError, UnpackingError, OSError) as error:
            raise FailedError(failure_of(error)) from None
        finally:
            await pieces.aclose()

    async def aclose(self) -> None:
        """Close the response; the server goes on with none that was not read to its end."""
        is_stopped = not self._response.is_closed
        try:
            await self._response.aclose()
        finally:
            await self._over(is_stopped=is_stopped)

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes, checked to be UTF-8: the library would replace bytes that are not."""
        async with aclosing(body_of(self._response)) as body:
            async for piece in body:
                self._event_bytes += len(piece)
                if self._event_bytes > self._longest_event_bytes:
                    words = f"an event of more than {self._longest_event_bytes:,} bytes"
                    raise FailedError(Failure(Trouble.INVALID_RESPONSE, words=words))
                try:
                    self._decoder.decode(piece)
                except UnicodeDecodeError as error:
                    # The events before it have arrived whole.
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
    """Return the beginning of a body, up to a piece that is not blank, without a byte order mark."""
    text = b""
    async for piece in pieces:
        text = (text + piece).removeprefix(codecs.BOM_UTF8).lstrip(_BLANK)
        if not codecs.BOM_UTF8.startswith(text):
            break
    return text
