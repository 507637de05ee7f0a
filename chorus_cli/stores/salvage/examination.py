"""Copies a log, opens it with a connection of its own, examines it, and finds the rows that were purged."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from chorus_cli.core.errors import BackupError, DatabaseDamagedError
from chorus_cli.core.text.phrases import counted, enumerated
from chorus_cli.log.rows import search_index, sqlite_words
from chorus_cli.log.rows.message_rows import COLUMNS, checksum, messages
from chorus_cli.log.rows.sqlite_words import is_damage
from chorus_cli.log.rows.words import ITEMS, MESSAGES, IndexDamagedError
from chorus_cli.log.rules import attachments
from chorus_cli.log.rules.log_acts import NO_IDS, Purge, PurgedIds
from chorus_cli.memory.rows import item_rows
from chorus_cli.storage import foreign_code, meta_rows, sqlite
from chorus_cli.storage.errors import UNREADABLE, folder_in_the_way, storage_error
from chorus_cli.storage.migrations import APPLICATION_ID
from chorus_cli.storage.port import Connection
from chorus_cli.stores import listing
from chorus_cli.stores.listing import RowStore

OpenDatabase: TypeAlias = sqlite3.Connection

_STEP_PAGES = 1000
"""How many pages of 4 kB a step copies. A step takes some milliseconds, in which no other process can commit."""

_PAUSE_SECONDS = 0.005
_MOST_RESTARTS = 5
_BUSY_TIMEOUT_SECONDS = 10.0


_MOST_FAULTS = _MOST_NAMED = 20
_MOST_NAMED_IDS = 5
_KEPT = f"type = 'table' AND name NOT GLOB '*[^a-z_]*' AND NOT {MESSAGES.condition} AND NOT {ITEMS.condition}"
"""The condition that a row of ``sqlite_master`` is a table, and no part of a full-text index.

A table with an odd name is left out: Chorus did not make it.
"""


class BackupStoppedError(BackupError):
    """A backup was stopped, because Chorus ends."""


class Facts(NamedTuple):
    """The numbers of messages and threads in a log, and the time of the newest message as it is stored."""

    messages: int
    threads: int
    newest: str | None


class _RestartedError(Exception):
    """SQLite began a copy anew too often."""


def copy_database(source: Path, target: Path, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Copy the committed state of ``source`` into the new file ``target``.

    Other processes may write to ``source`` between the steps of the copy. SQLite then begins the copy anew. If this
    happens too often, a single step copies everything.
    """
    fewest: float = math.inf
    restarts = 0

    def after_step(_status: int, remaining: int, _total: int) -> None:
        nonlocal fewest, restarts
        if is_stopped():
            raise BackupStoppedError("The backup was stopped; the log is as it was.")
        restarts += remaining > fewest
        if restarts > _MOST_RESTARTS:
            raise _RestartedError
        fewest = remaining
        time.sleep(_PAUSE_SECONDS)

    with opened(source) as connection, _told(target), closing(sqlite3.connect(target)) as copy:
        copy.execute("PRAGMA synchronous = OFF")
        try:
            connection.backup(copy, pages=_STEP_PAGES, progress=after_step)
        except _RestartedError:
            connection.backup(copy)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing database. An endless statement is stopped, and errors of SQLite become storage errors."""
    if path.is_dir():
        raise folder_in_the_way(path)
    if not path.is_file():
        raise DatabaseDamagedError(f"There is no database {path}.")
    # The transaction of a killed process must not be read. Only a connection that may write rolls it back.
    place = path if sqlite.is_writable(path) else ""
    with (
        _told(path),
        closing(sqlite3.connect(place, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None)) as connection,
    ):
        if not place:
            sqlite.copy_into(connection, path, _BUSY_TIMEOUT_SECONDS)
        sqlite.confine(connection)
        yield connection


@contextmanager
def opened_untrusted(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing database to read only its tables, so that no code in its schema runs."""
    with opened(path) as connection:
        foreign_code.read_tables_only(connection)
        yield connection


