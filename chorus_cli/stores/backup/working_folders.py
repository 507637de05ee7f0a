"""Folders in which backups are unpacked and written anew: each is locked by its process as long as it is in use."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core.errors import BackupError, HomeError
from chorus_cli.storage import file_lock
from chorus_cli.storage.files import PREFIX, RANDOM, make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.storage.file_lock import FileLock

_SUFFIX = ".locked"
_LOCK = ".lock"
LOCKED = rf"\.chorus-{RANDOM}\{_SUFFIX}"
"""The names of folders with a lock in them, as a regular expression."""

TEMPORARY = rf"\.chorus-{RANDOM}(\{_SUFFIX})?"
"""The names of these folders, without the ending until they have a lock, as a regular expression."""


@contextmanager
def working_folder(parent: Path | None) -> Iterator[Path]:
    """Make a folder in ``parent``, or in the system's temporary folder, lock it, and delete it in the end.

    Raises:
        BackupError: it cannot be locked.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        # Nobody else knows the folder yet: the lock is free.
        with _held(folder / _LOCK):
            # Only a folder that is locked has a name by which others find it free once its process has ended.
            folder = folder.rename(folder.with_name(f"{folder.name}{_SUFFIX}"))
            yield folder
    finally:
        # An error may pass, such as that of too many open files, and the folder has texts that were to go.
        shutil.rmtree(folder, ignore_errors=True)
        # As soon as it is free, another process may delete it too.
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def _held(path: Path) -> FileLock:
    try:
        return file_lock.hold(path)
    except HomeError as error:
        raise BackupError(str(error)) from error


def folder_for_copy(backups: Path, target: Path) -> Path:
    """Return the folder of the backups for a copy of the log, or a new backup's own if that one cannot be written."""
    if not os.access(backups if backups.exists() else backups.parent, os.W_OK):
        return target.parent
    make_folder(backups)
    return backups


def is_locked(folder: Path) -> bool:
    """Return whether the process of a folder with a lock may still run."""
    return file_lock.may_be_locked(folder / _LOCK)


def delete_abandoned(parent: Path) -> None:
    """Delete the folders of processes that have ended; one that cannot be deleted stays."""
    for path in parent.glob(f"{PREFIX}*{_SUFFIX}"):
        if re.fullmatch(LOCKED, path.name) and path.is_dir() and not path.is_symlink() and not is_locked(path):
            shutil.rmtree(path, ignore_errors=True)
