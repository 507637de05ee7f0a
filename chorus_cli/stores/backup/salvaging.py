"""A damaged log beside the backups: salvaged into a new one, with the rows of the newest sound backup."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core.errors import BackupError, StorageError
from chorus_cli.storage.errors import UNREADABLE
from chorus_cli.storage.migrations import is_newer
from chorus_cli.stores.backup import archive, daily
from chorus_cli.stores.backup.archive import DATABASE
from chorus_cli.stores.backup.restoring import draft_folder
from chorus_cli.stores.salvage import copying, examination, salvage, soundness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.machine.paths import Paths
    from chorus_cli.stores.salvage.copying import OpenDatabase
    from chorus_cli.stores.salvage.examination import Purged
    from chorus_cli.stores.salvage.salvage import Counts


@contextmanager
def salvaged(places: Paths) -> Iterator[tuple[Path, Counts]]:
    """Salvage the log into a new one in a folder of its own, which is deleted in the end unless it is put in place."""
    folder = draft_folder(places)
    try:
        yield folder, _salvaged(places, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _salvaged(places: Paths, folder: Path) -> Counts:
    try:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            damaged, backup = _rolled_back(places.database, Path(name) / "damaged.db"), Path(name) / "backup.db"
            new, unpack = folder / DATABASE, lambda purged: newest_sound_log(places, backup, purged)
            new.touch(mode=0o600)
            return salvage.salvage(damaged, new, backup, unpack)
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BackupError(
            f"The log cannot be salvaged in {places.database.parent}: {reason or error}. The damaged log is as it was; "
            "see that the disk has room and no faults, and run chorus doctor again."
        ) from error


def newest_sound_log(places: Paths, target: Path, without: Purged) -> Path | None:
    """Unpack the log of the newest sound backup to ``target`` and return the backup, ``None`` if there is none.

    Backups that hold rows ``without`` which they are wanted are passed over: their texts would come back.
    """
    for each in reversed(daily.listed(places)):
        target.unlink(missing_ok=True)
        try:
            if each.path.suffix == ".zip":
                archive.unpack_log(each.path, target)
            elif each.path.suffix == ".db" and not each.path.name.startswith(archive.DAMAGED):
                shutil.copyfile(each.path, target)
            else:
                continue
            with copying.opened_untrusted(target) as connection:
                copying.facts(connection)
                is_sound = not soundness.quick_fault(connection) and not is_newer(connection)
                if is_sound and not examination.holds(connection, without):
                    return each.path
        except (BackupError, StorageError):
            continue
    return None


def backup_with_missing(places: Paths, connection: OpenDatabase) -> Path | None:
    """Return the backup that a salvage takes rows from, if it has some that messages refer to and that are gone."""
    wanted = examination.missing(connection)
    wanted.pop("threads", None)
    if not wanted:
        return None
    with suppress(OSError), tempfile.TemporaryDirectory() as name:
        log = Path(name) / "backup.db"
        backup = newest_sound_log(places, log, examination.purged(connection))
        if backup is not None:
            with copying.opened_untrusted(log) as other:
                return backup if examination.has_any(other, wanted) else None
    return None


def _rolled_back(log: Path, copy: Path) -> Path:
    """Return the log, or a copy in which the transaction of a killed process is rolled back."""
    journal, copied = (path.with_name(f"{path.name}-journal") for path in (log, copy))
    if not journal.exists():
        return log
    shutil.copyfile(log, copy)
    shutil.copyfile(journal, copied)
    try:
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except UNREADABLE as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}:
            raise
    return copy
