"""A backup: a zip archive with the log, the personas with their sessions, defaults, commands, and maybe attachments.

A backup gets its name only after all of it is written, so a file with that name is complete. ``manifest.json`` lists
the contents. The log is checked before it is packed. A daily backup is made at the first start of a day; old ones are
deleted. The attachments of daily backups are in a folder beside them, each once, as a hard link or a copy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import date, datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import BackupError, DatabaseDamagedError, DatabaseFullError
from chorus_cli.core.text.phrases import first_few, size_in_words
from chorus_cli.core.time import timestamps
from chorus_cli.machine.paths import Paths
from chorus_cli.sessions.files import SESSIONS_FOLDER
from chorus_cli.storage import files
from chorus_cli.storage.file_lock import try_lock
from chorus_cli.storage.migrations import made_by_newer
from chorus_cli.storage.permissions import MOST_NAMED, access_advice, refused_folders
from chorus_cli.stores.listing import ATTACHMENTS, DATABASE, FILES, KEPT_ATTACHMENTS, PERSONAS, home_in
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.salvage.examination import BackupStoppedError

MANIFEST = "manifest.json"
FORMAT = 1
_DATABASE_BEGINNING, _ZIP_BEGINNING = b"SQLite format 3\0", b"PK"
ANOTHER = "Choose another backup; nothing was changed."
STOPPED = "The backup was stopped; no part of it was kept."
DAMAGED = "damaged-"
"""The beginning of the names of damaged logs that are kept, and of archives with the files beside such a log."""

LOCK = ".lock"
"""The file in the folder of the backups that is locked while a backup is made or a purge is carried out.

Without the lock, a purge would delete the copies that a backup in progress needs, and would overlook the backup.
"""

DAILY, WEEKLY = 7, 4
"""How many daily backups are kept, and how many earlier weeks keep one backup each."""

_DAILY = re.compile(r"daily-(\d{4}-\d{2}-\d{2})\.zip")
_LOG = "chorus.db"
_CHUNK_BYTES = 1_000_000
_LARGEST_MANIFEST_BYTES = 64_000_000
_HIGHEST_RATIO = 100
"""A large backup may unpack to this many times its size. Logs shrink to a third, attachments hardly at all."""

_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError, KeyError, NotImplementedError, RuntimeError)


class Manifest(NamedTuple):
    """The contents of a backup. ``attachments`` names all attachments, even if the backup lacks them."""

    made_at: str
    messages: int
    threads: int
    newest: str | None
    personas: tuple[str, ...]
    sessions: int
    attachments: tuple[str, ...]
    holds_attachments: bool
    format: int = FORMAT


class Request(NamedTuple):
    """A backup to be made as the new file ``target``; ``copy_log`` copies a log that is not on this machine."""

    target: Path
    now: datetime
    holds_attachments: bool = True
    is_stopped: Callable[[], bool] = lambda: False
    copy_log: Callable[[Path, Callable[[], bool]], None] | None = None


def write(places: Paths, request: Request) -> Manifest:
    """Write a backup to a new file, whole or not at all, and return its contents."""
    with _drafts(places, request.target) as (copy, draft):
        copy_log = request.copy_log or partial(examination.copy_database, places.database)
        copy_log(copy, request.is_stopped)
        manifest = _manifest(places, request, copy)
        with _zipped(draft) as archive:
            archive.writestr(MANIFEST, json.dumps(manifest._asdict(), indent=2))
            _pack(archive, copy, _LOG, request.is_stopped)
            _pack_files(archive, places, request)
        return manifest


def write_files(places: Paths, request: Request) -> None:
    """Write only the files of a backup, without log and manifest, to a new file, whole or not at all."""
    with _drafts(places, request.target) as (_copy, draft), _zipped(draft) as archive:
        _pack_files(archive, places, request)


@contextmanager
def _drafts(places: Paths, target: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the paths for a copy of the log and for a draft, which becomes the new file ``target`` at the end."""
    if closed := refused_folders(places.personas, places.attachments):
        named = first_few(closed, MOST_NAMED)
        raise BackupError(f"No backup was made: {named} cannot be read. {access_advice(*closed)}")
    taken = BackupError(f"{target} exists already. Choose another name; nothing was written.")
    try:
        if target.exists():
            raise taken
        with files.temporary(folder_for_copy(places.backups, target)) as copy, files.temporary(target.parent) as draft:
            yield copy, draft
            try:
                files.give_name(draft, target)
            except FileExistsError as error:
                raise taken from error
    except DatabaseFullError as error:
        raise BackupError(
            f"There is no room left on the disk of {places.backups} for the backup {target}. Free some space and "
            "try again; no part of the backup was kept."
        ) from error
    except OSError as error:
        raise BackupError(
            f"The backup {target} cannot be written: {error.strerror or error}. No part of it was kept."
        ) from error