def facts(connection: sqlite3.Connection) -> Facts:
    """Return the facts about a log; raise `DatabaseDamagedError` if Chorus did not make the database."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
        raise DatabaseDamagedError(f"{path} is not a Chorus database.")
    messages, newest = connection.execute("SELECT COUNT(*), MAX(timestamp) FROM messages").fetchone()
    (threads,) = connection.execute("SELECT COUNT(*) FROM threads").fetchone()
    return Facts(messages, threads, newest)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:
        raise storage_error(error, path) from error


def damage(connection: sqlite3.Connection, *, is_quick: bool = False) -> Sequence[str]:
    """Return the faults of a database, unless they concern only full-text indexes, which can be made again."""
    found = _checked(connection, "quick_check(1)") if is_quick else faults(connection)
    return found if found and _concerns_log(connection) else ()


def faults(connection: sqlite3.Connection) -> Sequence[str]:
    """Return the faults of the pages, the indexes and the references of the whole database."""
    found = [*_checked(connection, f"integrity_check({_MOST_FAULTS})")]
    if not found:
        broken = connection.execute("PRAGMA foreign_key_check").fetchmany(_MOST_FAULTS)
        found += [
            f"row {row_id} of {table} refers to a row of {parent} that is gone" for table, row_id, parent, _ in broken
        ]
    return found


def require_texts(connection: sqlite3.Connection) -> None:
    """Read every row of a log with sound pages; raise an error if a text is not UTF-8."""
    for (table,) in connection.execute(f"SELECT name FROM sqlite_master WHERE {_KEPT}").fetchall():
        for _ in connection.execute(f"SELECT * FROM {table}"):
            pass


def _concerns_log(connection: sqlite3.Connection) -> bool:
    try:
        tables = connection.execute(f"SELECT name FROM sqlite_master WHERE {_KEPT}").fetchall()
    except UNREADABLE:
        return True
    # The list of free pages belongs to no table, but nothing can be written if the list is damaged.
    is_listed = not any("freelist" in fault.casefold() for fault in _checked(connection, "integrity_check(1)"))
    return not (tables and is_listed) or any(_checked(connection, f"integrity_check('{name}')") for (name,) in tables)


def _checked(connection: sqlite3.Connection, check: str) -> Sequence[str]:
    try:
        found = connection.execute(f"PRAGMA {check}").fetchall()
    except UNREADABLE as error:
        if not is_damage(error):
            raise
        return [str(error) or type(error).__name__]
    lines = [line for (text,) in found for line in str(text).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]


SAMPLE_ROWS = 50_000

_FIELDS = "role, thread_id, persona, timestamp, content"


def changed(connection: sqlite3.Connection, part: int = 0, parts: int = 1) -> tuple[int, ...]:
    """Return the ids of the messages that differ from their checksums, in one ``part`` of ``parts`` of the log."""
    before, connection.text_factory = connection.text_factory, lenient_text
    try:
        # A message that was stored by plain SQL has no checksum.
        query = f"SELECT id, {_FIELDS}, checksum FROM messages WHERE checksum IS NOT NULL AND id % ? = ?"
        rows = connection.execute(query, (parts, part % parts))
        return tuple(id_ for id_, *fields, stored in rows if checksum(*fields) != stored)
    finally:
        connection.text_factory = before


def sample(connection: sqlite3.Connection, day: int) -> tuple[int, ...]:
    """Return the changed messages in a part of the log, each ``day`` another part of at most 50,000 messages."""
    (newest,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()
    return changed(connection, day, max(1, -(-newest // SAMPLE_ROWS)))


def bring(connection: sqlite3.Connection, ids: Iterable[int], backup: Path) -> tuple[int, ...]:
    """Copy the messages with these ids from a backup. Return the ids that it lacks or has with a wrong checksum."""
    remaining = []
    with closing(sqlite3.connect(backup)) as source:
        foreign_code.read_tables_only(source)
        source.text_factory = lenient_text
        for id_ in ids:
            row = source.execute(f"SELECT {_FIELDS}, checksum FROM messages WHERE id = ?", (id_,)).fetchone()
            if row is None or checksum(*row[:5]) != row[5]:
                remaining.append(id_)
                continue
            connection.execute(
                "UPDATE messages SET role = ?, thread_id = ?, persona = ?, timestamp = ?, content = ?, checksum = ?, "
                "token_count = NULL WHERE id = ?",
                (*row, id_),
            )
    return tuple(remaining)


def accept(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Give the messages with these ids new checksums, and replace the bytes in their texts that are not UTF-8."""
    connection.text_factory = lambda stored: stored.decode("utf-8", "replace")
    for id_ in ids:
        row = connection.execute(f"SELECT {_FIELDS} FROM messages WHERE id = ?", (id_,)).fetchone()
        connection.execute(
            "UPDATE messages SET content = ?, checksum = ?, token_count = NULL WHERE id = ?",
            (row[4], checksum(*row), id_),
        )


