"""Makes a new log from a damaged one, with all its readable rows, and with lost rows from the newest sound backup."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from chorus_cli.core.errors import BackupError, StorageError
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rows.message_rows import checksum
from chorus_cli.log.rows.search_index import STATE
from chorus_cli.log.rules.log_acts import Purge, Unreadable
from chorus_cli.machine.paths import Paths
from chorus_cli.storage import meta_rows, migrations
from chorus_cli.storage.errors import UNREADABLE
from chorus_cli.storage.migrations import is_newer
from chorus_cli.stores import listing
from chorus_cli.stores.backup import archive
from chorus_cli.stores.backup.restoring import draft_folder
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.salvage.examination import Purged
from chorus_cli.stores.salvage.file_rows import MESSAGES, NUMBERED, OPERATIONS, TIME, Row, Values, file_rows, tables


@contextmanager
def salvaged(places: Paths) -> Iterator[tuple[Path, Counts]]:
    """Salvage the log into a new one in a folder of its own. The folder is deleted at the end unless put in place."""
    with draft_folder(places) as folder:
        yield folder, _salvaged(places, folder)


def _salvaged(places: Paths, folder: Path) -> Counts:
    try:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            damaged, backup = _rolled_back(places.database, Path(name) / "damaged.db"), Path(name) / "backup.db"
            new = listing.home_in(folder).database
            new.touch(mode=0o600)
            return salvage(damaged, new, backup, lambda purged: next(sound_logs(places, backup, purged), None))
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BackupError(
            f"The log cannot be salvaged in {places.database.parent}: {reason or error}. The damaged log is as it was; "
            "see that the disk has room and no faults, and run chorus doctor again."
        ) from error


def sound_logs(places: Paths, target: Path, without: Purged) -> Iterator[Path]:
    """Yield the sound backups, newest first; ``target`` has the log of the backup that was yielded last.

    Backups with texts of the purged rows ``without`` are skipped, because these texts would come back.
    """
    for path in reversed(archive.listed(places)):
        target.unlink(missing_ok=True)
        if archive.is_damaged(path):
            continue
        try:
            archive.unpack_log(path, target)
            with examination.opened_untrusted(target) as connection:
                examination.facts(connection)
                is_sound = not examination.damage(connection, is_quick=True) and not is_newer(connection)
                is_taken = is_sound and not examination.holds(connection, without)
        except (BackupError, StorageError):
            continue
        if is_taken:
            yield path


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


_ITEMS = listing.ITEMS.table
_OF_ORIGIN = (MESSAGES, OPERATIONS, "summaries", _ITEMS)
_DELETED_FROM = frozenset({listing.INPUTS.table, listing.UNSAID.table, "sessions", "meta"})
"""The tables from which Chorus deletes rows: a row that only a backup has may have been deleted."""
_CHECKED = ("role", "thread_id", "persona", "timestamp", "content")
_COMPLETING = (
    """INSERT INTO threads(id, persona, created_at) SELECT thread_id, MIN(persona), MIN(timestamp) FROM messages
    WHERE thread_id NOT IN (SELECT id FROM threads) GROUP BY thread_id""",
    "INSERT INTO installation SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM installation)",
    # Rows of both tables look alike; the own installation comes first in a file. The user may have such a table too.
    f"""INSERT INTO other_installations SELECT DISTINCT origin FROM installation
    WHERE origin GLOB '{"[0-9a-f]" * 16}' AND origin <> (SELECT origin FROM installation ORDER BY rowid LIMIT 1)""",
    "DELETE FROM installation WHERE rowid > (SELECT MIN(rowid) FROM installation)",
    *(
        f"UPDATE {table} SET origin = (SELECT origin FROM installation), origin_seq = id WHERE origin IS NULL"
        for table in _OF_ORIGIN
    ),
    # The search fills its index again. Items without a hash are indexed when they are next read.
    f"DELETE FROM meta WHERE key = '{STATE}'",
    "UPDATE context_items SET content_hash = NULL",
    "DELETE FROM sqlite_sequence",
)
_LEAST_ROW_BYTES = 16


class Counts(NamedTuple):
    """Numbers of messages: read from the damaged file, brought from the ``backup``, and changed.

    A changed message differs from its checksum, and the backup lacks its true text. ``gone`` are sentences about lost
    rows.
    """

    read: int
    from_backup: int
    changed: int
    backup: Path | None
    gone: tuple[str, ...] = ()


def salvage(damaged: Path, target: Path, unpacked: Path, unpack: Callable[[Purged], Path | None]) -> Counts:
    """Write the new log ``target`` with all that can be read of ``damaged``, and with lost rows from a backup.

    ``unpack`` gets the purged rows. It looks for a backup that has a sound log without their texts, writes this log to
    ``unpacked``, and returns the backup, ``None`` if there is none.
    """
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        migrations.migrate(connection)
        connection.execute("BEGIN IMMEDIATE")
        log = _NewLog(connection)
        log.fill(damaged)
        purged = examination.purged(connection)
        log.keep_purged(purged)
        backup = unpack(purged)
        brought = log.fill(unpacked, is_backup=True) if backup else 0
        messages, gone = log.complete()
        connection.execute("COMMIT")
        changed = len(examination.changed(connection))
        return Counts(messages - brought, brought, changed, backup, gone)


class _NewLog:
    """Fills a database. Its triggers are dropped until `complete`: the rows already have their numbers and origins."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._most_rows = 0
        self._tables = tables()
        self._sequences, self._newest_named = dict[str, int](), 0
        self._triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in self._triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM installation")

    def fill(self, path: Path, *, is_backup: bool = False) -> int:
        """Store the missing rows from a file, and replace worse messages. Return the number of stored messages."""
        stored, self._most_rows = 0, self._most_rows + path.stat().st_size // _LEAST_ROW_BYTES
        for row in file_rows(path):
            for table in self._tables:
                if (values := table.values(row)) is not None:
                    if not (is_backup and _may_be_deleted(table.name, values)):
                        stored += self._store(table.name, values, is_backup=is_backup) and table.name == MESSAGES
                    break
            else:
                if not is_backup:
                    self._count(row)
        self._number_again()
        operation_rows.set_aside(self._connection)
        return stored

    def keep_purged(self, found: Purged) -> None:
        """Empty the rows that the journal names as purged: the file may have had older copies of these rows."""
        newest = f"SELECT MAX(id) FROM operations WHERE kind IN ('{Purge.kind}', '{Unreadable.kind}')"
        (operation_id,) = self._connection.execute(newest).fetchone()
        for store in listing.ROWS:
            store.erase(self._connection, getattr(found.ids, store.name), operation_id)

    def complete(self) -> tuple[int, tuple[str, ...]]:
        """Drop rows that refer to lost rows, and add rows that others need.

        Return the number of messages, and sentences about lost rows.
        """
        self._drop_dangling()
        for statement in _COMPLETING:
            self._connection.execute(statement)
        self._count_numbers()
        gone = (*self._gone(MESSAGES, "message", self._newest_named), *self._gone(_ITEMS, "memory item"))
        # A new message must not get an id that an index or another row still names.
        newest = {**self._sequences, MESSAGES: max(self._newest_named, self._sequences.get(MESSAGES, 0))}
        for name in (table.name for table in self._tables if table.number):
            query = f"INSERT INTO sqlite_sequence SELECT ?, MAX(?, COALESCE(MAX(id), 0)) FROM {name}"
            self._connection.execute(query, (name, newest.get(name, 0)))
        for _, statement in self._triggers:
            self._connection.execute(statement)
        (number,) = self._connection.execute("SELECT COUNT(*) FROM messages").fetchone()
        return number, gone

    def _gone(self, table: str, thing: str, newest_named: int = 0) -> Iterator[str]:
        """Yield sentences about lost rows. The newest id counts as known if two places agree on it."""
        (newest,) = self._connection.execute(
            f"SELECT COALESCE(MAX(id), 0) FROM {table} WHERE id <= ?", (self._most_rows,)
        ).fetchone()
        given = self._sequences.get(table, 0)
        newest = max(newest, newest_named) if given == newest_named else newest
        yield from filter(None, [examination.gone(self._connection, table, thing, newest)])
        # A table that never had a row has no stored newest id. If no table has such an id, the stored ids are lost.
        if given != newest or not self._sequences:
            yield f"It is unknown how many more {thing}s are lost."

    def _count(self, row: Row) -> None:
        """Note the newest id of a table, or a message id in an index, unless the file is too small for that id."""
        match row.values:
            case str(table), int(number) if row.number is not None and number <= self._most_rows:
                self._sequences[table] = max(number, self._sequences.get(table, 0))
            case int(), str(time), int(id_) if row.number is None and id_ <= self._most_rows and TIME.fullmatch(time):
                self._newest_named = max(id_, self._newest_named)

    def _store(self, table: str, values: Values, *, is_backup: bool) -> bool:
        """Store a row unless it is there; a message also replaces a worse one. Return whether the row was stored."""
        named = [id_ for name, id_ in values.items() if name.endswith("message_id") and id_ and id_ <= self._most_rows]
        self._newest_named = max([self._newest_named, *named])
        if table == OPERATIONS and is_backup:
            aside = f"DELETE FROM operations WHERE id = ? AND kind = '{Unreadable.kind}'"
            self._connection.execute(aside, (values["id"],))
        if table != MESSAGES:
            return self._inserted(table, values)
        cursor = self._connection.execute("SELECT * FROM messages WHERE id = ?", (values["id"],))
        row = cursor.fetchone()
        if row is None:
            return self._put(values)
        there = dict(zip((name for name, *_ in cursor.description), row, strict=True))
        if is_backup:
            return _proof(there) == 0 < _proof(values) and self._put(values)
        worse, better = (there, values) if _rank(there) < _rank(values) else (values, there)
        is_put = better is values and self._put(values)
        if _proof(worse) and worse["checksum"] != better["checksum"] and worse.get("origin_seq"):
            # The id of the worse message is damaged; ``origin_seq`` is its true id.
            self._inserted(MESSAGES, {**worse, "id": worse["origin_seq"]})
        return is_put

    def _put(self, message: Values) -> bool:
        """Replace the stored message with this id; store only the text if the other values are damaged."""
        text = {name: message[name] for name in ("id", *_CHECKED, "checksum")}
        return self._inserted(MESSAGES, message, "REPLACE") or self._inserted(MESSAGES, text, "REPLACE")

    def _inserted(self, table: str, values: Values, otherwise: str = "IGNORE") -> bool:
        statement = f"INSERT OR {otherwise} INTO {table}({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
        try:
            return self._connection.execute(statement, tuple(values.values())).rowcount > 0
        except sqlite3.IntegrityError:
            return False

    def _number_again(self) -> None:
        """Repair damaged ids of messages: a message that was made here has its id in ``origin_seq`` too."""
        self._connection.execute(
            "INSERT INTO installation SELECT origin FROM messages WHERE origin IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM installation) GROUP BY origin ORDER BY COUNT(*) DESC LIMIT 1"
        )
        self._connection.execute(
            "UPDATE OR IGNORE messages SET id = origin_seq WHERE id <> origin_seq AND (id NOT BETWEEN 1 AND :most "
            "OR (origin = (SELECT origin FROM installation) AND origin_seq BETWEEN 1 AND :most))",
            {"most": self._most_rows},
        )

    def _drop_dangling(self) -> None:
        # Twice, because other rows may refer to a dropped row.
        for table in self._tables * 2:
            for _, _, parent, column, referred, *_ in self._connection.execute(
                f"PRAGMA foreign_key_list({table.name})"
            ).fetchall():
                self._connection.execute(
                    f"DELETE FROM {table.name} WHERE {column} IS NOT NULL "
                    f"AND {column} NOT IN (SELECT {referred} FROM {parent})"
                )

    def _count_numbers(self) -> None:
        """Number threads and operations that have no number, and store the newest number of each persona."""
        for table in NUMBERED:
            self._connection.execute(
                f"UPDATE {table} SET number = given FROM (SELECT id AS own, ROW_NUMBER() OVER (PARTITION BY persona "
                f"ORDER BY id) + (SELECT COALESCE(MAX(number), 0) FROM {table} WHERE persona = rows.persona) AS given "
                f"FROM {table} AS rows WHERE number IS NULL) WHERE id = own"
            )
            self._connection.execute(
                f"INSERT INTO numbers SELECT persona, '{table}', MAX(number) FROM {table} WHERE true GROUP BY persona "
                "ON CONFLICT(persona, counted) DO UPDATE SET newest = MAX(newest, excluded.newest)"
            )


def _may_be_deleted(table: str, values: Values) -> bool:
    """Return whether Chorus may have deleted a row. It never deletes rows that hide threads of earlier personas."""
    return table in _DELETED_FROM and not str(values.get("key", "")).startswith(meta_rows.THREADS_BEFORE)


def _rank(message: Values) -> tuple[int, bool, bool, bool]:
    """Return a key that is greater for the true or the newer one of two messages with the same id."""
    is_purged, has_its_id_twice = message.get("purged_by") is not None, message.get("origin_seq") == message["id"]
    return _proof(message), is_purged, has_its_id_twice, message.get("status") != "streaming"


def _proof(message: Values) -> int:
    """Return 2 if the checksum is right, 0 if it is wrong, and 1 without a checksum: plain SQL stored the message."""
    if message["checksum"] is None:
        return 1
    return 2 if checksum(*(message[name] for name in _CHECKED)) == message["checksum"] else 0
