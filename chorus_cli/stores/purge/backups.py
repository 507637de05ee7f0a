"""Finds backups that still hold purged texts, and rewrites these backups."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from chorus_cli.core.errors import BackupError, DatabaseDamagedError, DatabaseTooNewError, StorageError
from chorus_cli.log.rules.log_acts import PurgedIds
from chorus_cli.machine.paths import Paths
from chorus_cli.storage import foreign_code, migrations
from chorus_cli.storage.files import sync_folder
from chorus_cli.storage.port import Connection
from chorus_cli.stores.backup import archive
from chorus_cli.stores.listing import ATTACHMENTS, KEPT_ATTACHMENTS, PurgedRows, home_in, rows_of
from chorus_cli.stores.purge import carrying_out, files
from chorus_cli.stores.purge.carrying_out import Changes
from chorus_cli.stores.purge.concerned import selected_by_words
from chorus_cli.stores.purge.files import Home
from chorus_cli.stores.rules.purging import NO_CRITERIA, WantedPurge
from chorus_cli.stores.salvage import examination

_UNREADABLE = (BackupError, StorageError, OSError, ValueError, KeyError)


class Sought(NamedTuple):
    """The rows of purges to look for in backups, and criteria without ids, such as the words of a search."""

    rows: PurgedRows = MappingProxyType({})
    criteria: WantedPurge = NO_CRITERIA


def rows_purged(connection: Connection) -> PurgedRows:
    """Return the rows that the purges of a log have overwritten. Raise `DatabaseDamagedError` if one cannot be read."""
    found = examination.purged(connection)
    if found.damaged:
        told = f"Operation {found.damaged[0]} of the journal, a purge, cannot be read: chorus doctor repairs it."
        raise DatabaseDamagedError(told)
    return rows_of(connection, found.ids)


def holding(places: Paths, sought: Sought) -> list[Path]:
    """Return the backups that hold ``sought`` texts, or cannot be read and so may hold them, oldest first."""
    return [path for path in archive.listed(places) if _holds(places, path, sought)]


def _holds(places: Paths, path: Path, sought: Sought) -> bool:
    rows, criteria = sought
    try:
        return _has_rows(places, path, rows) or (criteria != NO_CRITERIA and _has(places, path, criteria))
    except _UNREADABLE:
        return any(rows.values()) or criteria != NO_CRITERIA


def _has_rows(places: Paths, path: Path, rows: PurgedRows) -> bool:
    with _folder_for_copies(places) as folder:
        log = home_in(folder).database
        archive.unpack_log(path, log)
        with examination.opened_untrusted(log) as connection:
            return any(_held(connection, rows))


def _has(places: Paths, path: Path, criteria: WantedPurge) -> bool:
    """Return whether a purge by these criteria would change a backup, by trying it on a copy."""
    with _folder_for_copies(places) as folder:
        archive.unpack(path, folder)
        with _migrated(folder) as connection:
            wanted = _changes(connection, places, folder, Sought(criteria=criteria))
            return any((*wanted.found.ids, wanted.files, wanted.lost_sessions, _dropped(folder, wanted)))


def purged_since(log: Path, backup: Path) -> int:
    """Return how many messages of a backup were purged in the present log; 0 if one of the two cannot be read."""
    # A restore must be possible whatever the damage to the present log.
    with suppress(StorageError, ValueError, TypeError, KeyError):
        with examination.opened(log) as connection:
            rows = rows_purged(connection)
        with examination.opened_untrusted(backup) as connection:
            return len(_held(connection, rows).messages)
    return 0


def rewrite_all(places: Paths, sought: Sought, now: datetime) -> tuple[int, list[str]]:
    """Rewrite the backups that hold ``sought`` texts. Return how many were rewritten, and sentences about failures."""
    held, told = holding(places, sought), []
    for path in held:
        try:
            rewrite(places, path, sought, now)
        except _UNREADABLE as error:
            reason = f"{error.strerror or error}." if isinstance(error, OSError) else error
            told.append(f"{path} may still have the texts. {reason} Mend that and try again, or delete the backup.")
    return len(held) - len(told), told


def rewrite(places: Paths, path: Path, sought: Sought, now: datetime) -> None:
    """Replace a backup by one with a migrated log, without the purged texts and without texts made from them."""
    status = path.stat()
    with archive.working_folder(places.backups) as outer:
        folder, draft = outer / "content", outer / "draft"
        folder.mkdir()
        archive.unpack(path, folder)
        dropped = _purge(places, folder, sought, now)
        if archive.is_log_alone(path):
            home_in(folder).database.replace(draft)
        else:
            _without_attachments(folder, dropped)
            archive.pack_again(folder, draft)
        draft.chmod(0o600)
        # The backup keeps its time: repairs look into the newest backup first.
        os.utime(draft, ns=(status.st_atime_ns, status.st_mtime_ns))
        draft.replace(path)
        sync_folder(path.parent)
    _drop_kept_attachments(places, dropped)


def _purge(places: Paths, folder: Path, sought: Sought, now: datetime) -> frozenset[str]:
    """Purge the log and the sessions in a folder, and return the attachments that nothing names any more."""
    with _migrated(folder) as connection:
        connection.execute("BEGIN IMMEDIATE")
        wanted = _changes(connection, places, folder, sought)
        carrying_out.change_rows(connection, _home(places, folder), wanted, now)
        connection.execute("COMMIT")
        connection.execute("VACUUM")
    for each in wanted.files:
        files.change(each)
    return _dropped(folder, wanted)


@contextmanager
def _migrated(folder: Path) -> Iterator[sqlite3.Connection]:
    with examination.opened(home_in(folder).database) as connection:
        if migrations.is_newer(connection):
            raise DatabaseTooNewError(migrations.made_by_newer("It", "rewrite"))
        connection.execute("PRAGMA secure_delete = ON")
        foreign_code.remove(connection)
        migrations.migrate(connection)
        yield connection


def _home(places: Paths, folder: Path) -> Home:
    """Return an unpacked backup as a home. The attachments of daily backups are in a folder beside them."""
    return Home(home_in(folder), lambda _run: False, (places.kept_attachments,))


def _changes(connection: sqlite3.Connection, places: Paths, folder: Path, sought: Sought) -> Changes:
    home = _home(places, folder)
    held = _held(connection, sought.rows)
    attached = (*home.attachments, places.attachments)
    wanted = sought.criteria._replace(messages=held.messages | selected_by_words(connection, sought.criteria, attached))
    # No process will finish a reply in progress in a backup.
    connection.execute("UPDATE messages SET status = 'interrupted' WHERE status = 'streaming'")
    return carrying_out.changes(connection, home, wanted, held._replace(messages=frozenset()))


def _dropped(folder: Path, wanted: Changes) -> frozenset[str]:
    """Return the attachments that a backup loses. An unsent attachment counts only if the manifest names it."""
    path = folder / archive.MANIFEST
    names = json.loads(path.read_text(encoding="utf-8"))["attachments"] if path.exists() else []
    return frozenset(wanted.lonely) | (wanted.unsent.keys() & {Path(name).name for name in names})


def _without_attachments(folder: Path, dropped: frozenset[str]) -> None:
    path = folder / archive.MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["attachments"] = [name for name in manifest["attachments"] if Path(name).name not in dropped]
    manifest["sessions"] = sum(1 for _ in home_in(folder).personas.glob("*/sessions/*.json"))
    path.write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    for each in [*ATTACHMENTS.files(home_in(folder))]:
        if each.name in dropped:
            each.unlink()


def _drop_kept_attachments(places: Paths, dropped: frozenset[str]) -> None:
    """Delete the ``dropped`` attachments beside the daily backups, unless a backup or the home still has them."""
    named = {path.name for path in ATTACHMENTS.files(places)}
    for backup in archive.listed(places) if dropped else ():
        with suppress(BackupError):
            named.update(Path(name).name for name in archive.read_manifest(backup).attachments)
    for path in [*KEPT_ATTACHMENTS.files(places)]:
        if path.name in dropped - named:
            path.unlink()


def _folder_for_copies(places: Paths) -> AbstractContextManager[Path]:
    """Make a folder for copies among the backups, or among the system's temporary folders if that is impossible."""
    return archive.working_folder(places.backups if os.access(places.backups, os.W_OK) else None)


def _held(connection: sqlite3.Connection, rows: PurgedRows) -> PurgedIds:
    """Return the ids of the ``rows`` that have texts in this log."""
    found = {}
    for store, wanted in rows.items():
        there = examination.filled_rows(connection, store, store.identity, [int(str(row[0])) for row in wanted])
        found[store.name] = frozenset(int(str(row[0])) for row in wanted.intersection(there))
    return PurgedIds(**found)
