"""Files that the user names: documents for the memory, and attachments of messages."""

from __future__ import annotations

from pathlib import Path

from chorus_cli.attachments.rules.recognition import LARGEST_BYTES as LARGEST_ATTACHMENT
from chorus_cli.attachments.rules.recognition import refuse_large
from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError, CommandError

ENDINGS = frozenset({".md", ".markdown", ".txt"})
LARGEST_BYTES = limits.MEMORY_DOCUMENT.most


def read(typed: str) -> tuple[str, str]:
    """Return the name and the text of a file, its path relative to the current folder.

    Raises:
        CommandError: it cannot be read, is too large, or is not UTF-8.
    """
    try:
        path = Path(typed).expanduser()
        if not path.is_file():
            raise CommandError(f"{path} {'is not a regular file' if path.exists() else 'does not exist'}.")
        # The size that the system tells is 0 for some files, and another while a file is written.
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise CommandError(f"{path} has over {limits.MEMORY_DOCUMENT.size}. Split it and import its parts.")
        return path.name, content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"{typed} is not UTF-8 (byte {error.start + 1}). Convert it first, with iconv.") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CommandError(f"{typed} cannot be read: {reason}.") from error


def is_file(typed: str) -> bool:
    """Return whether a path, relative to the current folder, is that of a file."""
    try:
        return Path(typed).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        return False


def is_there(typed: str) -> bool:
    """Return whether a path, relative to the current folder, is that of a file, a folder or a device."""
    try:
        return Path(typed).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def read_bytes(typed: str) -> tuple[str, bytes]:
    """Return the name and the bytes of a file to be attached, its path relative to the current folder.

    Raises:
        AttachmentError: it cannot be read, or is too large.
    """
    try:
        path = Path(typed).expanduser()
        if not path.is_file():
            raise AttachmentError(f"{path} {'is not a regular file' if path.exists() else 'does not exist'}.")
        refuse_large(path.name, path.stat().st_size)
        with path.open("rb") as file:
            return path.name, file.read(LARGEST_ATTACHMENT + 1)
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise AttachmentError(f"{typed} cannot be read: {reason}.") from error
