"""The bounds of a database that Chorus did not write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chorus_cli.storage.store import Connection, Work, confine

ENDLESS = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) SELECT COUNT(*) FROM more"


def test_a_statement_without_an_end_is_given_up() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        confine(connection)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(ENDLESS).fetchall()


def test_a_value_has_a_largest_size() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        confine(connection)
        with pytest.raises(sqlite3.DataError, match="too big"):
            connection.execute("SELECT zeroblob(900000000)").fetchall()


LONG = """
    WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more LIMIT 4000000) SELECT COUNT(*) FROM more
"""


def test_each_statement_of_a_log_that_stays_open_has_all_the_steps() -> None:
    with closing(sqlite3.connect(":memory:", factory=Connection)) as connection:
        confine(connection)
        assert [connection.execute(LONG).fetchone() for _ in range(4)] == [(4_000_000,)] * 4
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(ENDLESS).fetchall()


def test_a_log_that_has_grown_since_it_was_opened_may_be_worked_on_longer(tmp_path: Path) -> None:
    log = tmp_path / "chorus.db"
    log.write_bytes(b"")
    work = Work(f"{log}", 0)
    assert [work.is_enough() for _ in range(101)] == [False] * 100 + [True]
    with log.open("r+b") as file:
        file.truncate(1_000_000)
    assert [work.is_enough() for _ in range(9)] == [False] * 9
    assert work.is_enough()
