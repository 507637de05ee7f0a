"""Cards in PNG pictures: a text chunk ``ccv3`` (version 3) or ``chara`` holds the JSON in base64."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from zlib import compress, crc32

from chorus_cli.core.errors import ImportFormatError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
NEW_KEYWORD, OLD_KEYWORD = "ccv3", "chara"

_HEAD = struct.Struct(">I4s")
_CRC_BYTES = 4
_TEXT, _END = b"tEXt", b"IEND"
_TEXTS = frozenset({_TEXT, b"zTXt", b"iTXt"})
_LONGEST_KEYWORD = 79
_BLANKS = re.compile(rb"[\s\0]+")
_WIDTH, _HEIGHT = 256, 384


class _Chunk(NamedTuple):
    """A chunk: its kind, and the positions of its head, its content and its end in the picture."""

    kind: bytes
    start: int
    content: slice
    end: int


def card_json(picture: bytes) -> bytes | None:
    """Return the JSON of the card in a picture, ``None`` without a card; a ``ccv3`` card has precedence."""
    found = {keyword: chunk for chunk in _chunks(picture) if (keyword := _keyword(picture, chunk)) is not None}
    chunk = found.get(NEW_KEYWORD, found.get(OLD_KEYWORD))
    if chunk is None:
        return None
    if chunk.kind != _TEXT:
        raise ImportFormatError(
            "The card in this picture is in a zTXt or iTXt chunk, and Chorus reads only tEXt chunks. "
            "Export the card again, as JSON."
        )
    (told,) = struct.unpack_from(">I", picture, chunk.content.stop)
    if told != crc32(picture[chunk.start + 4 : chunk.content.stop]):
        raise ImportFormatError("The card in this picture is damaged: its checksum is wrong.")
    value = picture[chunk.content].partition(b"\0")[2]
    try:
        return base64.b64decode(_BLANKS.sub(b"", value), validate=True)
    except binascii.Error:
        raise ImportFormatError("The card in this picture is damaged: it is not base64.") from None


def with_cards(picture: bytes, cards: Mapping[str, bytes]) -> bytes:
    """Return a picture with ``cards`` in place of its own cards; ``cards`` has the JSON of each by its keyword."""
    parts, last = [SIGNATURE], b""
    for chunk in _chunks(picture):
        if chunk.kind == _END:
            last = picture[chunk.start : chunk.end]
            break
        if _keyword(picture, chunk) is None:
            parts.append(picture[chunk.start : chunk.end])
    texts = [_written(_TEXT, keyword.encode() + b"\0" + base64.b64encode(card)) for keyword, card in cards.items()]
    return b"".join([*parts, *texts, last or _written(_END, b"")])


def plain_picture(name: str) -> bytes:
    """Return a picture of one colour, which the name determines."""
    shade = crc32(name.encode("utf-8", "surrogatepass"))
    colour = bytes(96 + (shade >> shift) % 128 for shift in (0, 8, 16))
    header = struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 2, 0, 0, 0)
    rows = compress((b"\0" + colour * _WIDTH) * _HEIGHT, 9)
    chunks = (_written(b"IHDR", header), _written(b"IDAT", rows), _written(_END, b""))
    return SIGNATURE + b"".join(chunks)


def _chunks(picture: bytes) -> Iterator[_Chunk]:
    """Yield the complete chunks of a picture, up to the chunk that ends it."""
    if not picture.startswith(SIGNATURE):
        raise ImportFormatError("This is not a PNG picture.")
    start, last = len(SIGNATURE), len(picture)
    while start + _HEAD.size + _CRC_BYTES <= last:
        length, kind = _HEAD.unpack_from(picture, start)
        content = start + _HEAD.size
        end = content + length + _CRC_BYTES
        if end > last:
            return
        yield _Chunk(kind, start, slice(content, content + length), end)
        if kind == _END:
            return
        start = end


def _keyword(picture: bytes, chunk: _Chunk) -> str | None:
    """Return the keyword of a chunk that holds a card, ``None`` for any other chunk."""
    if chunk.kind not in _TEXTS:
        return None
    beginning = picture[chunk.content.start : min(chunk.content.stop, chunk.content.start + _LONGEST_KEYWORD + 1)]
    keyword = beginning.partition(b"\0")[0].decode("latin-1").strip().casefold()
    return keyword if keyword in {NEW_KEYWORD, OLD_KEYWORD} else None


def _written(kind: bytes, content: bytes) -> bytes:
    return _HEAD.pack(len(content), kind) + content + struct.pack(">I", crc32(kind + content))
