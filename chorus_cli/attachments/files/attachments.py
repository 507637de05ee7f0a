"""Stores the bytes of attachments under their SHA-256. Equal bytes are stored once, even if many messages name them.

A private chat keeps the bytes in memory; any other run keeps them in a folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError, PurgeError
from chorus_cli.log.rules.attachments import is_sha256
from chorus_cli.storage.files import make_folder, read_within, sync_folder, write_atomically

_PREFIX_LENGTH = 2


class AttachmentFolder(NamedTuple):
    """Keeps attachments in files below ``folder``."""

    folder: Path

    def store(self, data: bytes) -> str:
        """Store ``data`` durably, in a file that only its owner can read, unless it is stored; return its SHA-256."""
        digest = sha256(data).hexdigest()
        path = path_of(self.folder, digest)
        try:
            # A power cut, or a backup that was cut short, may have left a shorter file.
            if not path.is_file() or path.stat().st_size != len(data):
                make_folder(self.folder)
                make_folder(path.parent)
                write_atomically(path, data)
        except OSError as error:
            raise AttachmentError(f"The attachment cannot be kept in {self.folder}: {error.strerror}.") from error
        return digest

    def read(self, digest: str) -> bytes:
        """Return the bytes whose SHA-256 is ``digest``; raise an ``AttachmentError`` if they are gone or damaged."""
        path = path_of(self.folder, digest)
        try:
            data = read_within(path, limits.STORED_ATTACHMENT)
        except FileNotFoundError as error:
            raise AttachmentError(f"{path} is gone, so the attachment cannot be read.") from error
        except OSError as error:
            raise AttachmentError(f"{path} cannot be read: {error.strerror}.") from error
        if sha256(data).hexdigest() != digest:
            raise AttachmentError(f"{path} is damaged: its bytes have changed since it was stored.")
        return data

    def has(self, digest: str) -> bool:
        """Return whether the bytes with this SHA-256 are stored."""
        return path_of(self.folder, digest).is_file()


class AttachmentMemory:
    """Keeps the attachments of a private chat in memory."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}

    def store(self, data: bytes) -> str:
        """Store ``data`` and return its SHA-256."""
        digest = sha256(data).hexdigest()
        self.stored[digest] = data
        return digest

    def read(self, digest: str) -> bytes:
        """Return the bytes whose SHA-256 is ``digest``; raise an ``AttachmentError`` if they are missing."""
        if digest not in self.stored:
            raise AttachmentError("The attachment is not in this private chat.")
        return self.stored[digest]

    def has(self, digest: str) -> bool:
        """Return whether the bytes with this SHA-256 are stored."""
        return digest in self.stored


def delete(folder: Path, digests: Iterable[str]) -> None:
    """Delete the files of these attachments, if they exist; raise a ``PurgeError`` if a file cannot be deleted."""
    for digest in digests:
        path = path_of(folder, digest)
        try:
            if path.exists():
                path.unlink()
                sync_folder(path.parent)
        except OSError as error:
            raise PurgeError(f"{path} cannot be deleted: {error.strerror or error}.") from error


def path_of(folder: Path, digest: str) -> Path:
    """Return the path of the bytes with this SHA-256; the first two digits name a folder below ``folder``."""
    if not is_sha256(digest):
        raise AttachmentError(f"{digest!r} is not a SHA-256 in hexadecimal digits, so no attachment has it.")
    return folder / digest[:_PREFIX_LENGTH] / digest
