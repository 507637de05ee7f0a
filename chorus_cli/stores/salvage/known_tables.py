"""The tables of a log, by which a row is recognised that lies anywhere in a file."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from chorus_cli.core.time import timestamps
from chorus_cli.storage import migrations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from chorus_cli.stores.salvage.file_rows import Row, Value

Values: TypeAlias = "dict[str, Any]"

MESSAGES, OPERATIONS = "messages", "operations"
NUMBERED = ("threads", OPERATIONS)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*Z", re.ASCII)
_RUN = re.compile(r"[\w-]{1,100}", re.ASCII)
_EARLIEST = "1970-01-01T00:00:00.000000Z"
_TEXT = frozenset({"persona", "thread_id", "role", "content"})
_TYPES: Mapping[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (int, float)}
_TIMES = ("timestamp", "created_at", "closed_at", "last_accessed", "window_start", "window_end")
_READ: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(_TIMES, timestamps.from_text),
    **dict.fromkeys(("usage", "attachments", "thought_parts"), json.loads),
    "run": lambda run: _RUN.fullmatch(run) is not None,
    "role": ("user", "assistant", "tool_use", "tool_result").__contains__,
    # Entries of indexes have the form of these two tables.
    "counted": NUMBERED.__contains__,
    "message": lambda key: TIME.fullmatch(key) is None,
}
"""How the values of columns are read: an error or ``False`` tells that one cannot be."""

_COLUMNS = """
    SELECT there.name, there.wr, col.name, col.type, col."notnull" OR col.pk, col.pk AND col.type = 'INTEGER'
    FROM pragma_table_list AS there JOIN pragma_table_info(there.name) AS col
    WHERE there.strict AND there.name NOT IN ('schema_migrations', 'changed_rows') ORDER BY there.name, col.cid"""


class _Column(NamedTuple):
    name: str
    kind: str
    is_required: int
    is_number: int

    def takes(self, value: Value) -> bool:
        """Return whether the column may have a value, and every command can read it."""
        if value is None or not isinstance(value, _TYPES[self.kind]):
            return value is None and not self.is_required
        try:
            return self.name not in _READ or _READ[self.name](str(value)) is not False
        except (ValueError, RecursionError):
            return False


class Table(NamedTuple):
    """A table in its newest form; in its first one a row had the ``fewest`` columns.

    The rows of one that ``is_index`` are stored as entries, without numbers. ``number`` is the column that is the
    number of a row, empty if there is none.
    """

    name: str
    is_index: int
    columns: tuple[_Column, ...]
    fewest: int
    number: str

    def values(self, row: Row) -> Values | None:
        """Return the values of a row by their columns, ``None`` if it is none of this table, or cannot be used.

        A message keeps its text: values beside it that cannot be read are left out, and a lost time is the earliest.
        """
        if bool(self.is_index) is not (row.number is None) or len(row.values) < self.fewest:
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
            # It is not what was written, even if the checksum is lost too.
            values["checksum"] = "" if "checksum" in odd else values["checksum"] or ""
        values["timestamp"] = _EARLIEST if "timestamp" in odd else values["timestamp"]
        return {name: value for name, value in values.items() if name not in odd - {"timestamp", "checksum"}}


def tables() -> tuple[Table, ...]:
    """Return the tables whose rows a salvage keeps: all but those that begin anew."""
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
