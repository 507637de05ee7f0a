"""Locks between processes; the kernel frees a lock when the process that holds it ends, even by a kill."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

from chorus_cli.core.errors import HomeError, SettingsError

LATER = "Try again in a moment."
_PATIENCE_SECONDS = 10.0
_GLANCE_SECONDS = 1.0
"""How long `hold` waits: far longer than `is_locked` in another process holds its shared lock."""

_PAUSE_SECONDS = 0.01


FileLock: TypeAlias = BinaryIO
"""An open file whose lock this process holds until it closes the file."""


def try_lock(path: Path) -> FileLock | None:
    """Lock the file ``path``, or return ``None`` if it is locked already; a new file is private to its owner."""
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "rb")
        with ExitStack() as closing:
            closing.callback(file.close)
            if not _flock(file.fileno(), fcntl.LOCK_EX):
                return None
            if _is_file(file.fileno(), path):
                closing.pop_all()
                return file


def hold(path: Path, patience_seconds: float = _GLANCE_SECONDS) -> FileLock:
    """Lock the file ``path`` as the sign that this process is alive; raise `HomeError` if that fails."""
    try:
        lock = wait_for(path, patience_seconds)
    except OSError as error:
        raise HomeError(
            f"Chorus cannot keep the file {path} locked while it runs: {error.strerror or error}."
        ) from error
    if lock is None:
        raise HomeError(f"Another Chorus is using {path}. Start Chorus again in a moment.")
    return lock


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock on ``path``; a file that cannot be opened counts as locked.

    The test itself takes a shared lock, so two processes that test at the same time do not report each other.
    """
    try:
        with path.open("rb") as file:
            return not _flock(file.fileno(), fcntl.LOCK_SH)
    except (FileNotFoundError, IsADirectoryError, ValueError):
        # The name of a run in a damaged row may be empty, or contain a NUL.
        return False
    except OSError:
        return True


def held_in(folder: Path) -> tuple[str, ...]:
    """Return the names of the files in ``folder`` that are locked, by this process or others."""
    return tuple(sorted(path.name for path in folder.iterdir() if is_locked(path)))


def sweep(folder: Path) -> None:
    """Delete the lock files in ``folder`` that no process holds."""
    for path in folder.iterdir():
        lock = try_lock(path)
        if lock is not None:
            # The lock is held meanwhile, so no other process locks a file that is about to be deleted.
            with lock:
                path.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, patience_seconds: float = _PATIENCE_SECONDS) -> Iterator[None]:
    """Hold a lock on ``<name>.lock`` beside ``path``, so that no other Chorus changes the file.

    Each change replaces the file, so a lock on the file itself would stay with the old file.
    """
    lock = wait_for(path.with_name(f"{path.name}.lock"), patience_seconds)
    if lock is None:
        raise SettingsError(f"Another Chorus is changing {path} and has not finished yet. {LATER}")
    with lock:
        yield


def wait_for(path: Path, patience_seconds: float) -> FileLock | None:
    """Lock the file ``path``; return ``None`` if another process keeps it locked for ``patience_seconds``."""
    deadline = time.monotonic() + patience_seconds
    while True:
        lock = try_lock(path)
        if lock is not None or time.monotonic() >= deadline:
            return lock
        time.sleep(_PAUSE_SECONDS)


def _flock(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_file(descriptor: int, path: Path) -> bool:
    """Return whether ``path`` still names the open file; another process may have deleted or replaced the file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
