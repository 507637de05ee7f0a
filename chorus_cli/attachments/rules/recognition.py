"""Tells from a file's bytes, not from its name, its kind (text, PDF or picture), and its pixels or pages."""

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

# The formats that no provider takes: a position, the bytes that a file may have there, and the name of the format.
_REFUSED = (
    (0, (b"BM",), "a BMP picture"),
    (0, (b"II*\x00", b"MM\x00*"), "a TIFF picture"),
    (0, (b"PK\x03\x04",), "a zip archive or an office document"),
    (4, (b"ftypheic", b"ftypheix", b"ftypmif1", b"ftypavif"), "a HEIC or AVIF picture"),
)


class Facts(NamedTuple):
    """The media type of a file, the size of a picture in pixels, and the number of pages of a PDF (0: not known)."""

    media_type: str
    width: int = 0
    height: int = 0
    pages: int = 0


def recognised(name: str, data: bytes) -> Facts:
    """Recognise the bytes of the file called ``name``.

    Raises:
        AttachmentError: the bytes are empty, too many, cut short, or of no kind that a model takes.
    """
    if not data:
        raise AttachmentError(f"{name} is empty, so it was not attached.")
    refuse_large(name, len(data))
    if data.startswith(_PNG):
        return _png(name, data)
    if data.startswith(_JPEG):
        return _jpeg(name, data)
    if data.startswith(_GIF):
        return _gif(name, data)
    if data.startswith(_RIFF) and data[8:12] == _WEBP:
        return _webp(name, data)
    if _PDF in data[:_PDF_SEARCHED]:
        return _pdf(name, data)
    return _text(name, data)


def attachment_of(name: str, data: bytes, digest: str, media_type: str) -> Attachment:
    """Return the attachment for a file that another program has kept; its bytes decide the media type.

    ``media_type`` is kept if the bytes are not recognised. If the bytes are a text, it is kept if it names a text or a
    picture (such as SVG). A picture that is damaged or too large has no width, so a model is sent only its name.
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
    is_webp = beginning.startswith(_RIFF) and beginning[8:12] == _WEBP
    return is_webp or beginning.startswith((_PNG, _JPEG, *_GIF, _PDF))


def _png(name: str, data: bytes) -> Facts:
    if data[12:16] != _PNG_HEAD or _PNG_END not in data[-64:]:
        raise _broken(name, "PNG")
    return _picture(name, "PNG", int.from_bytes(data[16:20]), int.from_bytes(data[20:24]))


def _gif(name: str, data: bytes) -> Facts:
    if not data.rstrip(b"\x00\r\n").endswith(_GIF_END):
        raise _broken(name, "GIF")
    return _picture(name, "GIF", int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little"))


def _webp(name: str, data: bytes) -> Facts:
    if int.from_bytes(data[4:8], "little") + _RIFF_HEAD > len(data):
        raise _broken(name, "WebP")
    match data[12:16]:
        case b"VP8X":
            sides = int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            sides = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            sides = (int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF)
        case _:
            raise _broken(name, "WebP")
    return _picture(name, "WebP", *sides)


def _jpeg(name: str, data: bytes) -> Facts:
    place = 2
    while _JPEG_END in data[-4096:] and place + 9 <= len(data) and data[place] == _FILLING:
        marker = data[place + 1]
        if marker in _FRAMES:
            height, width = int.from_bytes(data[place + 5 : place + 7]), int.from_bytes(data[place + 7 : place + 9])
            return _picture(name, "JPEG", width, height)
        if marker == _FILLING:
            place += 1
        else:
            place += 2 if marker in _WITHOUT_LENGTH else 2 + max(2, int.from_bytes(data[place + 2 : place + 4]))
    raise _broken(name, "JPEG")


def _picture(name: str, kind: str, width: int, height: int) -> Facts:
    if not width or not height:
        raise _broken(name, kind)
    return Facts(f"image/{kind.lower()}", width, height)


def _pdf(name: str, data: bytes) -> Facts:
    if _PDF_END not in data[-2048:]:
        raise _broken(name, "PDF")
    return Facts("application/pdf", pages=sum(1 for _ in _PAGE.finditer(data)))


def _text(name: str, data: bytes) -> Facts:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _of_no_use(name, data, f"it is not UTF-8 (byte {error.start + 1})") from None
    if "\0" in text:
        raise _of_no_use(name, data, f"it has a zero byte (byte {data.index(0) + 1})")
    if not text.strip():
        raise AttachmentError(f"{name} has nothing but spaces, so it was not attached.")
    return Facts(_TEXT)


def _of_no_use(name: str, data: bytes, reason: str) -> AttachmentError:
    found = next((kind for place, signs, kind in _REFUSED if data.startswith(signs, place)), "")
    if found:
        return AttachmentError(f"{name} is {found}, which models do not take. Convert it to PNG, JPEG, PDF or text.")
    return AttachmentError(
        f"{name} is not a picture (PNG, JPEG, GIF, WebP), a PDF or text: {reason}. Convert it first."
    )


def _broken(name: str, kind: str) -> AttachmentError:
    return AttachmentError(f"{name} begins like a {kind} file, but is cut short or damaged, so it was not attached.")
