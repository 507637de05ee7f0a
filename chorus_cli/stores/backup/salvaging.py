"""A damaged log beside the backups: salvaged into a new one, with the rows of the newest sound backup."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import BackupError, StorageError
from chorus_cli.storage.migrations import is_newer
from chorus_cli.stores.backup import archive, daily
from chorus_cli.stores.backup.archive import DATABASE
from chorus_cli.stores.backup.restoring import draft_folder
from chorus_cli.stores.salvage import copying, examination, salvage, soundness
from chorus_cli.stores.salvage.examination import NOTHING_PURGED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.stores.backup.places import Places
    from chorus_cli.stores.salvage.copying import OpenDatabase
    from chorus_cli.stores.salvage.examination import Purged
    from chorus_cli.stores.salvage.salvage import Counts


class Salvaged(NamedTuple):
    """A salvaged log in ``folder``, and the backup that rows were brought from, if there is one."""

    folder: Path
    counts: Counts
    backup: Path | None


@contextmanager
def salvaged(places: Places) -> Iterator[Salvaged]:
    """Salvage the log into a new one, with the newest sound backup; unless put in place it is deleted in the end.

    Raises:
        BackupError: there is no room for it.
        StorageError: nothing could be read.
    """
    folder = draft_folder(places)
    try:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            damaged, work = Path(name) / "damaged.db", Path(name)
            _copy_whole(places.database, damaged)
            source = _Source(places, work / "backup.db")
            counts = salvage.salvage(damaged, folder / DATABASE, source.log(), source.log)
        (folder / DATABASE).chmod(0o600)
        yield Salvaged(folder, counts, source.backup)
    except OSError as error:
        raise BackupError(f"The log cannot be salvaged in {folder.parent}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Source:
    """The newest backup that may give rows; its log is unpacked to ``path``."""

    def __init__(self, places: Places, path: Path) -> None:
        self._places, self._path = places, path
        self.backup: Path | None = None

    def log(self, without: Purged = NOTHING_PURGED) -> Path | None:
        self.backup = newest_sound_log(self._places, self._path, without)
        return self._path if self.backup else None


def newest_sound_log(places: Places, target: Path, without: Purged = NOTHING_PURGED) -> Path | None:
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


def backup_with_missing(places: Places, connection: OpenDatabase) -> Path | None:
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


def _copy_whole(source: Path, target: Path) -> None:
    """Copy a database with its journal, whose rollback is a part of it; a missing one counts as empty."""
    for ending in ("", "-journal"):
        part = source.with_name(source.name + ending)
        if part.exists():
            shutil.copyfile(part, target.with_name(target.name + ending))
    target.touch()
