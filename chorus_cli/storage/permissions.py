"""Files and folders that permissions keep the user from: looked for without an error, and the advice that helps."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeGuard

from chorus_cli.core.text.phrases import enumerated

MOST_NAMED = 3
"""The most paths that a sentence and its command name."""


def is_there(path: Path) -> bool:
    """Return whether there is a file or folder, as far as can be seen."""
    try:
        return path.exists()
    except OSError:
        return False


def is_refused(path: Path) -> bool:
    """Return whether permissions keep a file or a folder that is there from being read."""
    try:
        needed = os.R_OK | os.X_OK if path.is_dir() else os.R_OK
        return path.exists() and not os.access(path, needed)
    except OSError:
        return True


def refused_folders(*roots: Path) -> list[Path]:
    """Return the folders, of these and all below them, that cannot be listed or entered, and not those in them.

    Links are not followed.
    """
    walked = (folder for root in roots for folder in _folders_below(root))
    found = {folder: None for folder in walked if is_refused(folder)}
    return [folder for folder in found if found.keys().isdisjoint(folder.parents)]


def _folders_below(root: Path) -> Iterator[Path]:
    yield root
    for folder, below, _ in os.walk(root):
        yield from (path for name in below if not (path := Path(folder, name)).is_symlink())


def access_advice(*paths: Path) -> str:
    """Return a sentence with the command that gives the user access to files, or to folders and all in them.

    If a folder on the way to one cannot be entered, that is what the command opens. It names a few paths at most.
    """
    places = [barrier(path) for path in paths[:MOST_NAMED]]
    is_file = len(places) == 1 and is_there(places[0]) and places[0].is_file()
    names = " ".join(shlex.quote(str(place)) for place in dict.fromkeys(places))
    return f"Give yourself access with: chmod {'600' if is_file else '-R u+rwX'} {names}"


def closed_paths(paths: Sequence[Path]) -> str:
    """Return the names of some paths as a list, a few at most and the number of the others."""
    others = len(paths) - MOST_NAMED
    more = [f"{others:,} {'other' if others == 1 else 'others'}"] if others > 0 else []
    return enumerated([*map(str, paths[:MOST_NAMED]), *more])


def is_refusal(error: BaseException) -> TypeGuard[PermissionError]:
    """Return whether an error says that permissions keep the user from a file or folder, which it names."""
    return isinstance(error, PermissionError) and isinstance(error.filename, str | bytes)


def advised(error: Exception) -> str:
    """Return the sentences of an error, with the command that helps if it is due to permissions of the user's files."""
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
    """Return the sentences about a file or folder that the user may not reach."""
    path = error.filename2 or error.filename
    reason = f"{path or 'A file'} cannot be used: {error.strerror or error}."
    if not path:
        return f"{reason} Check the permissions of Chorus's folders."
    return f"{reason} {access_advice(Path(os.fsdecode(path)))}" if isinstance(error, PermissionError) else reason


def barrier(path: Path) -> Path:
    """Return the outermost folder on the way to a path that cannot be entered; the path itself if there is none."""
    ways = reversed(path.absolute().parents)
    return next((folder for folder in ways if is_there(folder) and not os.access(folder, os.X_OK)), path)