def read_manifest(path: Path) -> Manifest:
    """Return the contents of a backup."""
    with _readable(path) as archive:
        if archive.getinfo(MANIFEST).file_size > _LARGEST_MANIFEST_BYTES:
            raise ValueError("its list of contents is too long")
        read = json.loads(archive.read(MANIFEST))
        if read["format"] > FORMAT:
            raise BackupError(made_by_newer(path, "restore"))
        lists = {name: tuple(map(str, read[name])) for name in ("personas", "attachments")}
        return Manifest(**{**read, **lists})


def unpack(path: Path, folder: Path) -> None:
    """Unpack a backup into an empty folder. The checksums of the archive reveal damage."""
    if is_log_alone(path):
        unpack_log(path, home_in(folder).database)
        return
    with _readable(path) as archive:
        # The library writes nothing outside the folder, whatever the names in the archive.
        archive.extractall(folder)


def unpack_log(path: Path, target: Path) -> None:
    """Unpack only the log of a backup, or copy a backup that is a log alone."""
    if is_log_alone(path):
        with _told(path):
            shutil.copyfile(path, target)
        return
    with _readable(path) as archive, archive.open(_LOG) as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy, _CHUNK_BYTES)


def read_entries(path: Path, names: Collection[str], most_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of the files with these names in a backup. Files over ``most_bytes`` are left out."""
    with _readable(path) as archive:
        for entry in archive.infolist():
            if entry.filename in names and entry.file_size <= most_bytes:
                yield entry.filename, archive.read(entry)


def pack_again(folder: Path, target: Path) -> None:
    """Pack the contents of a backup that was unpacked into a folder."""
    with _zipped(target) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            _pack(archive, path, path.relative_to(folder).as_posix(), lambda: False)


def set_aside(places: Paths, stamp: str) -> Path:
    """Copy the log and its SQLite journal byte by byte into the folder of the backups and return the copy."""
    target = places.backups / f"{DAMAGED}{stamp}.db"
    try:
        files.make_folder(places.backups)
        for ending in ("", "-journal"):
            source = places.database.with_name(places.database.name + ending)
            if source.exists():
                files.copy_aside(source, target.with_name(target.name + ending))
    except OSError as error:
        raise BackupError(f"{places.database} cannot be copied to {target}: {error.strerror or error}.") from error
    return target


@contextmanager
def working_folder(parent: Path | None) -> Iterator[Path]:
    """Make a folder to unpack in, in ``parent`` or in the system's temporary folder, and delete it at the end."""
    folder = tempfile.TemporaryDirectory(prefix=files.PREFIX, dir=parent, ignore_cleanup_errors=True)
    with ExitStack() as again, folder as name:
        # The texts in the folder must be deleted, and the first try may fail, for example with too many open files.
        again.callback(files.remove, Path(name))
        yield Path(name)


def require_backup(typed: str) -> None:
    """Refuse a file that does not begin like a backup."""
    is_log_alone(Path(typed).absolute())


def is_log_alone(path: Path) -> bool:
    """Return whether a backup is a log alone, like a backup before an upgrade. Refuse a file that is no backup."""
    with _told(path, "read"), files.opened_file(path) as file:
        beginning = file.read(len(_DATABASE_BEGINNING))
    if beginning != _DATABASE_BEGINNING and not beginning.startswith(_ZIP_BEGINNING):
        raise BackupError(f"{path} is not a Chorus backup. {ANOTHER}")
    return beginning == _DATABASE_BEGINNING


@contextmanager
def _readable(path: Path) -> Iterator[zipfile.ZipFile]:
    with _told(path), zipfile.ZipFile(path) as archive:
        # The library unpacks no entry beyond its size in the table of contents.
        size_bytes = sum(entry.file_size for entry in archive.infolist())
        if size_bytes > max(limits.BACKUP.most, path.stat().st_size * _HIGHEST_RATIO):
            size = size_in_words(size_bytes)
            raise BackupError(f"{path} would unpack to {size}, far more than a backup of its size holds. {ANOTHER}")
        yield archive


@contextmanager
def _told(path: Path, done: str = "unpacked") -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise BackupError(f"{path} is damaged, or is not a Chorus backup ({error}). {ANOTHER}") from error
    except OSError as error:
        raise BackupError(f"{path} cannot be {done}: {error.strerror or error}. Nothing was changed.") from error


def _pack_files(archive: zipfile.ZipFile, places: Paths, request: Request) -> None:
    left_out = {DATABASE} if request.holds_attachments else {DATABASE, ATTACHMENTS}
    for store in FILES:
        if store.put and store not in left_out:
            for path, name in store.packed(places):
                # A file that is deleted meanwhile, such as a session, is left out.
                with suppress(FileNotFoundError):
                    _pack(archive, path, name, request.is_stopped)


@contextmanager
def _zipped(path: Path) -> Iterator[zipfile.ZipFile]:
    with path.open("wb") as file:
        # The log shrinks to a third; stronger compression would take several times as long.
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            yield archive
        file.flush()
        os.fsync(file.fileno())


def _manifest(places: Paths, request: Request, copy: Path) -> Manifest:
    with examination.opened(copy) as connection:
        if damage := examination.damage(connection, is_quick=True):
            raise DatabaseDamagedError(
                f"{places.database} is damaged ({damage[0]}), so no backup was made of it. chorus doctor repairs it."
            )
        found = examination.facts(connection)
    of_personas = [path.relative_to(places.personas).parts for path in PERSONAS.files(places)]
    personas = sorted({parts[0] for parts in of_personas})
    sessions = sum(SESSIONS_FOLDER in parts[1:-1] for parts in of_personas)
    attachments = tuple(path.relative_to(places.attachments).as_posix() for path in ATTACHMENTS.files(places))
    made_at = timestamps.to_text(request.now)
    return Manifest(made_at, *found, tuple(personas), sessions, attachments, request.holds_attachments)


def _pack(archive: zipfile.ZipFile, path: Path, name: str, is_stopped: Callable[[], bool]) -> None:
    # An archive can name no bytes that are not UTF-8: the file gets a name with escapes such as ``\xe9``.
    named = os.fsencode(name).decode(errors="backslashreplace")
    with path.open("rb") as source, archive.open(named, "w", force_zip64=True) as entry:
        while chunk := source.read(_CHUNK_BYTES):
            if is_stopped():
                raise BackupStoppedError(STOPPED)
            entry.write(chunk)


def folder_for_copy(backups: Path, target: Path) -> Path:
    """Return the folder for a copy of the log: ``backups`` if it can be written, else the folder of ``target``."""
    if not os.access(backups if backups.exists() else backups.parent, os.W_OK):
        return target.parent
    files.make_folder(backups)
    return backups


def daily_path(places: Paths, day: date) -> Path:
    """Return the path of the daily backup of a day."""
    return places.backups / f"daily-{day.isoformat()}.zip"


def make_daily(places: Paths, request: Request) -> Manifest | None:
    """Make a daily backup and delete old ones. Return ``None`` if it exists, or if a purge or another backup runs."""
    try:
        files.make_folder(places.backups)
        lock = try_lock(places.backups / LOCK)
        if lock is None:
            return None
        with lock:
            if request.target.exists():
                return None
            files.sweep_stale(places.backups)
            _keep_attachments(places)
            manifest = write(places, request)
            _prune(places)
            return manifest
    except OSError as error:
        raise BackupError(f"No backup can be made in {places.backups}: {error.strerror or error}.") from error


def listed(places: Paths) -> list[Path]:
    """Return the backups in the folder of backups, and the journals of damaged logs, oldest first."""
    found = {}
    for path in chain(*map(places.backups.glob, ("[!.]*.zip", "[!.]*.db", f"{DAMAGED}*.db-journal"))):
        # Another Chorus may delete a backup meanwhile.
        with suppress(OSError):
            if path.is_file():
                found[path] = path.stat().st_mtime
    return sorted(found, key=found.__getitem__)


def is_damaged(path: Path) -> bool:
    """Return whether a backup is a damaged log that was kept, or the files beside one."""
    return path.name.startswith(DAMAGED)


def _day(name: str) -> date | None:
    match = _DAILY.fullmatch(name)
    with suppress(ValueError):
        return date.fromisoformat(match[1]) if match else None
    return None


def _keep_attachments(places: Paths) -> None:
    """Link or copy new attachments beside the backups. An attachment is named by its hash, so it never changes."""
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
            files.write_atomically(kept, path.read_bytes())


def _prune(places: Paths) -> None:
    """Delete outdated daily backups, and the attachments beside them that no remaining daily backup names."""
    by_day = {day: path for path in listed(places) if (day := _day(path.name))}
    remaining = kept_days(by_day)
    for day, path in by_day.items():
        if day not in remaining:
            path.unlink(missing_ok=True)
    try:
        named = {name for day in remaining for name in read_manifest(by_day[day]).attachments}
    except BackupError:
        # A damaged backup may name any of the attachments.
        return
    for path in [*KEPT_ATTACHMENTS.files(places)]:
        if path.relative_to(places.kept_attachments).as_posix() not in named:
            path.unlink(missing_ok=True)


def kept_days(days: Iterable[date]) -> frozenset[date]:
    """Return the days whose backups are kept: the newest seven, and the newest day of each of four earlier weeks."""
    newest_first = sorted({*days}, reverse=True)
    daily, older = newest_first[:DAILY], newest_first[DAILY:]
    covered = {day.isocalendar()[:2] for day in daily}
    weekly: dict[tuple[int, int], date] = {}
    for day in older:
        # The newest day of a week comes first, and the others do not replace it.
        if day.isocalendar()[:2] not in covered:
            weekly.setdefault(day.isocalendar()[:2], day)
    return frozenset((*daily, *islice(weekly.values(), WEEKLY)))
