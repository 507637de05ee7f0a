"""Daily backups: one at the first start of a day, of which the newest are kept.

Their attachments lie beside them, each once, as a further name of the same file or as a copy.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import BackupError
from chorus_cli.storage.file_lock import try_lock
from chorus_cli.storage.files import make_folder, sweep_stale
from chorus_cli.stores.backup import archive
from chorus_cli.stores.listing import ATTACHMENTS, KEPT_ATTACHMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from chorus_cli.machine.paths import Paths
    from chorus_cli.stores.backup.archive import Manifest, Request

LOCK = ".lock"
"""The file in the folder of the backups that is locked while one of a day is made."""

PURGE_LOCK = ".purge.lock"
"""The file in that folder that is locked while a purge is carried out, or a backup is made on request.

A purge deletes the temporary copies in the folder, and would miss a backup that has no name yet.
"""

DAILY, WEEKLY = 7, 4
"""The number of days, and of weeks before them, of which backups are kept."""

_DAILY = re.compile(r"daily-(\d{4}-\d{2}-\d{2})\.zip")


class Listed(NamedTuple):
    """A backup in their folder: its path, its size, and its day, if it is a daily one."""

    path: Path
    size_bytes: int
    modified: float
    day: date | None

    @property
    def is_damaged(self) -> bool:
        """Whether it is a damaged log that was kept."""
        return self.path.name.startswith(archive.DAMAGED)


def path_of(places: Paths, day: date) -> Path:
    """Return the path of the daily backup of a day."""
    return places.backups / f"daily-{day.isoformat()}.zip"


def make(places: Paths, request: Request) -> Manifest | None:
    """Make a daily backup and delete old ones; ``None`` if it is there, or another Chorus is making it."""
    try:
        make_folder(places.backups)
        lock = None if request.target.exists() else try_lock(places.backups / LOCK)
        if lock is None:
            return None
        with lock:
            if request.target.exists():
                return None
            sweep_stale(places.backups)
            _keep_attachments(places)
            manifest = archive.write(places, request)
            _prune(places)
            return manifest
    except OSError as error:
        raise BackupError(f"No backup can be made in {places.backups}: {error.strerror or error}.") from error


def listed(places: Paths) -> tuple[Listed, ...]:
    """Return the backups in their folder, oldest first."""
    found = []
    for path in (*places.backups.glob("[!.]*.zip"), *places.backups.glob("[!.]*.db")):
        # Another Chorus may delete one meanwhile.
        with suppress(OSError):
            if path.is_file():
                status = path.stat()
                found.append(Listed(path, status.st_size, status.st_mtime, _day(path.name)))
    return tuple(sorted(found, key=lambda each: each.modified))


def _day(name: str) -> date | None:
    match = _DAILY.fullmatch(name)
    with suppress(ValueError):
        return date.fromisoformat(match[1]) if match else None
    return None


def _keep_attachments(places: Paths) -> None:
    """Keep the attachments that no earlier backup has; their names are those of their bytes, which never change."""
    for path in ATTACHMENTS.files(places):
        kept = places.kept_attachments / path.relative_to(places.attachments)
        if kept.exists():
            continue
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            os.link(path, kept)
        except FileExistsError:
            continue
        except OSError:
            draft = kept.with_name(f".{kept.name}.tmp")
            shutil.copyfile(path, draft)
            draft.replace(kept)


def _prune(places: Paths) -> None:
    """Delete the daily backups that are not to be kept, and the attachments that none of the others names."""
    by_day = {each.day: each.path for each in listed(places) if each.day is not None}
    remaining = kept(day for day in by_day if day is not None)
    for day, path in by_day.items():
        if day not in remaining:
            path.unlink(missing_ok=True)
    try:
        named = {name for day in remaining for name in archive.read_manifest(by_day[day]).attachments}
    except BackupError:
        # A damaged backup may name any of them.
        return
    for path in [*KEPT_ATTACHMENTS.files(places)]:
        if path.relative_to(places.kept_attachments).as_posix() not in named:
            path.unlink(missing_ok=True)


def kept(days: Iterable[date]) -> frozenset[date]:
    """Return the days whose backups are kept: the newest seven, and the newest of each of four weeks before."""
    newest_first = sorted({*days}, reverse=True)
    daily, older = newest_first[:DAILY], newest_first[DAILY:]
    covered = {day.isocalendar()[:2] for day in daily}
    weekly: dict[tuple[int, int], date] = {}
    for day in older:
        # Of the days of a week the newest comes first; later ones do not replace it.
        if day.isocalendar()[:2] not in covered:
            weekly.setdefault(day.isocalendar()[:2], day)
    return frozenset((*daily, *islice(weekly.values(), WEEKLY)))
