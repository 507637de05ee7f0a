"""Examination of the rows: those that cannot be read, the indexes, and references to files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.core.errors import DatabaseDamagedError
from chorus_cli.core.text.phrases import counted
from chorus_cli.log.rows import search_index
from chorus_cli.log.rows.message_rows import COLUMNS, messages
from chorus_cli.log.rows.search_index import IndexDamagedError
from chorus_cli.log.rules import attachments
from chorus_cli.log.rules.log_acts import NO_IDS, Purge, PurgedIds
from chorus_cli.memory.rows import item_rows
from chorus_cli.storage import meta_rows
from chorus_cli.stores import listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from chorus_cli.log.rules.messages import Runs
    from chorus_cli.stores.listing import RowStore

_MOST_NAMED, _MOST_SOUGHT = 20, 1000


def unreadable(connection: sqlite3.Connection) -> list[str]:
    """Return a sentence for each message whose values cannot be read, at most some."""
    found: list[str] = []
    for row in connection.execute(f"SELECT {COLUMNS} FROM messages"):
        try:
            messages([row])
        except DatabaseDamagedError as error:
            found.append(str(error))
            if len(found) == _MOST_NAMED:
                break
    return found


_REFERENCES = (
    ("message of a thread that is gone", "messages of threads that are gone", "thread_id", "threads"),
    ("message of a turn that is gone", "messages of turns that are gone", "turn_id", "messages"),
    ("rewording of a message that is gone", "rewordings of messages that are gone", "revises", "messages"),
    ("message of an operation that is gone", "messages of operations that are gone", "introduced_by", "operations"),
)


def dangling_references(connection: sqlite3.Connection) -> list[str]:
    """Return phrases for rows that refer to rows that are gone."""
    found = {(one, more): len(_gone(connection, column, table)) for one, more, column, table in _REFERENCES}
    return [counted(number, one, more) for (one, more), number in found.items() if number]


def gaps(connection: sqlite3.Connection) -> Runs:
    """Return the ids of messages that are gone: each number was given once, and no row is ever deleted."""
    return tuple(
        connection.execute(
            "SELECT id + 1, following - 1 FROM (SELECT id, LEAD(id) OVER (ORDER BY id) AS following FROM ("
            "SELECT 0 AS id UNION ALL SELECT id FROM messages "
            "UNION ALL SELECT seq + 1 FROM sqlite_sequence WHERE name = 'messages')) WHERE following > id + 1"
        )
    )


def each_of(gone: Runs) -> Iterator[int]:
    """Yield the ids of runs, which may be very long if a number is damaged."""
    return (id_ for first, last in gone for id_ in range(first, last + 1))


def missing(connection: sqlite3.Connection) -> dict[str, frozenset[int]]:
    """Return the rows that are gone, of messages the first ones, and of others those referred to: ids by tables."""
    found: dict[str, frozenset[int]] = {}
    for _, _, column, table in _REFERENCES:
        if ids := frozenset(_gone(connection, column, table)):
            found[table] = found.get(table, frozenset()) | ids
    if gone := frozenset(islice(each_of(gaps(connection)), _MOST_SOUGHT)):
        found["messages"] = found.get("messages", frozenset()) | gone
    return found


def _gone(connection: sqlite3.Connection, column: str, table: str) -> list[int]:
    query = f"SELECT {column} FROM messages WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT id FROM {table})"
    return [id_ for (id_,) in connection.execute(query)]


def has_any(connection: sqlite3.Connection, wanted: Mapping[str, frozenset[int]]) -> bool:
    """Return whether some rows are there, by their tables and ids."""
    return any(
        _rows(connection, f"SELECT 1 FROM {table} WHERE id {listing.AMONG} LIMIT 1", {"ids": json.dumps([*ids])})
        for table, ids in wanted.items()
    )


def sessions(connection: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Return the sessions that the log lists by persona and name, and the number of messages in each."""
    query = "SELECT persona, session_id, message_count FROM sessions ORDER BY persona, session_id"
    return {(persona, session_id): number for persona, session_id, number in connection.execute(query)}


