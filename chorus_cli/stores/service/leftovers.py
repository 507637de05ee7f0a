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
from chorus_cli.personas import files as persona_files
from chorus_cli.sessions import files as session_files
from chorus_cli.storage import file_lock, migrations
from chorus_cli.storage.files import TEMPORARY, is_stale
from chorus_cli.stores.backup import archive, daily, restoring
from chorus_cli.stores.backup.restoring import STAGED, is_pending
from chorus_cli.stores.rules.findings import Finding, Repair, fine, note, wrong

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from chorus_cli.machine.paths import Paths


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


def _searched(home: Paths) -> Iterator[_Place]:
    yield _Place(home.data, _any_of(migrations.TEMPORARY, persona_files.TEMPORARY_SHIPPED, restoring.TEMPORARY))
    yield from (_Place(each, TEMPORARY) for each in (home.data, home.config, home.state, home.rescue, home.drafts))
    yield _Place(home.personas, persona_files.TEMPORARY)
    yield _Place(home.personas, _any_of(TEMPORARY, session_files.TEMPORARY), is_deep=True)
    yield _Place(home.attachments, TEMPORARY, is_deep=True)
    yield _Place(home.backups, _any_of(archive.TEMPORARY, migrations.TEMPORARY_COPY))
    yield _Place(home.kept_attachments, daily.TEMPORARY, is_deep=True)


def _any_of(*names: str) -> str:
    return "|".join(names)


def check_leftovers(home: Paths, now: datetime) -> Iterator[Finding]:
    """Yield the findings about remains of killed processes."""
    if is_pending(home):
        told = "A restore is not complete. The next start of Chorus carries it on; the log is examined after that."
        yield wrong("restore", told, Repair.RESTORE)
    left = temporary_files(home, now)
    if left:
        told = counted(len(left), "temporary file or folder", "temporary files and folders")
        size = size_in_words(size_bytes(left))
        others = ", such as" if len(left) > 1 else ":"
        yield note("leftovers", f"A killed Chorus has left {told} ({size}){others} {left[0]}.", Repair.LEFTOVERS)
    else:
        yield fine("leftovers", "There are no temporary files of a killed Chorus.")
    if runs := ended_runs(home.run):
        told = counted(len(runs), "lock file")
        yield note("runs", f"Processes that have ended left {told} in {home.run}.", Repair.RUNS)


def temporary_files(home: Paths, now: datetime) -> list[Path]:
    """Return the temporary files and folders that no process uses.

    Neither they nor other temporary files beside them were changed within an hour. A folder that a backup was unpacked
    in to be restored may wait for an answer for longer: it is left once no other Chorus runs.
    """
    found = list(dict.fromkeys(chain.from_iterable(each.found() for each in _searched(home))))
    outer = [path for path in found if not {*path.parents} & {*found}]
    is_alone = not running(home.run)
    in_use = {path.parent for path in outer if not _is_stale(path, now)}
    return [path for path in outer if (is_alone if path.name.startswith(STAGED) else path.parent not in in_use)]


def running(run_folder: Path) -> tuple[str, ...]:
    """Return the runs whose processes are alive, by their lock files; one that cannot be opened counts as locked."""
    try:
        return file_lock.held_in(run_folder) if run_folder.is_dir() else ()
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


def size_bytes(paths: Iterable[Path]) -> int:
    """Return the size of files, and of all files in folders."""
    files = (status for path in paths for status in _statuses(path) if stat.S_ISREG(status.st_mode))
    return sum(status.st_size for status in files)


def _is_stale(path: Path, now: datetime) -> bool:
    """Return whether no process can still write a file, or any in a folder."""
    return all(is_stale(status.st_mtime, now.timestamp()) for status in _statuses(path))


def _statuses(path: Path) -> Iterator[os.stat_result]:
    """Yield the facts about a file, or a folder and all in it; another process may delete some meanwhile."""
    for each in (path, *path.rglob("*")):
        try:
            yield each.lstat()
        except OSError:
            continue
