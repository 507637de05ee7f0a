"""Numbers of threads and operations: from 1 for each persona, stored, never given twice."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rows.thread_views import thread_at_work
from chorus_cli.core.errors import ThreadError
from chorus_cli.log.rows import operation_rows, thread_lists, thread_rows
from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage.migrations import STEPS, migrate
from tests.fakes import START
from tests.storage.database import database

TABLES = ("threads", "operations")
PERSONAS = st.sampled_from(["frodo", "sam", "x"])
HAND_WRITTEN_IDS = st.integers(-2, 12)
MESSAGE = "INSERT INTO messages(persona, thread_id, role, timestamp) VALUES (?, ?, 'user', '2026-02-12T14:30:00Z')"
STEP = st.one_of(
    st.tuples(st.just("open"), PERSONAS),
    st.tuples(st.just("clear"), PERSONAS),
    st.tuples(st.just("INSERT INTO threads(persona) VALUES (?)"), PERSONAS),
    st.tuples(st.just("INSERT OR IGNORE INTO threads(persona, id) VALUES (?, ?)"), PERSONAS, HAND_WRITTEN_IDS),
    st.tuples(st.just("INSERT INTO operations(persona, kind) VALUES (?, 'retry')"), PERSONAS),
    st.tuples(st.just(MESSAGE), PERSONAS, HAND_WRITTEN_IDS),
)


def done(connection: sqlite3.Connection, step: tuple[str | int, ...]) -> None:
    match step:
        case ("open", str(persona)):
            thread_rows.new(connection, persona, "", START)
        case ("clear", str(persona)):
            operation_rows.introduce(connection, NewOperation(persona, Clear(), START))
        case (str(statement), *values):
            connection.execute(statement, values)


def numbers(connection: sqlite3.Connection, table: str) -> dict[str, list[int]]:
    """Return the numbers of each persona's rows, in the order in which the rows were put in."""
    found: dict[str, list[int]] = defaultdict(list)
    for persona, number in connection.execute(f"SELECT persona, number FROM {table} ORDER BY number"):  # noqa: S608 - names of this file
        found[persona].append(number)
    return found


@given(st.lists(STEP, max_size=30))
def test_the_rows_of_each_persona_are_counted_from_one(steps: list[tuple[str | int, ...]]) -> None:
    with closing(database()) as connection:
        for step in steps:
            done(connection, step)
        for table in TABLES:
            assert all(counted == list(range(1, len(counted) + 1)) for counted in numbers(connection, table).values())
        unopened = "SELECT COUNT(*) FROM messages WHERE thread_id NOT IN (SELECT id FROM threads)"
        assert connection.execute(unopened).fetchone() == (0,)


@given(st.lists(STEP, max_size=30))
def test_an_operation_comes_back_with_its_number(steps: list[tuple[str | int, ...]]) -> None:
    with closing(database()) as connection:
        for step in steps:
            done(connection, step)
        stored = operation_rows.introduce(connection, NewOperation("frodo", Clear(), START))
        listed = operation_rows.all_of(connection, "frodo", None)
        assert [each.number for each in listed] == list(range(1, len(listed) + 1))
        assert stored.number == listed[-1].number


@pytest.mark.parametrize(
    ("table", "insert"),
    [
        ("threads", "INSERT INTO threads(persona) VALUES ('x')"),
        ("operations", "INSERT INTO operations(persona, kind) VALUES ('x', '')"),
    ],
)
def test_the_number_of_a_deleted_row_is_not_given_again(
    connection: sqlite3.Connection, table: str, insert: str
) -> None:
    connection.execute(insert)
    connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names of this file
    connection.execute(insert)
    assert numbers(connection, table) == {"x": [2]}


def test_no_two_threads_of_a_persona_have_one_number(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO threads(persona) VALUES ('x')")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        connection.execute("INSERT INTO threads(persona, number) VALUES ('x', 1)")


def test_a_row_put_in_with_plain_sql_opens_its_thread(connection: sqlite3.Connection) -> None:
    thread_rows.new(connection, "frodo", "", START)
    for thread_id in (7, 7, 4):
        connection.execute(MESSAGE, ("sam", thread_id))
    assert thread_rows.numbers(connection, "sam") == {7: 1, 4: 2}
    assert [each.messages for each in thread_lists.all_threads(connection, "sam")] == [1, 2]
    assert thread_rows.numbered(connection, "sam", 2) == (4, 2)
    with pytest.raises(ThreadError, match=r"There is no thread #7 here\."):
        thread_rows.numbered(connection, "sam", 7)


def test_old_rows_are_counted_in_the_order_of_their_ids() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, STEPS[:3])
        for persona in ("sam", "frodo", "sam", "frodo"):
            connection.execute("INSERT INTO threads(persona) VALUES (?)", (persona,))
            connection.execute("INSERT INTO operations(persona, kind) VALUES (?, 'clear')", (persona,))
        connection.execute("DELETE FROM threads WHERE id = 2")
        # One thread was opened; one was only named by rows, those of two personas.
        for persona, thread_id in (("sam", 1), ("frodo", 9), ("sam", 9)):
            connection.execute(MESSAGE, (persona, thread_id))
        migrate(connection)
        assert thread_rows.numbers(connection, "sam") == {1: 1, 3: 2}
        assert thread_rows.numbers(connection, "frodo") == {4: 1, 9: 2}
        assert [(each.id, each.number) for each in operation_rows.all_of(connection, "frodo", None)] == [(2, 1), (4, 2)]
        assert thread_rows.new(connection, "frodo", "", START).number == 3
        assert operation_rows.introduce(connection, NewOperation("frodo", Clear(), START)).number == 3


def test_a_thread_without_a_title_has_one_name_even_if_two_messages_have_one_time() -> None:
    with closing(database()) as connection:
        for id_, said in ((9, "second"), (3, "first")):
            connection.execute(
                "INSERT INTO messages(id, persona, thread_id, role, content, timestamp) "
                "VALUES (?, 'frodo', 7, 'user', ?, '2026-02-12T14:30:00Z')",
                (id_, said),
            )
        [thread] = thread_lists.all_threads(connection, "frodo")
        assert (thread.number, thread.name) == thread_rows.number_and_name(connection, 7) == (1, "first")
        beginning = thread_at_work(connection, 7, "a question", START)
        assert (beginning.number, beginning.title) == (1, "first")
