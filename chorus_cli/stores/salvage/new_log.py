"""An empty database that is filled with the rows of others."""

from __future__ import annotations

import json
import re
import sqlite3
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import index_renewal, intents
from chorus_cli.log.rows.message_rows import checksum
from chorus_cli.log.rows.search_index import STATE
from chorus_cli.storage import meta_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from chorus_cli.stores.salvage.row_reading import Row, RowReader

MESSAGES, _INSTALLATION, _META, _ITEMS = "messages", "installation", "meta", "context_items"
_NUMBERED = ("threads", "operations")
_DELETED_FROM = frozenset({"input_history", "intents", "sessions"})
_TIMES = frozenset({"timestamp", "created_at", "closed_at", "last_accessed", "window_start", "window_end"})
_JSON = frozenset({"detail", "usage", "attachments", "thought_parts"})
_EMPTIED = _JSON - {"detail"} | {"timestamp", "run"}
"""Fields beside the text of a message that it can do without."""

_RUN = re.compile(r"[\w-]{1,100}", re.ASCII)
_ESSENTIAL = ("id", "persona", "thread_id", "role", "content", "timestamp", "checksum")
_MOST_NAMED = 5
_EARLIEST = "1970-01-01T00:00:00.000000Z"


class _Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    has_numbers: bool

    def rows(self, reader: RowReader) -> Iterator[Row]:
        """Yield the rows that can be read, in the order of these columns; none of a table that is not there."""
        there = set(reader.columns(self.name))
        if not there:
            return iter(())
        columns = [name if name in there else f"NULL AS {name}" for name in self.columns]
        if self.has_numbers:
            is_message = self.name == MESSAGES
            return reader.numbered(self.name, columns, self._has_checksum if is_message else lambda _row: True)
        return reader.unnumbered(self.name, columns, self.key)

    def _has_checksum(self, row: Row) -> bool:
        return row[self.columns.index("checksum")] is not None and _is_as_written(self, row)


class Lost(NamedTuple):
    """The number of lost messages, and the ids of the first ones."""

    number: int
    first_ids: tuple[int, ...]


class NewLog:
    """Fills the database of ``connection``, in its transaction. ``changed`` are messages that differ from their text.

    Triggers rest until `complete`, because the rows have their numbers and origins already.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tables = _tables(connection)
        self.changed: set[int] = set()
        self._triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in self._triggers:
            connection.execute(f"DROP TRIGGER {name}")
        if self._has(_INSTALLATION):
            connection.execute("DELETE FROM installation")

    def copy(self, reader: RowReader) -> dict[str, int]:
        """Copy all rows that can be read; return the number of each table's."""
        copied = {}
        for table in self._tables:
            copied[table.name] = 0
            for row in table.rows(reader):
                if self._wanted(table, row) and self._insert(table, row):
                    copied[table.name] += 1
                    if table.name == MESSAGES and not _is_as_written(table, row):
                        self.changed.add(row[0])
        return copied

    def bring(self, backup: RowReader) -> dict[str, int]:
        """Bring the rows of a backup that are not there, and the messages that have changed since it was made.

        A row that is not there is lost or was deleted; those of tables whose rows Chorus deletes stay out.
        """
        brought = {}
        for table in self._tables:
            brought[table.name] = 0
            for row in table.rows(backup):
                if not _stays(table, row):
                    continue
                if table.name == MESSAGES and row[0] in self.changed and _is_as_written(table, row):
                    self._connection.execute("DELETE FROM messages WHERE id = ?", (row[0],))
                    self.changed.discard(row[0])
                brought[table.name] += self._wanted(table, row) and self._insert(table, row)
        return brought

    def complete(self, reader: RowReader) -> Lost:
        """Add the rows that others need and drop those that refer to lost ones; return the lost messages."""
        self._drop_dangling()
        if self._has("intents"):
            for id_ in intents.damaged(self._connection):
                intents.end(self._connection, id_)
        self._open_threads()
        self._count_numbers()
        if self._has(_INSTALLATION):
            self._connection.execute(
                "INSERT INTO installation SELECT lower(hex(randomblob(8))) "
                "WHERE NOT EXISTS (SELECT 1 FROM installation)"
            )
        if self._has("numbers"):
            # Items without a hash are indexed when they are next read.
            self._connection.execute("UPDATE context_items SET content_hash = NULL")
        for table in self._tables:
            newest = reader.newest_number(table.name) if table.has_numbers else 0
            self._go_on_from(table.name, newest)
        for _, statement in self._triggers:
            self._connection.execute(statement)
        return self._lost()

    def _go_on_from(self, table: str, newest: int) -> None:
        """Have no number of a table that counts its rows given again, also if no row of it could be read."""
        self._connection.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT name, 0 FROM sqlite_master WHERE type = 'table' "
            "AND name = :table AND sql LIKE '%AUTOINCREMENT%' "
            "AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = :table)",
            {"table": table},
        )
        self._connection.execute("UPDATE sqlite_sequence SET seq = MAX(seq, ?) WHERE name = ?", (newest, table))

    def _has(self, name: str) -> bool:
        return any(table.name == name for table in self._tables)

    def _wanted(self, table: _Table, row: Row) -> bool:
        """Return whether a row is to be stored: the index begins anew, and there is one installation."""
        if table.name == _META:
            return bool(row[table.columns.index("key")] != STATE)
        if table.name == _INSTALLATION:
            return self._connection.execute("SELECT 1 FROM installation").fetchone() is None
        return True

    def _insert(self, table: _Table, row: Row) -> bool:
        """Store a row; return false if there is one in its place, or its values are none that the table takes.

        Of a message whose other values are damaged, the text is stored.
        """
        values = dict(zip(table.columns, row, strict=True))
        usable = _usable(table, values)
        if usable is not None and self._stored(table.name, usable):
            return True
        if table.name != MESSAGES:
            return False
        essential = _usable(table, {name: values[name] for name in _ESSENTIAL})
        return essential is not None and self._stored(table.name, essential)

    def _stored(self, table: str, values: Mapping[str, Any]) -> bool:
        places = ", ".join("?" * len(values))
        try:
            cursor = self._connection.execute(
                f"INSERT OR IGNORE INTO {table}({', '.join(values)}) VALUES ({places})", tuple(values.values())
            )
        except (sqlite3.IntegrityError, UnicodeEncodeError, OverflowError):
            return False
        return cursor.rowcount > 0

    def _drop_dangling(self) -> None:
        # Twice, because a row that is dropped may be one that others refer to.
        for table in self._tables * 2:
            for _, _, parent, column, referred, *_ in self._connection.execute(
                f"PRAGMA foreign_key_list({table.name})"
            ).fetchall():
                self._connection.execute(
                    f"DELETE FROM {table.name} WHERE {column} IS NOT NULL "
                    f"AND {column} NOT IN (SELECT {referred} FROM {parent})"
                )

    def _open_threads(self) -> None:
        self._connection.execute(
            "INSERT INTO threads(id, persona, created_at) SELECT thread_id, MIN(persona), MIN(timestamp) FROM messages "
            "WHERE thread_id NOT IN (SELECT id FROM threads) GROUP BY thread_id"
        )

    def _count_numbers(self) -> None:
        """Number the rows that have none, after the others, and keep the newest number of each persona."""
        if not self._has("numbers"):
            return
        for table in _NUMBERED:
            without = self._connection.execute(f"SELECT id, persona FROM {table} WHERE number IS NULL ORDER BY id")
            for id_, persona in without.fetchall():
                self._connection.execute(
                    f"UPDATE {table} SET number = (SELECT COALESCE(MAX(number), 0) + 1 FROM {table} WHERE persona = ?) "
                    "WHERE id = ?",
                    (persona, id_),
                )
            self._connection.execute(
                f"INSERT INTO numbers SELECT persona, '{table}', MAX(number) FROM {table} WHERE true GROUP BY persona "
                "ON CONFLICT(persona, counted) DO UPDATE SET newest = MAX(newest, excluded.newest)"
            )

    def _lost(self) -> Lost:
        (there,) = self._connection.execute("SELECT COUNT(*) FROM messages").fetchone()
        (newest,) = self._connection.execute(
            "SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'messages'"
        ).fetchone()
        ids = (id_ for (id_,) in self._connection.execute("SELECT id FROM messages WHERE id > 0 ORDER BY id"))
        gaps = (range(before + 1, id_) for before, id_ in pairwise(chain([0], ids, [newest + 1])))
        return Lost(int(newest) - int(there), tuple(islice(chain.from_iterable(gaps), _MOST_NAMED)))


