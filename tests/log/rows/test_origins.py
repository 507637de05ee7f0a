"""Each row names the installation that made it, and its place among the rows of that."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.storage.migrations import STEPS, migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = {
    "messages": (
        "INSERT INTO messages(persona, thread_id, role, timestamp) VALUES ('x', 1, 'user', '2026-02-12T14:30:00Z')"
    ),
    "operations": "INSERT INTO operations(persona, kind) VALUES ('x', 'clear')",
    "summaries": (
        "INSERT INTO summaries(operation_id, persona, thread_id, first_message_id, through_message_id, content) "
        "SELECT id, 'x', 1, 1, 1, 's' FROM operations ORDER BY id LIMIT 1"
    ),
    "context_items": "INSERT INTO context_items(persona, item_type, content) VALUES ('x', 'TASK', 'c')",
}


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        yield opened


def put_in(connection: sqlite3.Connection) -> None:
    connection.execute(ROWS["operations"])
    for statement in ROWS.values():
        connection.execute(statement)


def origins(connection: sqlite3.Connection, table: str) -> list[tuple[int, str, int]]:
    return connection.execute(f"SELECT id, origin, origin_seq FROM {table} ORDER BY id").fetchall()  # noqa: S608 - names of this file


@pytest.mark.parametrize("table", ROWS)
@pytest.mark.parametrize("steps_before", [4, 5])
def test_rows_of_before_and_of_now_are_of_this_installation(
    connection: sqlite3.Connection, table: str, steps_before: int
) -> None:
    migrate(connection, STEPS[:steps_before])
    put_in(connection)
    migrate(connection)
    put_in(connection)
    (own,) = connection.execute("SELECT origin FROM installation").fetchone()
    assert len(own) == 16
    found = origins(connection, table)
    assert found == [(id_, own, id_) for id_, _, _ in found]
    assert len(found) >= 2


def test_a_row_of_another_installation_keeps_its_origin(connection: sqlite3.Connection) -> None:
    migrate(connection)
    connection.execute(
        "INSERT INTO messages(persona, thread_id, role, timestamp, origin, origin_seq) "
        "VALUES ('x', 1, 'user', '2026-02-12T14:30:00Z', 'elsewhere', 7)"
    )
    assert origins(connection, "messages") == [(1, "elsewhere", 7)]


def test_each_installation_has_an_origin_of_its_own() -> None:
    found = set()
    for _ in range(3):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            migrate(connection)
            found |= set(connection.execute("SELECT origin FROM installation"))
    assert len(found) == 3
