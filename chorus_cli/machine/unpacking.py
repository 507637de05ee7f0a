"""Bodies of HTTP answers that are compressed although Chorus asks for them as they are."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

AS_IT_IS = "identity"
"""What a request asks for under ``Accept-Encoding``."""

# zlib recognises the heads of gzip and of its own format; browsers also take what has neither for "deflate".
_GZIP_OR_ZLIB, _WITHOUT_HEAD = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS
_KNOWN = ("gzip", "x-gzip", "deflate")
_PIECE_BYTES = 65_536


class UnpackingError(ValueError):
    """A body cannot be unpacked; the message says why, such as ``compressed more than once``."""


async def unpacked(pieces: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    """Yield a body without the compression that ``encoding``, its ``Content-Encoding``, names.

    It is unpacked once, in pieces of at most 64 KiB, after any of which the reader may stop: it may become a thousand
    times as long.

    Raises:
        UnpackingError: it is compressed more than once, in a way that Chorus does not know, or not as it says.
    """
    names = [name for name in map(str.strip, encoding.lower().split(",")) if name not in {"", AS_IT_IS}]
    if len(names) > 1:
        raise UnpackingError("compressed more than once")
    if names and names[0] not in _KNOWN:
        raise UnpackingError("compressed in a way that was not asked for")
    unpacking = _Unpacking(may_lack_head=names == ["deflate"]) if names else None
    async for piece in pieces:
        if unpacking is None:
            yield piece
            continue
        for part in unpacking.of(piece):
            yield part
            # A piece may hold the thread for a second; others are to be heard meanwhile.
            await asyncio.sleep(0)


class _Unpacking:
    """A body being unpacked."""

    def __init__(self, *, may_lack_head: bool) -> None:
        self._library = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._may_lack_head = may_lack_head

    def of(self, packed: bytes) -> Iterator[bytes]:
        """Yield what comes out of the next piece; nothing after the end of the compressed data."""
        while not self._library.eof:
            part = self._part(packed)
            if part:
                yield part
            packed = self._library.unconsumed_tail
            if not packed and len(part) < _PIECE_BYTES:
                return

    def _part(self, packed: bytes) -> bytes:
        may_lack_head, self._may_lack_head = self._may_lack_head, False
        try:
            return self._library.decompress(packed, _PIECE_BYTES)
        except zlib.error:
            if not may_lack_head:
                raise UnpackingError("not compressed as it says") from None
        self._library = zlib.decompressobj(_WITHOUT_HEAD)
        return self._part(packed)
