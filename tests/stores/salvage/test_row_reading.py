"""Rows of a damaged table: one whose number is that of another row gets its own, if that is certain."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import pytest

from chorus_cli.stores.salvage.row_reading import RowReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_BYTES_BEFORE_TEXT = 4
"""The number of a row, the length of its header, and the types of its two columns."""


def table(path: Path, numbers: Iterable[int]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
        connection.executemany("INSERT INTO rows(rowid, text) VALUES (?, ?)", [(n, text(n)) for n in numbers])


def text(number: int) -> str:
    return f"text{number:03}"


def misnumber(path: Path, number: int, wrong: int) -> None:
    """Damage the number of a row in the file."""
    data = bytearray(path.read_bytes())
    at = data.index(text(number).encode()) - _BYTES_BEFORE_TEXT
    assert data[at] == number
    data[at] = wrong
    path.write_bytes(data)


def found(path: Path) -> dict[int, str]:
    with closing(sqlite3.connect(path)) as connection:
        rows = list(RowReader(connection, path.stat().st_size).numbered("rows", ("id", "text")))
    assert len({id_ for id_, _ in rows}) == len(rows)
    return dict(rows)


@pytest.mark.parametrize("wrong", [14, 19, 24])
def test_a_row_with_the_number_of_a_later_one_gets_its_own(tmp_path: Path, wrong: int) -> None:
    table(tmp_path / "log", range(1, 25))
    misnumber(tmp_path / "log", 7, wrong)
    assert found(tmp_path / "log") == {number: text(number) for number in range(1, 25)}


@pytest.mark.parametrize("wrong", [14, 19, 24])
def test_it_is_left_out_where_more_than_one_number_might_be_its_own(tmp_path: Path, wrong: int) -> None:
    there = [*range(1, 5), *range(7, 25)]
    table(tmp_path / "log", there)
    misnumber(tmp_path / "log", 7, wrong)
    assert found(tmp_path / "log") == {number: text(number) for number in there if number != 7}


def test_gaps_between_numbers_are_no_damage(tmp_path: Path) -> None:
    there = [2, 3, 9, 20]
    table(tmp_path / "log", there)
    assert found(tmp_path / "log") == {number: text(number) for number in there}


class BrokenPass:
    """Rows of which number 3 is shown as 8 before a pass breaks, and number 5 is lost."""

    def execute(self, query: str, values: tuple[int, ...] = ()) -> Iterator[tuple[int, int, str]] | Found:
        if "rowid > ?" in query:
            return self._pass(values[0])
        if "MAX" in query or "sqlite_sequence" in query:
            return Found((9,))
        return Found(self._row(values[0]) if values[0] in {1, 2, 4, 6, 7, 8, 9} else None)

    def _pass(self, last: int) -> Iterator[tuple[int, int, str]]:
        if last >= 3:
            yield from (self._row(number) for number in (4, 6, 7, 8, 9) if number > last)
            return
        yield from (self._row(number) for number in (1, 2) if number > last)
        yield (8, 8, text(3))
        raise sqlite3.DatabaseError("malformed")

    def _row(self, number: int) -> tuple[int, int, str]:
        return number, number, text(number)


class Found(NamedTuple):
    row: tuple[int, ...] | tuple[int, int, str] | None

    def fetchone(self) -> tuple[int, ...] | tuple[int, int, str] | None:
        return self.row


def test_a_misnumbered_row_before_a_break_gets_no_number_behind_it() -> None:
    reader = RowReader(BrokenPass(), 10_000)  # type: ignore[arg-type]
    assert (5, text(3)) not in list(reader.numbered("rows", ("id", "text")))
