"""Unpacks the bodies of HTTP answers that are compressed although Chorus asks for uncompressed ones."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator

AS_IT_IS = "identity"
"""The value of ``Accept-Encoding`` in requests; it asks for no compression."""

# zlib recognises the headers of gzip and of its own format; browsers also accept "deflate" without a header.
_GZIP_OR_ZLIB, _WITHOUT_HEAD = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS
# The lower half of the first byte in zlib's own format; without a header, no compressor begins with these bits.
_SIGN_OF_ZLIB = 8
_KNOWN = ("gzip", "x-gzip", "deflate")
_PIECE_BYTES = 65_536


class UnpackingError(ValueError):
    """A body cannot be unpacked; the message says why, such as ``compressed more than once``."""


async def unpacked(pieces: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    """Yield a body in unpacked pieces; ``encoding`` is the ``Content-Encoding`` of the body.

    Unpacked pieces have at most 64 KiB. Damaged, repeated or unknown compression raises an ``UnpackingError``.
    """
    names = [name for name in map(str.strip, encoding.lower().split(",")) if name not in {"", AS_IT_IS}]
    if len(names) > 1:
        raise UnpackingError("compressed more than once")
    if names and names[0] not in _KNOWN:
        raise UnpackingError("compressed in a way that was not asked for")
    library = None
    async for packed in pieces:
        piece = packed
        if not names:
            yield piece
        elif library is None and piece:
            has_head = names != ["deflate"] or piece[0] & 15 == _SIGN_OF_ZLIB
            library = zlib.decompressobj(_GZIP_OR_ZLIB if has_head else _WITHOUT_HEAD)
        # Bytes after the end of the compressed data are ignored.
        while library is not None and not library.eof:
            try:
                part = library.decompress(piece, _PIECE_BYTES)
            except zlib.error:
                raise UnpackingError("not compressed as it says") from None
            if part:
                yield part
                # Unpacking all of a piece may take a second, so other tasks run in between.
                await asyncio.sleep(0)
            piece = library.unconsumed_tail
            if not piece and len(part) < _PIECE_BYTES:
                break
