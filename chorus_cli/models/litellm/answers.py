"""Answers on their way to litellm: unpacked and bounded before it reads them, which it does whole and at once."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING

import httpx

from chorus_cli.core import limits
from chorus_cli.machine.unpacking import AS_IT_IS, UnpackingError, unpacked
from chorus_cli.models.providers.failures import cut, decoded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

# With each piece litellm copies all that has come of a line, so that a longer one takes minutes.
_LONGEST_LINE_BYTES = limits.EVENT.most // 4


def bound(transport: type[httpx.AsyncBaseTransport]) -> None:
    """Have all answers by a class of transports bounded; litellm builds its transports where it uses them."""
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
    """The body of an answer without its compression, of an error only what is looked at."""

    def __init__(self, packed: httpx.AsyncByteStream, encoding: str, *, is_error: bool) -> None:
        self._packed = packed
        self._encoding = encoding
        self._is_error = is_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(unpacked(aiter(self._packed), self._encoding)) as pieces:
            if self._is_error:
                yield await _error(pieces)
                return
            try:
                async for piece in _with_bounded_lines(pieces):
                    yield piece
            except UnpackingError as error:
                raise httpx.DecodingError(str(error)) from None

    async def aclose(self) -> None:
        await self._packed.aclose()


async def _error(pieces: AsyncIterator[bytes]) -> bytes:
    """Return an error in a length over which litellm, which looks for keys in it, does not take seconds."""
    content = bytearray()
    try:
        async for piece in pieces:
            content += piece
            if len(content) > limits.ERROR_BODY.most:
                break
    except UnpackingError as error:
        return f"its answer is {error}".encode()
    if len(content) <= limits.ERROR_WORDS.most:
        return bytes(content)
    body = cut(decoded(bytes(content)))
    return (body if isinstance(body, str) else json.dumps(body)).encode(errors="replace")


async def _with_bounded_lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    length = 0
    async for piece in pieces:
        end = piece.rfind(b"\n")
        length = len(piece) - end - 1 if end >= 0 else length + len(piece)
        if length > _LONGEST_LINE_BYTES:
            raise UnpackingError(f"an event of more than {_LONGEST_LINE_BYTES:,} bytes")
        yield piece