def lenient_text(stored: bytes) -> str:
    """Decode a text; if its bytes are damaged, the result never equals the text that was written."""
    return stored.decode("utf-8", "surrogateescape")


def unreadable(connection: sqlite3.Connection) -> list[str]:
    """Return a sentence for each of the first 20 messages whose values cannot be read."""
    found: list[str] = []
    for row in connection.execute(f"SELECT {COLUMNS} FROM messages"):
        try:
            messages([row])
        except DatabaseDamagedError as error:
            found.append(str(error))
            if len(found) == _MOST_NAMED:
                break
    return found


_REFERENCES = {"thread_id": "threads", "turn_id": "messages", "revises": "messages", "introduced_by": "operations"}


def dangling_references(connection: sqlite3.Connection) -> str:
    """Return a phrase that counts the messages that refer to missing rows, empty if there are none."""
    lacks = (f"{each} IS NOT NULL AND {each} NOT IN (SELECT id FROM {table})" for each, table in _REFERENCES.items())
    (number,) = connection.execute(f"SELECT COUNT(*) FROM messages WHERE {' OR '.join(lacks)}").fetchone()
    refer = ("message that refers to rows that are gone", "messages that refer to rows that are gone")
    return counted(number, *refer) if number else ""


def gone_messages(connection: sqlite3.Connection) -> str:
    """Return a sentence about messages that are gone, empty if none are: each id up to the newest was given once."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
    return gone(connection, "messages", "message", row[0]) if row else ""


def gone(connection: sqlite3.Connection, table: str, thing: str, newest: int) -> str:
    """Return a sentence about the ids up to ``newest`` without rows, empty if there are none."""
    runs = connection.execute(
        "SELECT id + 1, following - 1 FROM (SELECT id, LEAD(id) OVER (ORDER BY id) AS following FROM ("
        f"SELECT 0 AS id UNION ALL SELECT id FROM {table} WHERE id BETWEEN 1 AND :newest "
        "UNION ALL SELECT :newest + 1)) WHERE following > id + 1",
        {"newest": newest},
    ).fetchall()
    number = sum(last - first + 1 for first, last in runs)
    # A damaged id can make the gap before it very long.
    ids = islice(chain.from_iterable(range(first, last + 1) for first, last in runs), _MOST_NAMED_IDS)
    names = [f"#{id_}" for id_ in ids]
    names += [f"{number - len(names):,} more"] if number > len(names) else []
    return f"{counted(number, thing)} {'is' if number == 1 else 'are'} gone: {enumerated(names)}." if number else ""


def named_attachments(connection: sqlite3.Connection) -> dict[str, int]:
    """Map the SHA-256 of each attachment to a message that names it. Values that cannot be read are left out."""
    found = dict[str, int]()
    for id_, text in _rows(connection, "SELECT id, attachments FROM messages WHERE attachments IS NOT NULL"):
        with suppress(ValueError, TypeError):
            found |= {each.sha256: id_ for each in attachments.from_text(text)}
    return found


def digests(connection: sqlite3.Connection) -> frozenset[str]:
    """Return each SHA-256 in messages and operations, even if their values are damaged."""
    before, connection.text_factory = connection.text_factory, bytes
    try:
        naming = "SELECT attachments FROM messages WHERE attachments IS NOT NULL", "SELECT detail FROM operations"
        texts = [text for query in naming for (text,) in _rows(connection, query)]
    finally:
        connection.text_factory = before
    return frozenset(digest for text in texts for digest in attachments.digests_in(text))


class Purged(NamedTuple):
    """The rows that purges of a log have overwritten, as far as the log tells.

    ``unread`` is the id of the newest purge if it is gone or cannot be read, otherwise 0. ``damaged`` are the numbers
    of the purges that are there but cannot be read.
    """

    ids: PurgedIds
    unread: int = 0
    damaged: tuple[int, ...] = ()


def purged(connection: Connection) -> Purged:
    """Return the rows that were purged, as far as operations and rows tell."""
    ids, read, damaged = NO_IDS, set(), []
    for id_, number, detail in _rows(
        connection, f"SELECT id, number, detail FROM operations WHERE kind = '{Purge.kind}'"
    ):
        try:
            ids = ids.united(PurgedIds.from_json(json.loads(detail)))
            read.add(id_)
        except (ValueError, TypeError, AttributeError):
            damaged.append(number)
    marked = (
        frozenset(id_ for (id_,) in _rows(connection, f"SELECT id FROM {table} WHERE purged_by IS NOT NULL"))
        for table in ("messages", "context_items")
    )
    query = f"SELECT CAST(value AS INTEGER) FROM meta WHERE key = '{meta_rows.NEWEST_PURGE}'"
    newest = max((id_ for (id_,) in _rows(connection, query)), default=0)
    return Purged(ids.united(PurgedIds(*marked)), 0 if newest in read else newest, tuple(damaged))


def holds(connection: sqlite3.Connection, found: Purged) -> bool:
    """Return whether the log of a backup has, or may have, a text of the purged rows ``found``."""
    if found.unread and not _rows(connection, f"SELECT 1 FROM operations WHERE id = {found.unread:d}"):
        return True
    wanted = {store: getattr(found.ids, store.name) for store in listing.ROWS if store.identity}
    return any(filled_rows(connection, store, "1", ids) for store, ids in wanted.items() if ids)


def filled_rows(connection: sqlite3.Connection, store: RowStore, columns: str, ids: Iterable[int]) -> list[Any]:
    """Return these ``columns`` of the rows with these ids, once for each text that a row has."""
    # The columns are queried one by one, because a log of an older Chorus may lack one.
    return [
        tuple(row)
        for column in store.columns
        for *row, text in _rows(
            connection,
            f"SELECT {columns}, {column} FROM {store.table} WHERE id {listing.AMONG} AND {column} <> ''",
            {"ids": json.dumps([*ids])},
        )
        if store.texts_in is None or store.texts_in(text)
    ]


def _rows(connection: Connection, query: str, values: Mapping[str, str] | None = None) -> list[Any]:
    """Return the rows of a query; none if the log of an older Chorus lacks the table or the column."""
    try:
        return connection.execute(query, values or {}).fetchall()
    except sqlite3.OperationalError as error:
        if not str(error).startswith("no such"):
            raise
        return []


def damaged_indexes(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the damaged full-text indexes. SQLite takes a write lock to check them."""
    checks = {"search": search_index.check, "memory": item_rows.check_words}
    found = []
    for name, check in checks.items():
        try:
            check(connection)
            sqlite_words.require_sound_pages(connection, _INDEXES[name])
        except IndexDamagedError:
            found.append(name)
    return found


_INDEXES = {"search": MESSAGES, "memory": ITEMS}


def renew_indexes(connection: sqlite3.Connection) -> None:
    """Make the full-text index of the memory again, and empty the index of the search: the next search fills it."""
    sqlite_words.require_sound_log(connection)
    for begin_anew in (search_index.begin_in_new_pages, item_rows.renew_words):
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            begin_anew(connection)
    connection.execute("VACUUM")
