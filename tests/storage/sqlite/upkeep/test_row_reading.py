"""Rows of a damaged table: one whose number is that of another row gets its own, if that is certain."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.storage.sqlite.upkeep.row_reading import RowReader

if TYPE_CHECKING:
    from collections.abc import Iterable
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
