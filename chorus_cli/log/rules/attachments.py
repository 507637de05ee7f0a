"""Attachments: files that belong to a message. The same bytes are stored once, under their SHA-256."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from chorus_cli.core.text.phrases import size_in_words

_REQUIRED = frozenset({"name", "media_type", "size_bytes", "sha256"})
_DIGEST = re.compile(rb"[0-9a-f]{64}")
_PDF = "application/pdf"
# All providers take these types. An import may bring pictures of other types; models get only their names.
_PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_TEXT_TYPES = frozenset({"application/json", "application/xml"})
_UNNAMED = "file"


class Kind(Enum):
    """The way a file is sent: a text within the message, a picture or PDF as a part, another file only by its name."""

    TEXT = auto()
    PICTURE = auto()
    PDF = auto()
    OTHER = auto()


ALL_SENT = frozenset({Kind.TEXT, Kind.PICTURE, Kind.PDF})
"""The kinds of files whose content can be sent."""


class Attachment(NamedTuple):
    """A file of a message: its name as the user knows it, its media type, its size, and the SHA-256 of its bytes.

    A picture has a ``width`` and a ``height`` in pixels, a PDF has ``pages``, a text has an estimate of its ``tokens``.
    Each is 0 if it is not known. ``server`` is the server that the file comes from; it is empty for a file of the user.
    """

    name: str
    media_type: str
    size_bytes: int
    sha256: str
    width: int = 0
    height: int = 0
    pages: int = 0
    tokens: int = 0
    server: str = ""

    @property
    def kind(self) -> Kind:
        """The way in which the file is sent."""
        if self.media_type in _PICTURE_TYPES:
            # An import may bring a damaged picture, whose width is unknown. A provider would refuse it.
            return Kind.PICTURE if self.width else Kind.OTHER
        if self.media_type == _PDF:
            return Kind.PDF
        is_text = self.media_type.startswith("text/") or self.media_type in _TEXT_TYPES
        return Kind.TEXT if is_text else Kind.OTHER

    @property
    def label(self) -> str:
        """The file's name and size, in one line without brackets: ``photo.png 1.2 MB``."""
        kept = "".join(sign if sign.isprintable() and sign not in "[]" else " " for sign in self.name)
        return f"{' '.join(kept.split()) or _UNNAMED} {size_in_words(self.size_bytes)}"

    @property
    def line(self) -> str:
        """The line that replaces the file where only text is shown: ``[attachment: photo.png 1.2 MB]``."""
        return attachment_line(self.label)


def attachment_line(label: str) -> str:
    """Return the line of an attachment with this label."""
    return f"[attachment: {label}]"


def is_sha256(text: str) -> bool:
    """Return whether a text is a SHA-256 in hexadecimal digits."""
    return _DIGEST.fullmatch(text.encode(errors="replace")) is not None


def digests_in(data: bytes) -> list[str]:
    """Return every text in ``data`` that looks like a SHA-256, even if the other bytes are damaged."""
    return [match[0].decode() for match in _DIGEST.finditer(data)]


def with_lines(content: str, attachments: Sequence[Attachment]) -> str:
    """Return a text followed by a line for each of its attachments."""
    return "\n".join(filter(None, (content, *(each.line for each in attachments)))) if attachments else content


def as_json(attachment: Attachment) -> dict[str, str | int]:
    """Return an attachment as JSON for a file or a row, without the numbers that are not known."""
    return {name: value for name, value in attachment._asdict().items() if value or name in _REQUIRED}


def to_text(attachments: Sequence[Attachment]) -> str:
    """Write the attachments of a message for its row."""
    return json.dumps([as_json(each) for each in attachments], ensure_ascii=False)


def from_text(text: str) -> tuple[Attachment, ...]:
    """Read the attachments of a row."""
    return tuple(Attachment(**each) for each in json.loads(text))
