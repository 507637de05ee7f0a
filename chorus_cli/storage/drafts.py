"""Drafts: files with texts that are open in the user's editor. Only the user may read them.

A draft stays until its text is stored or given up, so no failure loses the text. `sweep` deletes old drafts.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

from chorus_cli.core import limits
from chorus_cli.core.errors import EditorError
from chorus_cli.core.time.timeline import UNSENT_KEPT
from chorus_cli.storage.files import UNSENT_DRAFTS, make_folder, opened_file, sweep_stale, write_atomically

_PREFIX = "draft-"
_DAMAGED = "damaged-"
"""The beginning of the names of damaged sessions that Chorus 0.2.0 kept."""
_OWNED = re.compile(rf"{_PREFIX}([0-9]+-[0-9a-f]+(?:@[\w.]+)?)-")
_RENDERED = re.compile(r"\.([0-9a-f]{16})-")
_BACKUP_SUFFIX = "~"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")

# Errors of opening a draft that an editor has replaced by a link, a folder or a pipe.
_REPLACED = {
    errno.ELOOP: "it is a symbolic link now",
    errno.EISDIR: "it is no longer a file",
    errno.EINVAL: "it is no longer a file",
}


def create(folder: Path, name: str, text: str, run: str = "") -> Path:
    """Write a new draft and return its path; raise `EditorError` if that fails.

    The file's name ends in ``name``, so that editors choose the right syntax. The name also contains ``run``, the
    process that owns the draft ("" for none), and a hash of the text, by which `kept` recognises an edit.
    """
    data = text.encode()
    path = folder / f"{_PREFIX}{run}{'-' if run else ''}{os.urandom(4).hex()}.{_hash(data)}-{name}"
    try:
        make_folder(folder)
        # A later start of Chorus must find only whole drafts.
        write_atomically(path, data)
    except OSError as error:
        raise EditorError(f"No draft can be written in {folder}: {_reason(error)}.") from error
    return path


def read(path: Path) -> str:
    """Return the text of a draft with its byte order mark and line ends; raise `EditorError` if it cannot be read."""
    try:
        with opened_file(path, follows_link=False) as file:
            found = os.fstat(file.fileno())
            if found.st_uid != os.geteuid():
                raise _unreadable(path, "it belongs to another user now")
            if found.st_size > limits.DRAFT.most:
                raise _unreadable(path, f"it is larger than {limits.DRAFT.size}")
            return _decoded(path, file.read())
    except FileNotFoundError as error:
        raise EditorError(f"{path} is gone: the editor deleted it or saved it under another name.") from error
    except OSError as error:
        raise _unreadable(path, _REPLACED.get(error.errno or 0) or _reason(error)) from error


def persona_of(path: Path) -> str:
    """Return the slug that the name of a draft with an unsent message contains; "" for other drafts."""
    _, _, persona = path.name.removesuffix(_BACKUP_SUFFIX).partition("unsent-")
    return persona.removesuffix(".md")


def delete(path: Path) -> None:
    """Delete a draft and the backup ``NAME~`` that some editors make. If that fails, `sweep` deletes them later."""
    for leftover in (path, path.with_name(path.name + _BACKUP_SUFFIX)):
        with suppress(OSError):
            leftover.unlink()


def kept(folder: Path, now: datetime, is_alive: Callable[[str], bool]) -> tuple[Path, ...]:
    """Return the edited drafts that changed in the last seven days, oldest first; none if the folder cannot be read.

    Drafts of running processes (``is_alive``) are left out, because they may still be open.
    """
    oldest_kept = (now - UNSENT_KEPT).timestamp()
    paths = [path for path in _of_ended(folder, f"{_PREFIX}*", is_alive) if not path.name.endswith(_BACKUP_SUFFIX)]
    found = sorted((_changed_at(path), path) for path in paths)
    return tuple(path for changed_at, path in found if changed_at >= oldest_kept and not _is_unedited(path))


def unsent(folder: Path, is_alive: Callable[[str], bool]) -> tuple[tuple[Path, datetime], ...]:
    """Return drafts in which ended processes of an older Chorus kept unsent messages, and when each last changed."""
    paths = _of_ended(folder, UNSENT_DRAFTS, is_alive)
    return tuple((path, datetime.fromtimestamp(_changed_at(path), UTC)) for path in paths)


def is_owned(path: Path, is_alive: Callable[[str], bool]) -> bool:
    """Return whether a draft belongs to a process that still runs."""
    match = _OWNED.search(path.name)
    return match is not None and is_alive(match[1])


def sweep(folder: Path, now: datetime, is_alive: Callable[[str], bool]) -> None:
    """Delete drafts and leftovers of editors, such as swap files, that have not changed for seven days.

    Files of running processes (``is_alive``) stay. Temporary files of killed writes are deleted after an hour.
    """
    sweep_stale(folder)
    oldest_kept = (now - UNSENT_KEPT).timestamp()
    for path in folder.glob(f"*{_PREFIX}*"):
        if path.name.startswith(_DAMAGED) or is_owned(path, is_alive):
            continue
        if 0 < _changed_at(path) < oldest_kept:
            # Another process may sweep the same folder.
            with suppress(OSError):
                path.unlink()


def _of_ended(folder: Path, pattern: str, is_alive: Callable[[str], bool]) -> list[Path]:
    # An unreadable folder must not keep a chat from starting.
    with suppress(OSError):
        return [path for path in folder.glob(pattern) if not is_owned(path, is_alive)]
    return []


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def _is_unedited(path: Path) -> bool:
    match = _RENDERED.search(path.name)
    # A draft that cannot be read counts as edited.
    with suppress(OSError), opened_file(path, follows_link=False) as file:
        return match is not None and _hash(file.read(limits.DRAFT.most + 1)) == match[1]
    return False


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if data.startswith(_UTF_16_MARKS):
            raise _unreadable(path, "it was saved as UTF-16, not as UTF-8") from error
        line = data.count(b"\n", 0, error.start) + 1
        found = f"line {line} is not UTF-8 (it has the byte 0x{data[error.start]:02x})"
        raise _unreadable(path, found) from error


def _unreadable(path: Path, reason: str) -> EditorError:
    return EditorError(f"The draft cannot be read back: {reason}. It is kept in {path}.")


def _changed_at(path: Path) -> float:
    """Return when a regular file was last changed, in seconds since 1970; 0 if there is none at ``path``."""
    try:
        found = path.lstat()
    except OSError:
        return 0.0
    return found.st_mtime if stat.S_ISREG(found.st_mode) else 0.0


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
