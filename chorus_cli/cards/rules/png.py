"""Cards in PNG pictures: a text chunk ``ccv3`` (version 3) or ``chara`` holds the JSON in base64."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterator, Mapping
from zlib import compress, crc32

from chorus_cli.core.errors import ImportFormatError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
NEW_KEYWORD, OLD_KEYWORD = "ccv3", "chara"

_HEAD = struct.Struct(">I4s")
_CRC_BYTES = 4
_TEXT, _END = b"tEXt", b"IEND"
_LONGEST_KEYWORD = 79
_DAMAGED = "The card in this picture is damaged."
_BLANKS = re.compile(rb"[\s\0]+")
_WIDTH, _HEIGHT = 256, 384


def card_json(picture: bytes) -> bytes | None:
    """Return the JSON in the chunk ``ccv3``, or else in ``chara``; ``None`` without either. Refuse a damaged card."""
    found = {keyword: chunk for kind, chunk in _chunks(picture) if (keyword := _keyword(kind, chunk))}
    chunk = found.get(NEW_KEYWORD, found.get(OLD_KEYWORD))
    if chunk is None:
        return None
    if crc32(chunk[4:-_CRC_BYTES]) != int.from_bytes(chunk[-_CRC_BYTES:]):
        raise ImportFormatError(_DAMAGED)
    value = _content(chunk).partition(b"\0")[2]
    try:
        return base64.b64decode(_BLANKS.sub(b"", value), validate=True)
    except binascii.Error:
        raise ImportFormatError(_DAMAGED) from None


def with_cards(picture: bytes, cards: Mapping[str, bytes]) -> bytes:
    """Return a picture with ``cards`` in place of its own cards; ``cards`` maps each keyword to a card's JSON."""
    kept = [chunk for kind, chunk in _chunks(picture) if kind != _END and not _keyword(kind, chunk)]
    texts = [_written(_TEXT, keyword.encode() + b"\0" + base64.b64encode(card)) for keyword, card in cards.items()]
    return b"".join([SIGNATURE, *kept, *texts, _written(_END, b"")])


def plain_picture(name: str) -> bytes:
    """Return a picture of one colour, which the name determines."""
    shade = crc32(name.encode("utf-8", "surrogatepass"))
    colour = bytes(96 + (shade >> shift) % 128 for shift in (0, 8, 16))
    header = struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 2, 0, 0, 0)
    rows = compress((b"\0" + colour * _WIDTH) * _HEIGHT, 9)
    chunks = (_written(b"IHDR", header), _written(b"IDAT", rows), _written(_END, b""))
    return SIGNATURE + b"".join(chunks)


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the bytes of each complete chunk of a picture, up to the chunk that ends it."""
    if not picture.startswith(SIGNATURE):
        raise ImportFormatError("This is not a PNG picture.")
    start, kind = len(SIGNATURE), b""
    while start + _HEAD.size <= len(picture) and kind != _END:
        length, kind = _HEAD.unpack_from(picture, start)
        chunk = picture[start : start + _HEAD.size + length + _CRC_BYTES]
        if len(chunk) < _HEAD.size + length + _CRC_BYTES:
            return
        yield kind, chunk
        start += len(chunk)


def _content(chunk: bytes) -> bytes:
    return chunk[_HEAD.size : -_CRC_BYTES]


def _keyword(kind: bytes, chunk: bytes) -> str:
    """Return the keyword of a chunk that holds a card; empty for any other chunk."""
    beginning = _content(chunk)[: _LONGEST_KEYWORD + 1] if kind == _TEXT else b""
    keyword = beginning.partition(b"\0")[0].decode("latin-1").strip().casefold()
    return keyword if keyword in {NEW_KEYWORD, OLD_KEYWORD} else ""


def _written(kind: bytes, content: bytes) -> bytes:
    return _HEAD.pack(len(content), kind) + content + struct.pack(">I", crc32(kind + content))
