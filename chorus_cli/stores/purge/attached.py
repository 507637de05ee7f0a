"""Texts in files."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PDF_MARK = b"%PDF-"
_MOST_BYTES = 100_000_000


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
