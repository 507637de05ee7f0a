"""Finds the kind of a file (text, PDF or picture) and its pixels or pages from its bytes, not from its name."""

from __future__ import annotations

import re
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError
from chorus_cli.log.rules.attachments import Attachment, Kind

LARGEST_BYTES = limits.ATTACHMENT.most
"""The most bytes of a file that is attached; providers refuse larger requests."""

_TEXT = "text/plain"
_PNG, _PNG_HEAD, _PNG_END = b"\x89PNG\r\n\x1a\n", b"IHDR", b"IEND"
_JPEG, _JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"
_GIF, _GIF_END = (b"GIF87a", b"GIF89a"), b";"
_RIFF, _WEBP, _RIFF_HEAD = b"RIFF", b"WEBP", 8
_PDF, _PDF_END, _PDF_SEARCHED = b"%PDF-", b"%%EOF", 1024
_PAGE = re.compile(rb"/Type\s{0,8}/Page(?![a-zA-Z])")

# The markers that begin a frame, which holds the picture's size; three markers of this range begin no frame.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
_FILLING = 0xFF
_BROKEN = (0, 0)


class Facts(NamedTuple):
    """The media type of a file, the size of a picture in pixels, and the number of pages of a PDF (0: not known)."""

    media_type: str
    width: int = 0
    height: int = 0
    pages: int = 0


def recognised(name: str, data: bytes) -> Facts:
    """Recognise the bytes of the file called ``name``; raise an ``AttachmentError`` if no model takes them."""
    if not data:
        raise AttachmentError(f"{name} is empty, so it was not attached.")
    refuse_large(name, len(data))
    kind = _kind(data) or ("PDF" if _PDF in data[:_PDF_SEARCHED] and _decoded(data)[1] >= 0 else "")
    if not kind:
        return _text(name, data)
    if kind == "PDF" and _PDF_END in data[-2048:]:
        return Facts("application/pdf", pages=sum(1 for _ in _PAGE.finditer(data)))
    width, height = _SIDES[kind](data) if kind in _SIDES else (0, 0)
    if not width or not height:
        raise AttachmentError(f"{name} begins like a {kind} file, but is cut short or damaged, so it was not attached.")
    return Facts(f"image/{kind.lower()}", width, height)


def attachment_of(name: str, data: bytes, digest: str, media_type: str) -> Attachment:
    """Return the attachment for a file that another program has kept; its bytes decide the media type.

    If the bytes are not recognised, ``media_type`` is kept. If the bytes are text, the ``media_type`` of a text or
    picture (such as SVG) is kept. A damaged or too large picture has no width, so a model is sent only its name.
    """
    plain = Attachment(name, media_type, len(data), digest)
    try:
        facts = recognised(name, data)
    except AttachmentError:
        return plain
    if facts.media_type == _TEXT and (plain.kind is Kind.TEXT or media_type.startswith("image/")):
        return plain
    return plain._replace(media_type=facts.media_type, width=facts.width, height=facts.height, pages=facts.pages)


def refuse_large(name: str, size_bytes: int) -> None:
    """Raise an ``AttachmentError`` if a file is larger than an attachment may be."""
    if size_bytes > LARGEST_BYTES:
        raise AttachmentError(
            f"{name} is {size_bytes / 1e6:.1f} MB; the largest file that can be attached is "
            f"{LARGEST_BYTES / 1e6:g} MB. Make it smaller, or attach the part that matters."
        )


def is_picture(beginning: bytes) -> bool:
    """Return whether a file that begins with these bytes claims to be a picture or a PDF."""
    return bool(_kind(beginning))


def _kind(beginning: bytes) -> str:
    """Return the kind that a file claims to be by its first bytes; empty for a text."""
    if beginning.startswith(_RIFF) and beginning[8:12] == _WEBP:
        return "WebP"
    signs: dict[str, bytes | tuple[bytes, ...]] = {"PNG": _PNG, "JPEG": _JPEG, "GIF": _GIF, "PDF": _PDF}
    return next((kind for kind, sign in signs.items() if beginning.startswith(sign)), "")


def _of_png(data: bytes) -> tuple[int, int]:
    is_whole = data[12:16] == _PNG_HEAD and _PNG_END in data[-64:]
    return (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) if is_whole else _BROKEN


def _of_gif(data: bytes) -> tuple[int, int]:
    is_whole = data.rstrip(b"\x00\r\n").endswith(_GIF_END)
    return (int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")) if is_whole else _BROKEN


def _of_webp(data: bytes) -> tuple[int, int]:
    is_whole = int.from_bytes(data[4:8], "little") + _RIFF_HEAD <= len(data)
    match data[12:16] if is_whole else b"":
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return _BROKEN


def _of_jpeg(data: bytes) -> tuple[int, int]:
    place = 2
    while place + 9 <= len(data) and data[place] == _FILLING:
        marker = data[place + 1]
        if marker in _FRAMES:
            # Phones append a film of any length. The end of a thumbnail comes before the frame.
            if data.find(_JPEG_END, place) < 0:
                return _BROKEN
            return int.from_bytes(data[place + 7 : place + 9]), int.from_bytes(data[place + 5 : place + 7])
        if marker == _FILLING:
            place += 1
        else:
            place += 2 if marker in _WITHOUT_LENGTH else 2 + max(2, int.from_bytes(data[place + 2 : place + 4]))
    return _BROKEN


_SIDES = {"PNG": _of_png, "JPEG": _of_jpeg, "GIF": _of_gif, "WebP": _of_webp}
"""For each kind of picture the function that reads its width and height, which are 0 if the file is broken."""


def _decoded(data: bytes) -> tuple[str, int]:
    """Return a text in UTF-8, and the place of the first byte that does not belong into one; -1 if there is none."""
    try:
        return data.decode("utf-8-sig"), data.find(b"\0")
    except UnicodeDecodeError as error:
        return "", error.start


def _text(name: str, data: bytes) -> Facts:
    text, unfit = _decoded(data)
    if unfit >= 0:
        kinds = "a picture (PNG, JPEG, GIF, WebP), a PDF or text in UTF-8"
        raise AttachmentError(f"{name} is not {kinds} (byte {unfit + 1}). Convert it first.")
    if not text.strip():
        raise AttachmentError(f"{name} has nothing but spaces, so it was not attached.")
    return Facts(_TEXT)
