"""Makes backups: on request, and one a day in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeVar

from chorus_cli.core.errors import BackupError, StorageError
from chorus_cli.core.text.phrases import counted, enumerated, first_few, size_in_words
from chorus_cli.core.time import timestamps
from chorus_cli.machine.notifier import stoppable
from chorus_cli.machine.paths import Paths
from chorus_cli.machine.ports import Clock
from chorus_cli.storage import file_lock, files
from chorus_cli.storage.port import Engine
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.typed_paths import typed_path
from chorus_cli.stores.backup import archive
from chorus_cli.stores.backup.archive import Manifest, Request
from chorus_cli.stores.copying.log_copy import copied
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.salvage.examination import BackupStoppedError
from chorus_cli.stores.service.log_copies import fetch_attachments

T = TypeVar("T")


class Made(NamedTuple):
    """A backup that was made: its file, its size and its contents."""

    path: Path
    size_bytes: int
    manifest: Manifest

    def as_json(self) -> dict[str, object]:
        """Return file, size in bytes and contents of the backup as JSON."""
        return {"file": str(self.path), "bytes": self.size_bytes, **self.manifest._asdict()}

    def sentence(self) -> str:
        """Return a sentence for the user."""
        return f"Backed up {contents_in_words(self.manifest)}, to {self.path} ({size_in_words(self.size_bytes)})."


@dataclass(frozen=True, slots=True)
class Backups:
    """Makes each backup in a worker thread, with a connection of its own.

    A backup on request waits at most ``patience_seconds`` for a purge or another backup. A log on a ``server`` gets no
    daily backups.
    """

    places: Paths
    clock: Clock
    patience_seconds: float = 60.0
    server: Engine | None = None

    async def make(self, typed: str = "") -> Made:
        """Write a backup of everything to the file or folder ``typed``; "" means the folder of the daily backups."""
        now = self.clock.now()
        target = _target(typed, self.places.backups, f"chorus-{timestamps.local(now):%Y-%m-%d_%H%M%S}")

        copy_log = partial(_copy_of_server, self.server) if self.server else None

        def work(is_stopped: Callable[[], bool]) -> Manifest:
            with _without_purges(self.places, self.patience_seconds):
                return archive.write(self.places, Request(target, now, is_stopped=is_stopped, copy_log=copy_log))

        if self.server:
            await fetch_attachments(self.server, self.places.attachments)
        manifest = await stoppable(work)
        return Made(target, target.stat().st_size, manifest)

    async def make_daily(self) -> str:
        """Make the backup of today, unless there is one or the log is on a server, and check a sample of the log.

        Return a sentence about a failure or about damage, empty if all is well.
        """
        if self.server:
            return ""
        now = self.clock.now()
        day = timestamps.local(now).date()

        def work(is_stopped: Callable[[], bool]) -> tuple[int, ...]:
            request = Request(archive.daily_path(self.places, day), now, holds_attachments=False, is_stopped=is_stopped)
            if archive.make_daily(self.places, request) is None:
                return ()
            with examination.opened(self.places.database) as connection:
                return examination.sample(connection, day.toordinal())

        try:
            ids = await stoppable(work)
        except BackupStoppedError:
            return ""
        except (BackupError, StorageError) as error:
            return f"Today's backup was not made. {error}"
        if not ids:
            return ""
        named = first_few([f"#{id_}" for id_ in ids])
        message, differs, it = ("Message", "differs", "it") if len(ids) == 1 else ("Messages", "differ", "them")
        found = f"{message} {named} {differs} from the text that Chorus stored."
        return f"{found} chorus doctor says more and repairs {it}."


def _copy_of_server(server: Engine, copy: Path, is_stopped: Callable[[], bool]) -> None:
    def stop_if_asked(_rows: int, _of: int) -> None:
        if is_stopped():
            raise BackupStoppedError(archive.STOPPED)

    copy.unlink()
    copied(server, Sqlite(copy), stop_if_asked)


def contents_in_words(manifest: Manifest) -> str:
    """Return a phrase for the contents of a backup."""
    parts = [
        counted(manifest.messages, "message"),
        counted(len(manifest.personas), "persona"),
        counted(manifest.sessions, "saved session"),
    ]
    if manifest.attachments and manifest.holds_attachments:
        parts.append(counted(len(manifest.attachments), "attachment"))
    return enumerated(parts)


def keep_present(places: Paths, now: datetime) -> tuple[Path, ...]:
    """Back up the state before a restore; if the log is damaged or missing, copy it and the other files apart.

    Return the files made, none if there is nothing to keep.
    """
    stamp = f"{timestamps.local(now):%Y-%m-%d_%H%M%S}"
    request = Request(_free(places.backups, f"before-restore-{stamp}"), now, holds_attachments=False)
    log: tuple[Path, ...] = ()
    if places.database.exists():
        try:
            archive.write(places, request)
        except StorageError:
            log = (archive.set_aside(places, stamp),)
        else:
            return (request.target,)
    if not (places.personas.exists() or places.config_file.exists()):
        return log
    rest = _free(places.backups, f"{archive.DAMAGED}{stamp}")
    archive.write_files(places, request._replace(target=rest))
    return (*log, rest)


@contextmanager
def _without_purges(places: Paths, patience_seconds: float) -> Iterator[None]:
    """Lock out purges. If the folder of the backups cannot be written or locked, no purge can run anyway."""
    with ExitStack() as held:
        with suppress(OSError):
            files.make_folder(places.backups)
            lock = file_lock.wait_for(places.backups / archive.LOCK, patience_seconds)
            if lock is None:
                told = "A purge or another backup is under way, so nothing was written."
                raise BackupError(f"{told} {file_lock.LATER}")
            held.enter_context(lock)
        yield


def _free(folder: Path, stem: str) -> Path:
    """Return the path of a new archive, with a number if one was made in the same second."""
    names = (f"{stem}{f'-{number}' if number > 1 else ''}.zip" for number in count(1))
    return next(path for path in map(folder.joinpath, names) if not path.exists())


def _target(typed: str, folder: Path, stem: str) -> Path:
    """Return the path of the new file. ``typed`` names the file or its folder; if it is empty, ``folder`` is used."""
    if not typed:
        return _free(folder, stem)
    path = typed_path(typed).absolute()
    path = _free(path, stem) if typed.endswith("/") or path.is_dir() else path
    if not path.parent.is_dir():
        raise BackupError(f"There is no folder {path.parent}. Make it, or choose another place.")
    return path if path.suffix or path.exists() else path.with_name(f"{path.name}.zip")
