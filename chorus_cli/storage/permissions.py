"""Finds files and folders that the user has no permission to use, and advises how to get access to them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

MOST_NAMED = 3
"""The largest number of paths that a message or its command names."""


def is_there(path: Path) -> bool:
    """Return whether a file or folder exists; ``False`` if that cannot be found out."""
    try:
        return path.exists()
    except OSError:
        return False


def is_refused(path: Path) -> bool:
    """Return whether permissions keep the user from reading an existing file, or from listing or entering a folder."""
    try:
        needed = os.R_OK | os.X_OK if path.is_dir() else os.R_OK
        return path.exists() and not os.access(path, needed)
    except OSError:
        return True


def refused_folders(*roots: Path) -> list[Path]:
    """Return the outermost folders, among ``roots`` and all folders below them, that cannot be listed or entered."""
    walked = (folder for root in roots for folder in _folders_below(root))
    found = {folder: None for folder in walked if is_refused(folder)}
    return [folder for folder in found if found.keys().isdisjoint(folder.parents)]


def _folders_below(root: Path) -> Iterator[Path]:
    yield root
    for folder, below, _ in os.walk(root):
        yield from (path for name in below if not (path := Path(folder, name)).is_symlink())


def access_advice(*paths: Path) -> str:
    """Return a sentence with the command that gives the user access to files, or to folders with everything in them.

    If a folder above a path cannot be entered, the command names that folder instead. It names at most three places.
    """
    places = [barrier(path) for path in paths[:MOST_NAMED]]
    is_file = len(places) == 1 and is_there(places[0]) and places[0].is_file()
    names = " ".join(shlex.quote(str(place)) for place in dict.fromkeys(places))
    return f"Give yourself access with: chmod {'600' if is_file else '-R u+rwX'} {names}"


def is_refusal(error: BaseException) -> TypeGuard[PermissionError]:
    """Return whether an error is a `PermissionError` that names a file or folder."""
    return isinstance(error, PermissionError) and isinstance(error.filename, str | bytes)


def advised(error: Exception) -> str:
    """Return an error's sentences. If permissions of the user's own files caused it, add a command that helps."""
    cause, sentences = error.__cause__, str(error)
    if cause is None or not is_refusal(cause) or "chmod" in sentences:
        return sentences
    place = barrier(Path(os.fsdecode(cause.filename)))
    place = place if is_there(place) else place.parent
    return f"{sentences} {access_advice(place)}" if _is_shut_by_its_owner(place) else sentences


def _is_shut_by_its_owner(path: Path) -> bool:
    needed = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    return is_there(path) and path.stat().st_uid == os.geteuid() and not os.access(path, needed)


def refused(error: OSError) -> str:
    """Return sentences for an error of using a file or folder. If permissions caused it, add a command that helps."""
    path = error.filename2 or error.filename
    reason = f"{path or 'A file'} cannot be used: {error.strerror or error}."
    if not path:
        return f"{reason} Check the permissions of Chorus's folders."
    return f"{reason} {access_advice(Path(os.fsdecode(path)))}" if isinstance(error, PermissionError) else reason


def barrier(path: Path) -> Path:
    """Return the outermost folder above ``path`` that cannot be entered; ``path`` itself if there is none."""
    ways = reversed(path.absolute().parents)
    return next((folder for folder in ways if is_there(folder) and not os.access(folder, os.X_OK)), path)
