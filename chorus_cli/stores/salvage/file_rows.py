"""Reads the rows in a SQLite file page by page, and finds the table of the log that a row belongs to.

The format is described in ``sqlite.org/fileformat2.html``. Each page is read by itself and no tree is walked, so a
damaged root, header or list of free pages hides no row.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from chorus_cli.core.time import timestamps
from chorus_cli.storage import migrations

Value: TypeAlias = int | float | str | bytes | None

_INDEX_INNER, _TABLE_INNER, _INDEX_LEAF, _TABLE_LEAF = 0x02, 0x05, 0x0A, 0x0D
_HEADER_BYTES = {_INDEX_INNER: 12, _TABLE_INNER: 12, _INDEX_LEAF: 8, _TABLE_LEAF: 8}
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_FLOAT, _ZERO, _ONE, _FIRST_WITH_LENGTH = 7, 8, 9, 12
_PAGE_BYTES = 4096
"""The size of a page in each file that Chorus makes."""

_MOST_COLUMNS = 64


class Row(NamedTuple):
    """A row of a table, or an entry of an index, which has no ``number``. Unless it ``is_whole``, its end is lost."""

    number: int | None
    values: tuple[Value, ...]
    is_whole: bool


def file_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of all tables and the entries of all indexes, page by page, as far as they can be read."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        pages = _Pages(descriptor, -(-os.fstat(descriptor).st_size // _PAGE_BYTES))
        for number in range(pages.number):
            page = pages.page(number)
            for at in _cells(page) if page[0] != _TABLE_INNER else ():
                with suppress(IndexError, struct.error):
                    yield _row(pages, page, at)
    finally:
        os.close(descriptor)


class _Pages(NamedTuple):
    descriptor: int
    number: int

    def page(self, number: int) -> bytes:
        """Return a page. The first page has the number 0."""
        return os.pread(self.descriptor, _PAGE_BYTES, number * _PAGE_BYTES)


def _cells(page: bytes) -> tuple[int, ...]:
    """Return the positions of the cells of a page; none if the page is not part of a tree."""
    header = _HEADER_BYTES.get(page[0], 0)
    number = int.from_bytes(page[3:5], "big")
    if not header or header + 2 * number > len(page):
        return ()
    # SQLite takes a position modulo the size of a page, so it reads some rows in spite of a flipped bit.
    return tuple(at % _PAGE_BYTES for at in struct.unpack_from(f">{number}H", page, header))


def _row(pages: _Pages, page: bytes, at: int) -> Row:
    if page[0] == _INDEX_INNER:
        at += 4
    size, at = _number(page, at)
    number = None
    if page[0] == _TABLE_LEAF:
        number, at = _number(page, at)
    payload = _payload(pages, page, at, size)
    return Row(number, _values(payload), len(payload) == size)


def _payload(pages: _Pages, page: bytes, at: int, size: int) -> bytes:
    """Return the bytes of a row, also from its overflow pages, as far as they are there."""
    most = _PAGE_BYTES - 35 if page[0] == _TABLE_LEAF else (_PAGE_BYTES - 12) * 64 // 255 - 23
    if size <= most:
        return page[at : at + size]
    least = (_PAGE_BYTES - 12) * 32 // 255 - 23
    local = least + (size - least) % (_PAGE_BYTES - 4)
    local = local if local <= most else least
    payload, following = bytearray(page[at : at + local]), page[at + local : at + local + 4]
    seen = {0}
    while len(payload) < size and (number := int.from_bytes(following, "big")) not in seen and number <= pages.number:
        seen.add(number)
        overflow = pages.page(number - 1)
        payload += overflow[4:]
        following = overflow[:4]
    return bytes(payload[:size])


def _values(payload: bytes) -> tuple[Value, ...]:
    end, at = _number(payload, 0)
    begin, values = end, list[Value]()
    while at < end and len(values) < _MOST_COLUMNS:
        kind, at = _number(payload, at)
        value, begin = _value(payload, begin, kind)
        values.append(value)
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    """Return the value of this kind at a position, and the position after it. A text may be cut off at its end."""
    if kind >= _FIRST_WITH_LENGTH:
        end = at + (kind - _FIRST_WITH_LENGTH) // 2
        found = payload[at:end]
        if end > len(payload) and not found:
            return None, end
        return found.decode("utf-8", "replace") if kind % 2 else found, end
    if kind in (_ZERO, _ONE):
        return kind - _ZERO, at
    end = at + (8 if kind == _FLOAT else _INTEGER_BYTES.get(kind, 0))
    if end == at or end > len(payload):
        return None, end
    if kind == _FLOAT:
        return struct.unpack_from(">d", payload, at)[0], end
    return int.from_bytes(payload[at:end], "big", signed=True), end


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if not data[place] & 0x80:
            return value, place + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >= 1 << 63 else value, at + 9


Values: TypeAlias = "dict[str, Any]"

MESSAGES, OPERATIONS = "messages", "operations"
NUMBERED = ("threads", OPERATIONS)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*Z", re.ASCII)
_RUN = re.compile(r"[\w.@-]{1,100}", re.ASCII)
_EARLIEST = "1970-01-01T00:00:00.000000Z"
_TEXT = frozenset({"persona", "thread_id", "role", "content"})
_TYPES: Mapping[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (int, float)}
TIMES = ("timestamp", "created_at", "closed_at", "last_accessed", "window_start", "window_end")
_READ: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(TIMES, timestamps.from_text),
    **dict.fromkeys(("usage", "attachments", "thought_parts"), json.loads),
    "run": lambda run: _RUN.fullmatch(run) is not None,
    "role": ("user", "assistant", "tool_use", "tool_result").__contains__,
    # Some entries of indexes look like rows of the two tables with these columns.
    "counted": NUMBERED.__contains__,
    "message": lambda key: TIME.fullmatch(key) is None,
}
"""How the values of columns are read. An error or the result ``False`` means that a value cannot be read."""

_COLUMNS = """
    SELECT there.name, there.wr, col.name, col.type, col."notnull" OR col.pk, col.pk AND col.type = 'INTEGER'
    FROM pragma_table_list AS there JOIN pragma_table_info(there.name) AS col
    WHERE there.strict AND there.name NOT IN ('schema_migrations', 'changed_rows', 'message_vectors')
    ORDER BY there.name, col.cid"""


class _Column(NamedTuple):
    name: str
    kind: str
    is_required: int
    is_number: int

    def takes(self, value: Value) -> bool:
        """Return whether the column may have this value and every command can read it."""
        if value is None or not isinstance(value, _TYPES[self.kind]):
            return value is None and not self.is_required
        try:
            return self.name not in _READ or _READ[self.name](str(value)) is not False
        except (ValueError, RecursionError):
            return False


class Table(NamedTuple):
    """A table in its newest form. In its first form, the table had the ``fewest`` columns.

    If it ``is_index`` (``WITHOUT ROWID``), its rows are stored like entries of an index, without numbers. ``number``
    is the name of the column with the number of the row, empty if there is none.
    """

    name: str
    is_index: int
    columns: tuple[_Column, ...]
    fewest: int
    number: str

    def values(self, row: Row) -> Values | None:
        """Return the values of a row by their columns, ``None`` if it belongs to another table or cannot be used.

        A message with persona, thread, role and text is used, without its unreadable values. A lost time becomes 1970.
        """
        number = len(row.values)
        # A user may have added columns to the table of messages.
        if number < self.fewest or (number > len(self.columns) and self.name != MESSAGES):
            return None
        if bool(self.is_index) is not (row.number is None):
            return None
        values: Values = dict(zip((column.name for column in self.columns), row.values, strict=False))
        if self.number and values[self.number] is not None:
            return None
        if self.number:
            values[self.number] = row.number
        odd = {column.name for column in self.columns[: len(values)] if not column.takes(values[column.name])}
        if self.name != MESSAGES:
            return values if not odd and row.is_whole and len(row.values) == len(values) else None
        if odd & _TEXT:
            return None
        if not row.is_whole or not odd.isdisjoint(("timestamp", "checksum")):
            # Without a checksum, the message would look as if plain SQL had stored it.
            values["checksum"] = "" if "checksum" in odd else values["checksum"] or ""
        values["timestamp"] = _EARLIEST if "timestamp" in odd else values["timestamp"]
        return {name: value for name, value in values.items() if name not in odd - {"timestamp", "checksum"}}


def tables() -> tuple[Table, ...]:
    """Return the tables whose rows a salvage keeps. The others begin empty."""
    found, earlier = dict[str, Table](), dict[str, Table]()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for step in range(1, len(migrations.STEPS) + 1):
            migrations.migrate(connection, migrations.STEPS[:step])
            found, earlier = {}, found
            for (name, is_index), rows in groupby(connection.execute(_COLUMNS), key=lambda row: row[:2]):
                columns = tuple(_Column(*row[2:]) for row in rows)
                fewest = earlier[name].fewest if name in earlier else len(columns)
                number = "" if is_index else next((each.name for each in columns if each.is_number), "")
                found[name] = Table(name, is_index, columns, fewest, number)
    return tuple(found.values())
