"""Unpacks answers in pieces and limits their length before litellm reads them; litellm itself has no limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx

from chorus_cli.core import limits
from chorus_cli.machine.unpacking import AS_IT_IS, UnpackingError, unpacked
from chorus_cli.models.providers.failures import cut_text, error_body

# For each piece that arrives, litellm copies the whole line so far, so a longer line would take minutes.
_LONGEST_LINE_BYTES = limits.EVENT.most // 4


def bound(transport: type[httpx.AsyncBaseTransport]) -> None:
    """Make a class of transports unpack and limit all answers, because litellm creates the transports itself."""
    answer = transport.handle_async_request

    async def bounded(self: httpx.AsyncBaseTransport, request: httpx.Request) -> httpx.Response:
        request.headers["Accept-Encoding"] = AS_IT_IS
        response = await answer(self, request)
        if isinstance(response.stream, httpx.AsyncByteStream):
            encoding = response.headers.pop("Content-Encoding", "")
            response.stream = _Body(response.stream, encoding, is_error=response.is_error)
        return response

    transport.handle_async_request = bounded  # type: ignore[method-assign]


class _Body(httpx.AsyncByteStream):
    """The unpacked body of an answer; an error's body is cut at `limits.ERROR_WORDS`."""

    def __init__(self, packed: httpx.AsyncByteStream, encoding: str, *, is_error: bool) -> None:
        self._packed = packed
        self._encoding = encoding
        self._is_error = is_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(unpacked(aiter(self._packed), self._encoding)) as pieces:
            if self._is_error:
                # litellm searches the body for keys, which takes seconds if the body is long.
                yield cut_text((await error_body(pieces)).decode(errors="replace")).encode()
                return
            length = 0
            try:
                async for piece in pieces:
                    end = piece.rfind(b"\n")
                    length = len(piece) - end - 1 if end >= 0 else length + len(piece)
                    if length > _LONGEST_LINE_BYTES:
                        raise httpx.DecodingError(f"an event of more than {_LONGEST_LINE_BYTES:,} bytes")
                    yield piece
            except UnpackingError as error:
                raise httpx.DecodingError(str(error)) from None

    async def aclose(self) -> None:
        await self._packed.aclose()
