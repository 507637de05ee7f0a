"""Small files of each kind that can be attached, whole and broken."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from hashlib import sha256

from chorus_cli.attachments.rules.recognition import recognised
from chorus_cli.core.errors import AttachmentError
from chorus_cli.log.rules.attachments import Attachment


def png(width: int = 2, height: int = 3, filling: bytes = b"") -> bytes:
    """Return a picture in PNG, all black, with ``filling`` in a chunk that programs pass over."""

    def piece(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(width)) * height)
    pieces = [piece(b"IHDR", head), piece(b"IDAT", rows), piece(b"IEND", b"")]
    if filling:
        pieces.insert(1, piece(b"teSt", filling))
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)


def jpeg(width: int = 640, height: int = 480) -> bytes:
    """Return the frame of a picture in JPEG, behind two segments and fill bytes."""
    application = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    table = b"\xff\xdb" + struct.pack(">H", 67) + bytes(65)
    request_settings = b"\xff\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + bytes(3)
    return b"\xff\xd8" + application + table + request_settings + b"\xff\xd9"


def gif(width: int = 40, height: int = 30) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3) + b";"


def webp(kind: bytes = b"VP8X") -> bytes:
    """Return the head of a picture of 800 by 600 in WebP."""
    heads = {
        b"VP8X": bytes(4) + (799).to_bytes(3, "little") + (599).to_bytes(3, "little"),
        b"VP8L": b"\x2f" + (799 | 599 << 14).to_bytes(4, "little"),
        b"VP8 ": bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", 800, 600),
    }
    piece = kind + struct.pack("<I", len(heads[kind])) + heads[kind]
    return b"RIFF" + struct.pack("<I", 4 + len(piece)) + b"WEBP" + piece


def pdf(pages: int = 2) -> bytes:
    kids = b" ".join(b"%d 0 R" % (3 + number) for number in range(pages))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, pages)]
    objects += [b"<< /Type /Page /Parent 2 0 R >>"] * pages
    body = b"".join(b"%d 0 obj\n%b\nendobj\n" % (number, each) for number, each in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer << /Root 1 0 R >>\n%%EOF\n"


FILES: Mapping[str, bytes] = {
    "photo.png": png(),
    "photo.jpg": jpeg(),
    "moving.gif": gif(),
    "photo.webp": webp(),
    "paper.pdf": pdf(),
    "notes.txt": b"one\n```\ntwo\n```\n",
}


def attachment(name: str, data: bytes | None = None) -> Attachment:
    """Return one of ``FILES``, or other bytes, as it is attached."""
    data = FILES[name] if data is None else data
    facts = recognised(name, data)
    return Attachment(name, facts.media_type, len(data), sha256(data).hexdigest(), *facts[1:])


def loaded(digest: str) -> bytes:
    found = next((data for data in FILES.values() if sha256(data).hexdigest() == digest), None)
    if found is None:
        raise AttachmentError("It is gone.")
    return found
