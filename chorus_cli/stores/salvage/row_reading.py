"""Rows of a damaged database: each that can still be read, by its table and, past damage, by its number."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from chorus_cli.storage.errors import UNREADABLE

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence

Row = tuple[Any, ...]

_LEAST_ROW_BYTES = 16
_LARGEST_PROBE = 5_000_000


class RowReader:
    """Reads the tables of an open database; ``size_bytes`` bounds the number of its rows.

    Text that is no UTF-8 is read with replacement characters.
    """

    def __init__(self, connection: sqlite3.Connection, size_bytes: int) -> None:
        self._connection = connection
        self._most_rows = min(size_bytes // _LEAST_ROW_BYTES, _LARGEST_PROBE)
        connection.text_factory = lambda stored: stored.decode("utf-8", "replace")

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns, none if it cannot be read."""
        with suppress(*UNREADABLE):
            return tuple(name for _, name, *_ in self._connection.execute(f"PRAGMA table_info({table})").fetchall())
        return ()

    def numbered(
        self, table: str, columns: Sequence[str], is_sound: Callable[[Row], bool] = lambda _row: True
    ) -> Iterator[Row]:
        """Yield the rows of a table with row numbers: in their order, then those that only their number leads to.

        A row that is not sound gives way to one that is and that its number leads to. One with the number of another
        row gets its own, if that is the only one between its neighbours'.
        """
        upper, seen = self._largest_number(table), set[int]()
        for row in self._in_order(table, ", ".join(columns), upper, is_sound):
            seen.add(row[0])
            # A page of another table in a wrong place has rows with numbers of this one.
            other = None if is_sound(row[1:]) else self._one(table, ", ".join(columns), row[0])
            yield other[1:] if other is not None and is_sound(other[1:]) else row[1:]
        # A page in a wrong place leads past the rows between.
        for number in range(1, upper + 1):
            if number not in seen and (found := self._one(table, ", ".join(columns), number)):
                yield found[1:]

    def _in_order(self, table: str, chosen: str, upper: int, is_sound: Callable[[Row], bool]) -> Iterator[Row]:
        last = 0
        while True:
            astray: Row | None = None
            with suppress(*UNREADABLE):
                for row in self._connection.execute(
                    f"SELECT rowid, {chosen} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid", (last,)
                ):
                    if row[0] <= last:
                        break
                    if astray is not None and row[0] == last + 2 and is_sound(astray[1:]):
                        yield last + 1, last + 1, *astray[2:]
                    astray = row if row[0] != last + 1 and self._is_of_another(table, chosen, row, is_sound) else None
                    if astray is None:
                        last = row[0]
                        yield row
                else:
                    return
            following = (self._one(table, chosen, number) for number in range(last + 1, upper + 1))
            after = next(filter(None, following), None)
            if after is None:
                return
            last = after[0]
            yield after

    def _is_of_another(self, table: str, chosen: str, row: Row, is_sound: Callable[[Row], bool]) -> bool:
        """Return whether the number of a row, its first column, is damaged and leads to another row."""
        other = self._one(table, chosen, row[0]) if row[1] == row[0] else None
        return other is not None and other != row and is_sound(other[1:])

    def unnumbered(self, table: str, columns: Sequence[str], key: Sequence[str]) -> Iterator[Row]:
        """Yield the rows of a table without row numbers: from its beginning and from its end up to the damage."""
        chosen, seen = ", ".join(columns), set()
        for direction in ("", " DESC"):
            order = ", ".join(f"{column}{direction}" for column in key)
            with suppress(*UNREADABLE):
                for row in self._connection.execute(f"SELECT {chosen} FROM {table} ORDER BY {order}"):
                    if row not in seen:
                        seen.add(row)
                        yield row

    def newest_number(self, table: str) -> int:
        """Return the largest number that was given to a row of a table, 0 if that cannot be read or is impossible."""
        with suppress(*UNREADABLE):
            row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
            if row is not None and isinstance(row[0], int) and row[0] <= self._most_rows:
                return row[0]
        return 0

    def _largest_number(self, table: str) -> int:
        known = self.newest_number(table)
        with suppress(*UNREADABLE):
            (largest,) = self._connection.execute(f"SELECT MAX(rowid) FROM {table} NOT INDEXED").fetchone()
            return max(known, min(largest or 0, self._most_rows))
        return known if known or self._is_empty(table) else self._most_rows

    def _is_empty(self, table: str) -> bool:
        """Return whether no number was ever given to a row of a table, as far as other tables' numbers are known."""
        with suppress(*UNREADABLE):
            numbered = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_sequence").fetchall()}
            return bool(numbered) and table not in numbered
        return False

    def _one(self, table: str, chosen: str, number: int) -> Row | None:
        try:
            return self._at(table, chosen, number)
        except UNREADABLE:
            pass
        with suppress(*UNREADABLE):
            # Where the number itself cannot be reached, no column can.
            if self._at(table, "rowid", number):
                return self._in_pieces(table, chosen.split(", "), number)
        return None

    def _in_pieces(self, table: str, columns: Sequence[str], number: int) -> Row | None:
        """Read a row whose columns cannot all be read; the unreadable ones are NULL."""
        values: list[object] = []
        for column in columns:
            found: Row | None = None
            with suppress(*UNREADABLE):
                found = self._at(table, column, number)
            values.append(found[1] if found else None)
        return (number, *values) if any(value is not None for value in values) else None

    def _at(self, table: str, chosen: str, number: int) -> Row | None:
        row: Row | None = self._connection.execute(
            f"SELECT rowid, {chosen} FROM {table} NOT INDEXED WHERE rowid = ?", (number,)
        ).fetchone()
        return row if row is not None and row[0] == number else None
