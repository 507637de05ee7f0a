"""Writes files that stay whole in a crash, on a full disk or in a power cut; rescues texts; reads files up to a limit.

Only regular files are opened for reading: a pipe may be silent for ever, and a device may never end.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from chorus_cli.core.limits import Limit

PREFIX, SUFFIX = ".chorus-", ".tmp"
"""The beginning and the end of a temporary file's name."""

UNSENT_DRAFTS = "draft-*unsent-*.md"
"""The pattern for the names of drafts in which an older Chorus kept unsent messages."""

RANDOM = "[a-z0-9_]{8}"
"""A regular expression for the random part that `tempfile` puts into a name."""

TEMPORARY = rf"\.chorus-{RANDOM}\.tmp"
"""A regular expression for the name of a temporary file."""

_STALE_SECONDS = 3600
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR


def write_atomically(path: Path, text: str | bytes) -> None:
    """Replace the content of ``path``, or of the file it links to, durably; only the owner may read the result."""
    target = Path(os.path.realpath(path))
    data = text.encode() if isinstance(text, str) else text
    with syncing(target.parent) as sync, _put_back(target):
        _replace(target, data)
        sync()


def sweep_stale(folder: Path) -> None:
    """Delete the temporary files in ``folder`` that killed writes have left, once they are stale (see `is_stale`)."""
    now = time.time()
    for leftover in folder.glob(f"{PREFIX}*{SUFFIX}"):
        # Another process may sweep the same folder.
        with suppress(OSError):
            if is_stale(leftover.lstat().st_mtime, now):
                leftover.unlink()


def is_stale(changed_at: float, now: float) -> bool:
    """Return whether a temporary file, last changed at ``changed_at``, is too old for a process to be writing it.

    Times are seconds since 1970. The limit is an hour. A file dated over an hour ahead, by a wrong clock, is stale too.
    """
    return abs(now - changed_at) > _STALE_SECONDS


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, durably and with access for the user only."""
    if folder.is_dir():
        return
    for place in (*(each for each in reversed(folder.parents) if not each.exists()), folder):
        place.mkdir(mode=0o700, exist_ok=True)
        sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder, or the bytes of a file, durable, so that a power cut cannot lose them."""
    with syncing(folder) as sync:
        sync()


@contextmanager
def syncing(folder: Path) -> Iterator[Callable[[], None]]:
    """Open a folder or a file, and yield a function that makes its names or bytes durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield partial(os.fsync, descriptor)
    finally:
        os.close(descriptor)


def give_name(draft: Path, target: Path) -> None:
    """Durably give the finished file ``draft`` the name ``target``; raise `FileExistsError` if that name is taken."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:
        # The file system has no hard links. A rename must not replace a file that another process has made.
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        draft.rename(target)
    sync_folder(target.parent)


def copy_aside(path: Path, copy: Path) -> None:
    """Copy a file durably to the new file ``copy``, which only the user can read."""
    with path.open("rb") as source, open(copy, "xb", opener=partial(os.open, mode=_PRIVATE)) as target:
        try:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
            sync_folder(copy.parent)
        except BaseException:
            with suppress(OSError):
                copy.unlink()
            raise


def remove(path: Path) -> None:
    """Delete a file, or a folder with all that is in it."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def rescue(folder: Path, now: datetime, record: Mapping[str, str]) -> Path | None:
    """Append ``record`` as a line of JSON to a file in ``folder``, or in the system's temporary folder if that fails.

    Return the file, or ``None`` if neither folder can be written to.
    """
    name = f"rescue-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    line = json.dumps(dict(record)) + "\n"
    return _appended(folder, f"{name}.jsonl", line) or _appended(None, f"{name}-{home_mark(folder)}.jsonl", line)


def home_mark(folder: Path) -> str:
    """Return eight hexadecimal digits that mark the rescue files of ``folder`` in the system's temporary folder."""
    return sha256(os.fsencode(folder.absolute())).hexdigest()[:8]


@contextmanager
def temporary(folder: Path) -> Iterator[Path]:
    """Yield the path of a new, empty, private file; at the end, delete the file at that path and its SQLite journal."""
    descriptor, name = tempfile.mkstemp(SUFFIX, PREFIX, folder)
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        for leftover in (name, f"{name}-journal"):
            with suppress(OSError):
                Path(leftover).unlink()


@contextmanager
def _put_back(target: Path) -> Iterator[None]:
    """If the block fails, give ``target`` its former content again, or delete it if it was missing before.

    A former file that could not be read is not brought back.
    """
    with ExitStack() as kept:
        is_new, present = not target.exists(), None
        with suppress(FileNotFoundError, PermissionError):
            present = kept.enter_context(target.open("rb"))
        try:
            yield
        except BaseException:
            with suppress(OSError):
                if is_new:
                    target.unlink(missing_ok=True)
                elif present and not os.path.samestat(os.fstat(present.fileno()), target.stat()):
                    _replace(target, present.read())
            raise


def _replace(target: Path, data: bytes) -> None:
    with temporary(target.parent) as draft:
        with draft.open("wb") as file:
            os.fchmod(file.fileno(), _mode(target))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)


def _mode(target: Path) -> int:
    """Return the owner's permissions of ``target``, with reading and writing added."""
    try:
        return target.stat().st_mode & stat.S_IRWXU | _PRIVATE
    except FileNotFoundError:
        return _PRIVATE


def _appended(folder: Path | None, name: str, line: str) -> Path | None:
    try:
        path = (folder or Path(tempfile.gettempdir())) / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _append(path, line)
    except OSError:
        return None
    for place in (path.parent, folder.parent) if folder else (path.parent,):
        # The text is stored, even if the sync of a folder fails.
        with suppress(OSError):
            sync_folder(place)
    return path


def _append(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            # Another process may have appended a line; then the file stays.
            if line.startswith(path.read_text(encoding="ascii")):
                path.unlink()
        raise


def read_within(path: Path, limit: Limit, *, follows_link: bool = True) -> bytes:
    """Return a regular file's bytes; if they exceed ``limit``, raise an ``OSError`` with the reason as ``strerror``."""
    with opened_file(path, follows_link=follows_link) as file:
        # The file may grow after its size was read.
        data = file.read(limit.most + 1) if os.fstat(file.fileno()).st_size <= limit.most else None
    if data is None or len(data) > limit.most:
        raise OSError(errno.EFBIG, f"it is larger than {limit.size}", str(path))
    return data


@contextmanager
def opened_file(path: Path, *, follows_link: bool = True) -> Iterator[BinaryIO]:
    """Open a regular file for reading; raise an ``OSError`` for anything else, also a link unless ``follows_link``."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follows_link else os.O_NOFOLLOW))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    with os.fdopen(descriptor, "rb") as file:
        yield file