def named_attachments(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the messages that name attachments, by SHA-256, as far as they can be read."""
    found = dict[str, int]()
    for id_, text in _rows(connection, "SELECT id, attachments FROM messages WHERE attachments IS NOT NULL"):
        with suppress(ValueError, TypeError):
            found |= {each.sha256: id_ for each in attachments.from_text(text)}
    return found


def digests(connection: sqlite3.Connection) -> frozenset[str]:
    """Return each SHA-256 that messages and operations name, also damaged ones."""
    before, connection.text_factory = connection.text_factory, bytes
    try:
        naming = "SELECT attachments FROM messages WHERE attachments IS NOT NULL", "SELECT detail FROM operations"
        texts = [text for query in naming for (text,) in _rows(connection, query)]
    finally:
        connection.text_factory = before
    return frozenset(digest for text in texts for digest in attachments.digests_in(text))


def rows_in_progress(connection: sqlite3.Connection) -> list[tuple[int, str | None]]:
    """Return the replies and calls of tools in progress, oldest first, and the runs of their processes."""
    return connection.execute("SELECT id, run FROM messages WHERE status = 'streaming' ORDER BY id").fetchall()


class Purged(NamedTuple):
    """The rows that purges of a log have overwritten, as far as it tells.

    ``unread`` is its newest purge if that cannot be read, else 0; ``damaged`` are the numbers of those that are there
    and cannot be read.
    """

    ids: PurgedIds
    unread: int = 0
    damaged: tuple[int, ...] = ()


def purged(connection: sqlite3.Connection) -> Purged:
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
    """Return whether a backup has the text of a row that its log has purged since, or may have it."""
    if found.unread and not _rows(connection, f"SELECT 1 FROM operations WHERE id = {found.unread:d}"):
        return True
    wanted = {store: getattr(found.ids, store.name) for store in listing.ROWS if store.identity}
    return any(filled_rows(connection, store, "1", ids) for store, ids in wanted.items() if ids)


def filled_rows(connection: sqlite3.Connection, store: RowStore, columns: str, ids: Iterable[int]) -> list[Any]:
    """Return columns of the rows of these ids that have some text."""
    # Each column by itself, because a log of an older Chorus may lack one.
    return [
        row
        for column in store.columns
        for row in _rows(
            connection,
            f"SELECT {columns} FROM {store.table} WHERE id {listing.AMONG} AND {column} <> ''",
            {"ids": json.dumps([*ids])},
        )
    ]


def _rows(connection: sqlite3.Connection, query: str, values: Mapping[str, str] | None = None) -> list[Any]:
    """Return the rows of a query; none if the log is of an older Chorus, without its table or column."""
    try:
        return connection.execute(query, values or {}).fetchall()
    except sqlite3.OperationalError as error:
        if not str(error).startswith("no such"):
            raise
        return []


def damaged_indexes(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the full-text indexes that are damaged; SQLite takes a write lock for that."""
    checks = {"search": search_index.check, "memory": item_rows.check_words}
    found = []
    for name, check in checks.items():
        try:
            check(connection)
            search_index.require_sound_pages(connection, _INDEXES[name])
        except IndexDamagedError:
            found.append(name)
    return found


_INDEXES = {"search": search_index.MESSAGES, "memory": search_index.ITEMS}


def renew_indexes(connection: sqlite3.Connection) -> None:
    """Make both full-text indexes again: that of the memory from its items, that of the search by the next one."""
    search_index.require_sound_log(connection)
    for begin_anew in (search_index.begin_in_new_pages, item_rows.renew_words):
        connection.execute("BEGIN IMMEDIATE")
        try:
            begin_anew(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    connection.execute("VACUUM")
