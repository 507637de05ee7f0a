"""The bounds of a database that Chorus did not write."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from chorus_cli.storage.untrusted import confine

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
