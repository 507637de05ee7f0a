"""Checks of the files and folders around the log, and of what killed processes have left in them."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ChorusError
from chorus_cli.core.text.phrases import counted, size_in_words
from chorus_cli.editing.files import rescued_files
from chorus_cli.machine.paths import exposed
from chorus_cli.storage import file_lock
from chorus_cli.storage.files import is_stale, remove
from chorus_cli.storage.permissions import (
    MOST_NAMED,
    access_advice,
    closed_paths,
    is_refused,
    is_there,
    refused,
    refused_folders,
)
from chorus_cli.storage.store import is_writable
from chorus_cli.stores.backup import daily
from chorus_cli.stores.backup.restoring import is_pending
from chorus_cli.stores.listing import FILES, STAGED
from chorus_cli.stores.rules.findings import Finding, Repair, fine, note, wrong

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.machine.paths import Paths
    from chorus_cli.personas.service.personas import Personas

_LEAST_FREE_BYTES = 100_000_000
_STALE_DAYS = 8
_MOUNTED_READ_ONLY = "Its file system is mounted read-only: mount it so that it can be written."


def check_home(home: Paths, personas: Personas, now: datetime) -> Iterator[Finding]:
    """Yield the findings about everything but the log."""
    yield from unless_refused("home", _writable(home))
    yield from _accessible(home)
    yield _permissions(home)
    yield from unless_refused("disk", _room(home))
    yield from unless_refused("settings", _settings(personas))
    yield from unless_refused("backups", _backups(home, now))
    yield from unless_refused("rescue", _rescued(home.rescue))


def unless_refused(subject: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings, and one about the file or folder that permissions keep them from, if there is one."""
    try:
        yield from findings
    except OSError as error:
        yield wrong(subject, refused(error))


def _permissions(home: Paths) -> Finding:
    found = exposed(home)
    if not found:
        return fine("permissions", "Only you can read your files.")
    several = counted(len(found) - 1, "other file or folder", "other files and folders")
    others = f" and {several} in it" if len(found) > 1 else ""
    return wrong("permissions", f"Other users of this machine can get at {found[0]}{others}.", Repair.PERMISSIONS)


def _writable(home: Paths) -> Iterator[Finding]:
    """Yield a finding about the file or folder that keeps the log from being written, if it can be read."""
    path = home.database
    if not is_there(path) or is_refused(path) or is_writable(path):
        return
    barrier = home.data if os.access(path, os.W_OK) else path
    told = f"{barrier} cannot be written: everything can be read, and nothing can be stored."
    is_on_read_only_disk = os.statvfs(home.data).f_flag & os.ST_RDONLY
    yield wrong("home", f"{told} {_MOUNTED_READ_ONLY if is_on_read_only_disk else access_advice(barrier)}")


def _accessible(home: Paths) -> Iterator[Finding]:
    found = refused_folders(home.data, home.config, home.state)
    if found:
        again = "; then run chorus doctor again" if len(found) > MOST_NAMED else ""
        yield wrong("access", f"{closed_paths(found)} cannot be read. {access_advice(*found)}{again}")


def _room(home: Paths) -> Iterator[Finding]:
    place = next(path for path in (home.data, *home.data.parents) if path.exists())
    free = shutil.disk_usage(place).free
    size = home.database.stat().st_size if home.database.exists() else 0
    if free < max(_LEAST_FREE_BYTES, 2 * size):
        yield wrong("disk", f"Only {size_in_words(free)} are left on the disk of {home.data}. Make room there.")
    else:
        yield fine("disk", f"{size_in_words(free)} are left on the disk of {home.data}.")


def _settings(personas: Personas) -> Iterator[Finding]:
    try:
        known = personas.slugs()
    except ChorusError as error:
        yield wrong("settings", str(error))
        return
    warnings: list[str] = []
    for slug in known:
        try:
            warnings += personas.load(slug).warnings
        except ChorusError as error:
            warnings.append(str(error))
    for warning in dict.fromkeys(warnings):
        yield wrong("settings", warning)
    if not warnings:
        yield fine("settings", f"The settings of {counted(len(known), 'persona')} can be read.")


def _backups(home: Paths, now: datetime) -> Iterator[Finding]:
    if is_refused(home.backups):
        # Of a folder that the user may not look into there is a finding already.
        return
    found = [each for each in daily.listed(home) if not each.is_damaged]
    if not found:
        yield note("backups", "There is no backup yet. The chat makes one each day; chorus backup makes one now.")
        return
    newest = found[-1]
    age_days = int((now.timestamp() - newest.modified) // 86_400)
    total = size_in_words(sum(each.size_bytes for each in found))
    sentence = f"{counted(len(found), 'backup')} ({total}) in {home.backups}; the newest is {newest.path.name}"
    if age_days > _STALE_DAYS:
        yield note("backups", f"{sentence}, {age_days} days old. chorus backup makes one now.")
    else:
        yield fine("backups", f"{sentence}.")


def _rescued(folder: Path) -> Iterator[Finding]:
    if is_refused(folder):
        return
    found = rescued_files.find(folder)
    if found.unreadable:
        yield wrong("rescue", f"{found.unreadable[0]} holds texts that could not be stored, and cannot be read whole.")
    elif found.texts:
        told = f"{counted(len(found.texts), 'text')} that could not be stored in {closed_paths(found.read)}"
        yield wrong("rescue", f"{told}: /rescue in the chat shows them.")
    else:
        yield fine("rescue", "No file has a text that could not be stored.")


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

    Neither they nor other temporary files in the same folder were changed within an hour. A folder in which a restore
    has unpacked a backup may wait longer for an answer: it counts as left once no other Chorus runs.
    """
    found = list(dict.fromkeys(chain.from_iterable(each.leftovers(home) for each in FILES)))
    outer = [path for path in found if not {*path.parents} & {*found}]
    is_alone = not running(home.run)
    in_use = {
        path.parent
        for path in outer
        if not all(is_stale(status.st_mtime, now.timestamp()) for status in _statuses(path))
    }
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
    """Delete files, and folders with all that is in them."""
    for path in paths:
        remove(path)


def size_bytes(paths: Iterable[Path]) -> int:
    """Return the size of files, and of all files in folders."""
    files = (status for path in paths for status in _statuses(path) if stat.S_ISREG(status.st_mode))
    return sum(status.st_size for status in files)


def _statuses(path: Path) -> Iterator[os.stat_result]:
    """Yield the facts about a file, or a folder and all in it; another process may delete some meanwhile."""
    for each in (path, *path.rglob("*")):
        try:
            yield each.lstat()
        except OSError:
            continue