def _tables(connection: sqlite3.Connection) -> list[_Table]:
    indexes = f"{index_renewal.MESSAGES.condition} OR {index_renewal.ITEMS.condition}"
    names = connection.execute(
        f"SELECT name FROM sqlite_master WHERE type = 'table' AND NOT ({indexes}) "
        "AND name NOT GLOB 'sqlite_*' AND name <> 'schema_migrations'"
    ).fetchall()
    without_numbers = {name for _, name, _, _, is_without, _ in connection.execute("PRAGMA table_list") if is_without}
    found = []
    for (name,) in names:
        columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
        key = sorted((position, column) for _, column, _, _, _, position in columns if position)
        in_order = tuple(column for _, column, *_ in columns)
        found.append(_Table(name, in_order, tuple(column for _, column in key), name not in without_numbers))
    return found


def _stays(table: _Table, row: Row) -> bool:
    """Return whether Chorus never deletes such a row: of the single values, only the ends of earlier personas."""
    if table.name == _META:
        return str(row[table.columns.index("key")]).startswith(meta_rows.threads_before_key(""))
    return table.name not in _DELETED_FROM


def _is_as_written(table: _Table, row: Row) -> bool:
    """Return whether a message has the text that was written; one that was put in with plain SQL has no checksum."""
    values = dict(zip(table.columns, row, strict=True))
    if values["checksum"] is None:
        return True
    names = ("role", "thread_id", "persona", "timestamp", "content")
    role, thread_id, persona, timestamp, content = (values[name] for name in names)
    return bool(checksum(role, thread_id, persona, timestamp, content) == values["checksum"])


def _usable(table: _Table, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the values of a row that every command can read, ``None`` if it cannot be made one.

    A message keeps its text: fields beside it that cannot be read are emptied, and a time is set to the earliest one.
    """
    odd = {name for name, value in values.items() if value is not None and not _is_readable(name, value)}
    if odd and (table.name != MESSAGES or odd - _EMPTIED):
        return None
    emptied = dict.fromkeys(odd, None) | ({"timestamp": _EARLIEST} if "timestamp" in odd else {})
    return {**values, **emptied}


def _is_readable(name: str, value: object) -> bool:
    try:
        if name in _TIMES:
            timestamps.from_text(str(value))
        elif name in _JSON:
            json.loads(str(value))
    except (ValueError, RecursionError):
        return False
    return name != "run" or _RUN.fullmatch(str(value)) is not None
