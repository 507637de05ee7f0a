"""Files that are never torn: after a crash, a full disk or a power cut either the old text stands or the new one."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_PREFIX = ".chorus-"
_SUFFIX = ".tmp"
_STALE_SECONDS = 3600
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR


def write_atomically(path: Path, text: str | bytes) -> None:
    """Replace what ``path`` holds and make it last; a symlink stays one, only the owner may read the result.

    Raises:
        OSError: it could not be written; the old file is as it was.
    """
    target = Path(os.path.realpath(path))
    data = text.encode() if isinstance(text, str) else text
    descriptor, temporary = tempfile.mkstemp(_SUFFIX, _PREFIX, target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), _mode(target))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    sync_folder(target.parent)


def sweep_stale(folder: Path) -> None:
    """Delete what writes that were killed over an hour ago left in ``folder``; only files of this module's naming."""
    oldest_kept = time.time() - _STALE_SECONDS
    for leftover in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        # Another process may sweep the same folder.
        with suppress(OSError):
            if leftover.lstat().st_mtime < oldest_kept:
                leftover.unlink()


def _mode(target: Path) -> int:
    """Return the owner's permissions of ``target``, at least to read and write."""
    try:
        return target.stat().st_mode & stat.S_IRWXU | _PRIVATE
    except FileNotFoundError:
        return _PRIVATE


def sync_folder(folder: Path) -> None:
    """Make the new name last too: until then a power cut could bring back the old file."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
