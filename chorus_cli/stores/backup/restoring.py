"""Restores a backup: all of it, or nothing, even if the process is killed.

Everything is unpacked and checked in a folder beside the log. The rename of that folder to ``STAGED`` decides the
restore. If the process is killed after the rename, the next start completes the restore.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from chorus_cli.core.errors import BackupError, DatabaseDamagedError, DatabaseTooNewError, HomeError
from chorus_cli.core.time import timestamps
from chorus_cli.machine.paths import STAGED, Paths
from chorus_cli.storage import file_lock, foreign_code
from chorus_cli.storage.files import sync_folder
from chorus_cli.storage.migrations import is_newer, made_by_newer
from chorus_cli.stores.backup import archive
from chorus_cli.stores.backup.archive import MANIFEST, Manifest
from chorus_cli.stores.listing import FILES, home_in
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.salvage.examination import OpenDatabase


class Staged(NamedTuple):
    """A backup that is unpacked in ``folder`` and checked.

    ``changed`` are the ids of messages that differ from their checksums. ``missing`` are attachments that the
    backup and the home lack. ``is_log_alone`` says that the backup is a database and nothing else. ``removed`` are
    phrases for the triggers, views and indexes that were removed from the log, because Chorus did not make them.
    """

    folder: Path
    manifest: Manifest
    changed: tuple[int, ...]
    missing: tuple[str, ...]
    is_log_alone: bool
    removed: tuple[str, ...]


@contextmanager
def staged(places: Paths, typed: str | Path, now: datetime) -> Iterator[Staged]:
    """Unpack and check a backup or a database alone. The unpacked files are deleted at the end unless put in place."""
    path = Path(typed).absolute()
    with draft_folder(places) as folder:
        try:
            manifest, removed, changed = _examined(path, folder, now)
            missing = _attachments_brought(places, path, folder, manifest)
        except OSError as error:
            reason = error.strerror or error
            raise BackupError(f"{path} cannot be unpacked in {folder}: {reason}. Nothing was changed.") from error
        yield Staged(folder, manifest, changed, missing, archive.is_log_alone(path), removed)


@contextmanager
def draft_folder(places: Paths) -> Iterator[Path]:
    """Make a folder to unpack in, and delete it at the end. First delete earlier ones: no other Chorus runs."""
    home = places.database.parent
    try:
        for leftover in home.glob(f"{STAGED}-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=f"{STAGED}-", dir=home, ignore_cleanup_errors=True)
    except OSError as error:
        raise BackupError(f"Nothing can be restored to {home}: {error.strerror}.") from error
    with folder as name:
        yield Path(name)


def put_in_place(places: Paths, folder: Path) -> None:
    """Replace log, personas and defaults by the contents of a folder; add its attachments. No other Chorus may run."""
    home = places.database.parent
    require_none_pending(places)
    try:
        for path in (*folder.rglob("*"), folder):
            if path.is_dir():
                path.chmod(0o700)
            sync_folder(path)
        folder.rename(home / STAGED)
        sync_folder(home)
        finish(places)
    except (OSError, HomeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        if (home / STAGED).exists():
            raise BackupError(f"The restore to {home} stopped: {reason}. The next start goes on with it.") from error
        raise BackupError(f"The backup cannot be restored to {home}: {reason}. Nothing was changed.") from error


def is_pending(places: Paths) -> bool:
    """Return whether a decided restore is not complete, so that files of two states lie side by side."""
    return (places.database.parent / STAGED).is_dir()


def require_none_pending(places: Paths) -> None:
    """Refuse to go on while a restore is not complete."""
    if is_pending(places):
        raise BackupError(
            f"A restore in {places.database.parent} is not complete. Start chorus once to complete it, "
            "and try again; nothing was changed."
        )


def finish(places: Paths) -> bool:
    """Carry out the restore that was decided; return whether there was one."""
    home = places.database.parent
    source = home / STAGED
    if not source.is_dir():
        return False
    places.backups.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file_lock.hold(places.backups / ".restore.lock", patience_seconds=10.0):
        if not source.is_dir():
            return False
        for store in FILES:
            staged_place = store.place(home_in(source))
            if store.put and staged_place.exists():
                store.put(staged_place, store.place(places))
        sync_folder(home)
        shutil.rmtree(source)
        # This may fail: if a crash brings the folder back, the folder has nothing left to move.
        with suppress(OSError):
            sync_folder(home)
    return True


def _examined(path: Path, folder: Path, now: datetime) -> tuple[Manifest, tuple[str, ...], tuple[int, ...]]:
    """Unpack a backup; return its contents, the foreign code removed, and the ids of messages with wrong checksums."""
    try:
        manifest = _unpacked(path, folder)
        with examination.opened(home_in(folder).database) as connection:
            removed = tuple(foreign_code.remove(connection))
            changed = _checked(path, connection)
            found = examination.facts(connection)
    except DatabaseDamagedError as error:
        # The sentence of the error is about the copy, and its advice is for the log in use.
        raise BackupError(f"{path} is damaged, or is not a Chorus backup. {archive.ANOTHER}") from error
    alone = Manifest(timestamps.to_text(now), *found, (), 0, (), holds_attachments=False)
    return manifest or alone, removed, changed


def _unpacked(path: Path, folder: Path) -> Manifest | None:
    if archive.is_log_alone(path):
        log = home_in(folder).database
        examination.copy_database(path, log)
        log.chmod(0o600)
        return None
    manifest = archive.read_manifest(path)
    archive.unpack(path, folder)
    (folder / MANIFEST).unlink()
    return manifest


def _checked(path: Path, connection: OpenDatabase) -> tuple[int, ...]:
    if is_newer(connection):
        raise DatabaseTooNewError(made_by_newer(path, "restore"))
    if changed := foreign_code.changed_tables(connection):
        raise BackupError(f"In the log in {path}, {changed}. {archive.ANOTHER}")
    if damage := examination.damage(connection):
        raise BackupError(f"The log in {path} is damaged ({damage[0]}). {archive.ANOTHER}")
    return examination.changed(connection)


def _attachments_brought(places: Paths, path: Path, folder: Path, manifest: Manifest) -> tuple[str, ...]:
    """Copy attachments that only the folder beside a backup has. Return the attachments that no place has."""
    missing, brought, beside = [], home_in(folder).attachments, home_in(path.parent).attachments
    for name in manifest.attachments:
        # The names in a manifest that Chorus did not write must not lead to other folders.
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise BackupError(f"{path} names an attachment outside of the backup: {name}. {archive.ANOTHER}")
        if (brought / name).exists() or (places.attachments / name).exists():
            continue
        if not (beside / name).is_file():
            missing.append(name)
            continue
        (brought / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(beside / name, brought / name)
    return tuple(missing)
