"""Answers on their way to litellm: unpacked and bounded before it reads them, which it does whole and at once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx

from chorus_cli.core import limits
from chorus_cli.machine.unpacking import AS_IT_IS, UnpackingError, unpacked
from chorus_cli.models.providers.failures import cut, decoded, error_body

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
                content = await error_body(pieces)
                if len(content) > limits.ERROR_WORDS.most:
                    # litellm looks for keys in it, which takes seconds over a long one.
                    body = cut(decoded(content))
                    content = (body if isinstance(body, str) else json.dumps(body)).encode(errors="replace")
                yield content
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
