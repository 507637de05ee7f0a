"""Attachments: files that belong to a message, whose bytes are stored once, by their SHA-256."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Attachment(NamedTuple):
    """A file of a message: its name as the user knows it, its media type, its size, and the SHA-256 of its bytes."""

    name: str
    media_type: str
    size_bytes: int
    sha256: str


def to_text(attachments: Sequence[Attachment]) -> str | None:
    """Write the attachments of a message for its row; ``None`` if there are none."""
    return json.dumps([each._asdict() for each in attachments], ensure_ascii=False) if attachments else None


def from_text(text: str | None) -> tuple[Attachment, ...]:
    """Read the attachments of a row.

    Raises:
        ValueError, TypeError: they cannot be read.
    """
    return tuple(Attachment(**each) for each in json.loads(text)) if text else ()
