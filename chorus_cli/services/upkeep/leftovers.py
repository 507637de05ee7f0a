"""Remains of killed processes in the folders: temporary files, lock files of runs, and a restore that was decided."""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.text.phrases import counted, size_in_words
from chorus_cli.core.upkeep.findings import Finding, Mend, fine, note, wrong
from chorus_cli.storage.backups.restoring import STAGED, is_pending
from chorus_cli.storage.files import file_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from chorus_cli.services.upkeep.home_checks import Folders
    from chorus_cli.storage.backups.places import Places

_STALE_SECONDS = 3600
_RANDOM = "[a-z0-9_]{8}"
_WRITTEN = rf"\.chorus-({_RANDOM}|[0-9a-f]{{12}})\.tmp(-journal)?"
"""Files that replace another one, sessions, and copies of the log for a backup."""

_NEW_LOG = r"\.chorus\.db\.[0-9a-f]{12}\.new(-journal)?"
_SHIPPED_PERSONAS = rf"\.personas-{_RANDOM}"
_UNPACKED = rf"{re.escape(STAGED)}-{_RANDOM}"
_NEW_PERSONA = rf"\.persona-({_RANDOM}|[a-z0-9][a-z0-9-]{{0,39}})"
_REWRITTEN_BACKUP = rf"\.chorus-{_RANDOM}"
_COPIED_ATTACHMENT = r"\.[0-9a-f]{64}\.tmp"


class _Place(NamedTuple):
    """A folder, and the names that Chorus gives to temporary files in it, also ``deep`` in its folders."""

    folder: Path
    names: str
    is_deep: bool = False

    def found(self) -> Iterator[Path]:
        """Yield the files and folders with such names; links are no files of Chorus."""
        for folder, below, names in os.walk(self.folder):
            matching = {name for name in (*below, *names) if re.fullmatch(self.names, name)}
            yield from (path for path in map(Path(folder).joinpath, sorted(matching)) if not path.is_symlink())
            below[:] = [name for name in below if self.is_deep and name not in matching]


def _places(places: Places, folders: Folders) -> Iterator[_Place]:
    yield _Place(folders.data, f"{_WRITTEN}|{_NEW_LOG}|{_SHIPPED_PERSONAS}|{_UNPACKED}")
    yield from (_Place(each, _WRITTEN) for each in (folders.config, folders.state, folders.rescue))
    yield _Place(places.personas, _NEW_PERSONA)
    yield from (_Place(each, _WRITTEN, is_deep=True) for each in (places.personas, places.attachments))
    yield _Place(places.backups, f"{_WRITTEN}|{_REWRITTEN_BACKUP}")
    yield _Place(places.kept_attachments, _COPIED_ATTACHMENT, is_deep=True)


def check_leftovers(places: Places, folders: Folders, now: datetime) -> Iterator[Finding]:
    """Yield the findings about remains of killed processes."""
    if is_pending(places):
        told = "A restore is not complete. The next start of Chorus carries it on; the log is examined after that."
        yield wrong("restore", told, Mend.RESTORE)
    left = temporary_files(places, folders, now)
    if left:
        told = counted(len(left), "temporary file or folder", "temporary files and folders")
        size = size_in_words(sum(map(size_bytes, left)))
        others = ", such as" if len(left) > 1 else ":"
        yield note("leftovers", f"A killed Chorus has left {told} ({size}){others} {left[0]}.", Mend.LEFTOVERS)
    else:
        yield fine("leftovers", "There are no temporary files of a killed Chorus.")
    if runs := ended_runs(folders.run):
        told = counted(len(runs), "lock file")
        yield note("runs", f"Processes that have ended left {told} in {folders.run}.", Mend.RUNS)


def temporary_files(places: Places, folders: Folders, now: datetime) -> list[Path]:
    """Return the temporary files and folders that no process uses.

    Nothing in their folder was changed for an hour. A folder that a backup was unpacked in may wait for an answer for
    longer: it is left once no other Chorus runs.
    """
    found = list(dict.fromkeys(chain.from_iterable(each.found() for each in _places(places, folders))))
    outer = [path for path in found if not {*path.parents} & {*found}]
    # Looked at after the list is made: the maker of a folder in it had its lock before.
    is_alone = not running(folders.run)
    newest: dict[Path, float] = {}
    for path in outer:
        newest[path.parent] = max(newest.get(path.parent, 0.0), _changed_at(path))
    oldest_kept = now.timestamp() - _STALE_SECONDS
    return [path for path in outer if (is_alone if path.name.startswith(STAGED) else newest[path.parent] < oldest_kept)]


def running(run_folder: Path) -> tuple[str, ...]:
    """Return the runs whose processes are alive, by their lock files; one that cannot be opened counts as locked."""
    if not run_folder.is_dir():
        return ()
    try:
        return file_lock.held_in(run_folder)
    except OSError as error:
        return (str(error),)


def ended_runs(run_folder: Path) -> tuple[Path, ...]:
    """Return the lock files of processes that have ended."""
    with suppress(OSError):
        return file_lock.left_in(run_folder)
    return ()


def delete(paths: Iterable[Path]) -> None:
    """Delete files, and folders with all that is in them.

    Raises:
        OSError: one cannot be deleted.
    """
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def size_bytes(path: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
    return sum(status.st_size for status in _statuses(path) if stat.S_ISREG(status.st_mode))


def _changed_at(path: Path) -> float:
    """Return the newest change of a file, or in a folder, in seconds since 1970."""
    return max((status.st_mtime for status in _statuses(path)), default=0.0)


def _statuses(path: Path) -> Iterator[os.stat_result]:
    """Yield the facts about a file, or a folder and all in it; another process may delete some meanwhile."""
    for each in (path, *path.rglob("*")):
        try:
            yield each.lstat()
        except OSError:
            continue
