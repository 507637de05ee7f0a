"""The permissions of the user's data: folders 0700, files 0600, as a backup or a copy may not have left them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.text.phrases import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chorus_cli.machine.paths import Paths

_OTHERS = stat.S_IRWXG | stat.S_IRWXO

_FILES = ("chorus.db", "config.jsonc", "schema.json", ".chorus-", ".config.jsonc")
"""Beginnings of the names of files beside the folders, with their journals, locks and previous texts."""

# Folders that may hold thousands of files: while they are private, so are the files.
_LARGE = frozenset({"attachments", "backups", "sessions"})


class _Found(NamedTuple):
    """A file or folder with permissions for others, who can reach it if it ``is_exposed``: by the folders around it."""

    path: Path
    mode: int
    is_exposed: bool


def made_private(paths: Paths) -> str:
    """Take the permissions of other users from all that is kept; return a sentence if they could make use of any.

    Links and files of other users are left alone, and so is a folder of the user's choice that holds other things too.
    """
    wide = [found for root, is_exposed in _roots(paths) for found in _wide(root, is_exposed=is_exposed)]
    kept = [found for found in wide if not _narrow(found) and found.is_exposed]
    narrowed = [found for found in wide if found not in kept and found.is_exposed]
    told = []
    if narrowed:
        folders = sum(stat.S_ISDIR(found.mode) for found in narrowed)
        counts = ((folders, "folder"), (len(narrowed) - folders, "file"))
        both = " and ".join(counted(number, thing) for number, thing in counts if number)
        was, them = ("was", "it") if len(narrowed) == 1 else ("were", "them")
        told.append(f"{both} in {paths.data} {was} open to other users of this machine; now only you can read {them}.")
    if kept:
        told.append(f"Other users of this machine may read {kept[0].path}, and its permissions cannot be changed.")
    return " ".join(told)


def _roots(paths: Paths) -> Iterator[tuple[Path, bool]]:
    """Yield all that Chorus keeps, and whether it is exposed: whole folders, or its own things in one with others."""
    own = {path.name for path in (paths.personas, paths.attachments, paths.backups, paths.commands, paths.state)}
    if paths.state.parent != paths.data:
        yield paths.state, True
    for folder in dict.fromkeys((paths.data, paths.config)):
        with suppress(OSError):
            entries = list(folder.iterdir())
            kept = [entry for entry in entries if entry.name in own or entry.name.startswith(_FILES)]
            if len(kept) == len(entries):
                yield folder, True
            else:
                yield from ((entry, bool(folder.lstat().st_mode & _OTHERS)) for entry in kept)


def _wide(path: Path, *, is_exposed: bool) -> Iterator[_Found]:
    """Yield what has permissions for others, ``path`` and all below it."""
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
            return
        is_wide = bool(found.st_mode & _OTHERS)
        if is_wide:
            yield _Found(path, found.st_mode, is_exposed)
        if stat.S_ISDIR(found.st_mode) and (is_wide or path.name not in _LARGE):
            for entry in path.iterdir():
                yield from _wide(entry, is_exposed=is_exposed and is_wide)


def _narrow(found: _Found) -> bool:
    """Take the permissions of others; return whether that had an effect, which some file systems do not know."""
    try:
        found.path.chmod(stat.S_IMODE(found.mode) & ~_OTHERS)
        return not found.path.lstat().st_mode & _OTHERS
    except OSError:
        return False
