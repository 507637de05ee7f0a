"""Backups that still hold purged texts, and the same backups without them."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import BackupError, DatabaseTooNewError, StorageError
from chorus_cli.core.log.purges import NO_IDS, Purge, PurgedIds
from chorus_cli.core.upkeep.purging import WantedPurge
from chorus_cli.storage.backups import archive, daily
from chorus_cli.storage.files.durable_files import sync_folder
from chorus_cli.storage.purges import files, overwriting, sessions
from chorus_cli.storage.purges.concerned import concerned
from chorus_cli.storage.sqlite import migrations
from chorus_cli.storage.sqlite.errors import storage_error
from chorus_cli.storage.sqlite.upkeep import copying

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from chorus_cli.storage.backups.places import Places

_AMONG = "IN (SELECT value FROM json_each(:ids))"
_IDENTITIES = {
    "messages": ("messages", "id, persona, role, timestamp"),
    "items": ("context_items", "id, persona, item_type, created_at"),
    "summaries": ("summaries", "id, persona, thread_id, created_at"),
}
_FILLED = {
    "messages": "(content <> '' OR tool_calls IS NOT NULL)",
    "items": "content <> ''",
    "summaries": "content <> ''",
}


class PurgedRows(NamedTuple):
    """Rows of purges with all that tells them from others of the same ids: another log may have given those too."""

    messages: frozenset[tuple[object, ...]] = frozenset()
    items: frozenset[tuple[object, ...]] = frozenset()
    summaries: frozenset[tuple[object, ...]] = frozenset()


class Holding(NamedTuple):
    """Backups that hold some of the rows, and those that cannot be read."""

    backups: tuple[Path, ...]
    unreadable: tuple[Path, ...]


def rows_purged(connection: sqlite3.Connection) -> PurgedRows:
    """Return the rows of every purge of a log."""
    found = NO_IDS
    for (detail,) in connection.execute("SELECT detail FROM operations WHERE kind = ?", (Purge.kind,)):
        found = found.united(PurgedIds.from_json(json.loads(detail)))
    return rows_of(connection, found)


def rows_of(connection: sqlite3.Connection, ids: PurgedIds) -> PurgedRows:
    """Return the rows of a purge that backups may have."""
    return PurgedRows(*(_rows(connection, name, getattr(ids, name)) for name in PurgedRows._fields))


def holding(places: Places, rows: PurgedRows) -> Holding:
    """Look into all backups in the folder of backups, oldest first."""
    found, unreadable = [], []
    for each in daily.listed(places):
        if each.path.suffix not in {".zip", ".db"}:
            continue
        try:
            with _log_of(places, each.path) as path, copying.opened(path) as connection:
                if any(_held(connection, rows)):
                    found.append(each.path)
        except (BackupError, StorageError):
            unreadable.append(each.path)
    return Holding(tuple(found), tuple(unreadable))


def purged_since(log: Path, backup: Path) -> int:
    """Return the number of messages of a backup that were purged in the present log; 0 if that is damaged."""
    # A restore must be possible however the present log is damaged.
    with suppress(StorageError, ValueError, TypeError, KeyError):
        with copying.opened(log) as connection:
            rows = rows_purged(connection)
        with copying.opened(backup) as connection:
            return len(_held(connection, rows)[0])
    return 0


def rewrite(places: Places, path: Path, rows: PurgedRows, now: datetime) -> None:
    """Replace a backup by one without these rows and all that was made of them; it gets the tables of this Chorus.

    Raises:
        BackupError: it cannot be read or written; it is as it was.
        StorageError: the log in it is damaged, or was made by a newer Chorus.
    """
    status = path.stat()
    try:
        with tempfile.TemporaryDirectory(prefix=".chorus-", dir=places.backups) as name:
            folder, draft = Path(name) / "content", Path(name) / "draft"
            folder.mkdir()
            _unpack(path, folder)
            dropped = _purge(folder, rows, now)
            if path.suffix == ".zip":
                _without_attachments(folder, dropped)
                archive.pack_again(folder, draft)
            else:
                (folder / archive.DATABASE).replace(draft)
            draft.chmod(0o600)
            # It stays as old as it was: the newest of all is the one that is looked into first.
            os.utime(draft, ns=(status.st_atime_ns, status.st_mtime_ns))
            draft.replace(path)
            sync_folder(path.parent)
        _drop_kept_attachments(places, dropped)
    except OSError as error:
        raise BackupError(f"{path} cannot be written anew: {error.strerror or error}. It is as it was.") from error


def _unpack(path: Path, folder: Path) -> None:
    if path.suffix == ".zip":
        archive.unpack(path, folder)
    else:
        shutil.copyfile(path, folder / archive.DATABASE)


def _purge(folder: Path, rows: PurgedRows, now: datetime) -> frozenset[str]:
    """Purge the log and the sessions in a folder, and return the attachments that nothing names any more."""
    path = folder / archive.DATABASE
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            if migrations.is_newer(connection):
                raise DatabaseTooNewError("It was made by a newer Chorus. Update Chorus to rewrite it.")
            connection.execute("PRAGMA secure_delete = ON")
            migrations.migrate(connection)
            connection.execute("BEGIN IMMEDIATE")
            dropped = _purge_log(connection, folder, rows, now)
            connection.execute("COMMIT")
            connection.execute("VACUUM")
        except sqlite3.Error as error:
            raise storage_error(error, path) from error
    return dropped


def _purge_log(connection: sqlite3.Connection, folder: Path, rows: PurgedRows, now: datetime) -> frozenset[str]:
    messages, items, summaries = _held(connection, rows)
    # A reply in progress is nobody's any more in a backup.
    connection.execute(
        f"UPDATE messages SET status = 'interrupted' WHERE status = 'streaming' AND id {_AMONG}",
        {"ids": json.dumps([*messages])},
    )
    found = concerned(connection, WantedPurge(messages), PurgedIds(items=items, summaries=summaries))
    texts = sessions.saved_texts(connection, found)
    for change in sessions.changes(folder / archive.PERSONAS, texts):
        sessions.store(connection, change, sessions.write(folder / archive.PERSONAS, change))
    dropped = files.lonely_attachments(connection, found)
    overwriting.overwrite(connection, found.ids, now)
    return frozenset(dropped)


def _without_attachments(folder: Path, dropped: frozenset[str]) -> None:
    path = folder / archive.MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["attachments"] = [name for name in manifest["attachments"] if Path(name).name not in dropped]
    manifest["sessions"] = sum(1 for _ in (folder / archive.PERSONAS).glob("*/sessions/*.json"))
    path.write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    for each in archive.attachment_files(folder / archive.ATTACHMENTS):
        if each.name in dropped:
            each.unlink()


def _drop_kept_attachments(places: Places, dropped: frozenset[str]) -> None:
    """Delete the attachments beside the daily backups that neither one of them nor the log has any more."""
    if not dropped:
        return
    named: set[str] = set()
    for each in daily.listed(places):
        if each.path.suffix == ".zip":
            with suppress(BackupError):
                named.update(Path(name).name for name in archive.read_manifest(each.path).attachments)
    there = {path.name for path in archive.attachment_files(places.attachments)}
    for path in archive.attachment_files(places.kept_attachments):
        if path.name in dropped - named - there:
            path.unlink()


@contextmanager
def _log_of(places: Places, path: Path) -> Iterator[Path]:
    if path.suffix == ".db":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix=".chorus-", dir=places.backups) as folder:
        archive.unpack_log(path, Path(folder) / archive.DATABASE)
        yield Path(folder) / archive.DATABASE


def _held(connection: sqlite3.Connection, rows: PurgedRows) -> tuple[frozenset[int], ...]:
    """Return the ids of the rows that a log has, by their tables."""
    found = []
    for name, wanted in zip(PurgedRows._fields, rows, strict=True):
        there = _rows(connection, name, frozenset(int(str(row[0])) for row in wanted), f" AND {_FILLED[name]}")
        found.append(frozenset(int(str(row[0])) for row in there & wanted))
    return tuple(found)


def _rows(
    connection: sqlite3.Connection, name: str, ids: frozenset[int], condition: str = ""
) -> frozenset[tuple[object, ...]]:
    table, columns = _IDENTITIES[name]
    found = connection.execute(
        f"SELECT {columns} FROM {table} WHERE id {_AMONG}{condition}", {"ids": json.dumps([*ids])}
    )
    return frozenset(found.fetchall())
