"""The attachments that rows of messages name, and the texts in files."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from chorus_cli.log.rules import attachments as log_attachments

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

_PDF_MARK = b"%PDF-"
_MOST_BYTES = 100_000_000


def named_attachments(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the SHA-256 of all attachments that messages name."""
    stored = connection.execute("SELECT attachments FROM messages WHERE attachments IS NOT NULL")
    return frozenset(each.sha256 for (text,) in stored for each in attachments_in(text))


def attachments_in(text: str) -> tuple[log_attachments.Attachment, ...]:
    """Return the attachments in a row of a message; none if it is damaged."""
    with suppress(ValueError, TypeError):
        return log_attachments.from_text(text)
    return ()


def is_pdf(path: Path) -> bool:
    """Return whether a file begins like a PDF."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_PDF_MARK)) == _PDF_MARK
    return False


def text_of(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read or has over 100 MB."""
    with suppress(OSError):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MOST_BYTES:
            return path.read_text(encoding="utf-8", errors="replace")
    return ""
