"""Each row names the installation that made it, and its place among the rows of that."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from chorus_cli.storage.migrations import STEPS, migrate

MESSAGE = (
    "INSERT INTO messages(persona, thread_id, role, timestamp{}) VALUES ('x', 1, 'user', '2026-02-12T14:30:00Z'{})"
)
OPERATION = "INSERT INTO operations(persona, kind) VALUES ('x', 'clear')"
ROWS = {
    "messages": MESSAGE.format("", ""),
    "operations": OPERATION,
    "summaries": (
        "INSERT INTO summaries(operation_id, persona, thread_id, first_message_id, through_message_id, content) "
        "SELECT id, 'x', 1, 1, 1, 's' FROM operations ORDER BY id LIMIT 1"
    ),
    "context_items": "INSERT INTO context_items(persona, item_type, content) VALUES ('x', 'TASK', 'c')",
}


def origins(connection: sqlite3.Connection, table: str) -> list[tuple[int, str, int]]:
    found = "SELECT id, origin, origin_seq FROM {} ORDER BY id"
    return connection.execute(found.format(table)).fetchall()


@pytest.mark.parametrize("steps_before", [4, 5])
def test_rows_of_before_and_of_now_are_of_this_installation_unless_they_say_otherwise(steps_before: int) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for steps in (STEPS[:steps_before], STEPS):
            migrate(connection, steps)
            for statement in (OPERATION, *ROWS.values()):
                connection.execute(statement)
        (own,) = connection.execute("SELECT origin FROM installation").fetchone()
        assert len(own) == 16
        for table in ROWS:
            rows = origins(connection, table)
            assert rows == [(id_, own, id_) for id_, _, _ in rows]
            assert len(rows) >= 2
        connection.execute(MESSAGE.format(", origin, origin_seq", ", 'elsewhere', 7"))
        assert origins(connection, "messages")[-1][1:] == ("elsewhere", 7)


def test_each_installation_has_an_origin_of_its_own() -> None:
    found = set()
    for _ in range(3):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            migrate(connection)
            found |= set(connection.execute("SELECT origin FROM installation"))
    assert len(found) == 3
