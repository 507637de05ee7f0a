"""How the rows of the log are read back, and which of them are the newest."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rows.snapshot_rows import TokenCounts
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.messages import Message
from tests.fakes import START
from tests.log.rows.logged_turns import answer, ask, contents, put_in
from tests.storage.database import database

# Reading


def test_rows_come_in_the_order_of_the_log_and_unknown_ones_are_passed_over(connection: sqlite3.Connection) -> None:
    for _ in range(2):
        ask(connection)
    assert [row.id for row in message_rows.rows(connection, [4, 99, 1, 2])] == [1, 2, 4]
    assert message_rows.rows(connection, []) == []


def test_more_ids_can_be_asked_for_than_sqlite_takes_variables(connection: sqlite3.Connection) -> None:
    ask(connection)
    assert [row.id for row in message_rows.rows(connection, range(100_000))] == [1, 2]


def test_rows_since_are_those_of_the_thread_beyond_an_id_and_a_moment(connection: sqlite3.Connection) -> None:
    for hours, thread in [(9, 1), (2, 1), (2, 2), (1, 1)]:
        ask(connection, f"{hours} h ago", thread=thread, at=START - timedelta(hours=hours))
    since = START - timedelta(hours=8)
    assert [row.id for row in message_rows.rows_since(connection, 1, 0, since)] == [3, 4, 7, 8]
    assert [row.id for row in message_rows.rows_since(connection, 1, 4, since)] == [7, 8]
    assert message_rows.rows_since(connection, 3, 0, since) == []


@given(
    said=st.datetimes(datetime(2026, 2, 12), datetime(2026, 2, 12, 0, 0, 2)),  # noqa: DTZ001 - made UTC below
    since=st.datetimes(datetime(2026, 2, 12), datetime(2026, 2, 12, 0, 0, 2)),  # noqa: DTZ001
    digits=st.sampled_from([0, 3, 6]),
)
def test_however_exactly_a_time_was_written_a_younger_row_is_read(said: datetime, since: datetime, digits: int) -> None:
    text = f"{said:%Y-%m-%dT%H:%M:%S.%f}"[: 19 + (digits + 1 if digits else 0)] + "Z"
    connection = database()
    put_in(connection, "by hand", text)
    found = message_rows.rows_since(connection, 1, 0, since.replace(tzinfo=UTC))
    assert found or datetime.fromisoformat(text) <= since.replace(tzinfo=UTC)
    connection.close()


def test_history_comes_in_pages_and_ends_with_an_empty_one(connection: sqlite3.Connection) -> None:
    number = 2 * message_rows.PAGE_ROWS + 1
    for position in range(number):
        put_in(connection, str(position), "2026-02-12T14:30:00Z")
    found: list[Message] = []
    sizes: list[int] = []
    while page := message_rows.history(connection, "frodo", None, None, found[-1].id if found else 0):
        sizes.append(len(page))
        found += page
    assert sizes == [message_rows.PAGE_ROWS, message_rows.PAGE_ROWS, 1]
    assert contents(found) == [str(position) for position in range(number)]


def test_history_can_be_that_of_a_thread_or_since_a_moment(connection: sqlite3.Connection) -> None:
    for content, thread, hours in [("first", 1, 30), ("second", 2, 20), ("third", 1, 10)]:
        answer(connection, ask(connection, content, thread=thread, at=START - timedelta(hours=hours)), "reply")
    read = message_rows.history
    assert contents(read(connection, "frodo", 1, None, 0)) == ["first", "reply", "third", "reply"]
    assert contents(read(connection, "frodo", None, START - timedelta(hours=25), 0)) == [
        "second", "reply", "third", "reply",
    ]  # fmt: skip
    assert read(connection, "frodo", 2, START - timedelta(hours=15), 0) == []


def test_the_newest_message_and_turn_of_an_empty_log_are_none(connection: sqlite3.Connection) -> None:
    assert message_rows.newest_id(connection) == 0
    assert message_rows.newest_turn_id(connection, 1) == 0
    assert operation_rows.last_spoken_at(connection, 1) is None


def test_the_newest_turn_is_the_one_opened_last_in_its_thread(connection: sqlite3.Connection) -> None:
    opened = [ask(connection, thread=thread).question.id for thread in (1, 2, 1, 2)]
    assert [message_rows.newest_turn_id(connection, thread) for thread in (1, 2)] == opened[2:]
    assert message_rows.newest_id(connection) == opened[-1] + 1


def test_a_clock_set_back_changes_no_order(connection: sqlite3.Connection) -> None:
    for hours in (0, 2, 1):
        ask(connection, at=START - timedelta(hours=hours))
    in_order, since = [1, 2, 3, 4, 5, 6], START - timedelta(hours=8)
    assert [row.id for row in message_rows.rows(connection, reversed(in_order))] == in_order
    assert [row.id for row in message_rows.rows_since(connection, 1, 0, since)] == in_order
    assert [row.id for row in message_rows.history(connection, "frodo", None, None, 0)] == in_order
    assert message_rows.id_before_newest(connection, "frodo", None, None, 2) == 4


def test_a_clock_set_back_makes_no_older_turn_the_newest(connection: sqlite3.Connection) -> None:
    ask(connection)
    newest = ask(connection, at=START - timedelta(hours=1))
    assert message_rows.newest_turn_id(connection, 1) == newest.question.id


def test_a_late_row_of_an_older_turn_does_not_make_it_the_newest(connection: sqlite3.Connection) -> None:
    older = ask(connection)
    newest = ask(connection)
    connection.execute(
        "INSERT INTO messages(persona, thread_id, turn_id, role, timestamp) "
        "VALUES ('frodo', 1, ?, 'tool_result', '2026-02-12T14:31:00Z')",
        (older.question.id,),
    )
    assert message_rows.newest_turn_id(connection, 1) == newest.question.id


def test_when_something_was_last_said_is_a_matter_of_its_thread(connection: sqlite3.Connection) -> None:
    ask(connection, thread=1, at=START - timedelta(hours=2))
    ask(connection, thread=2, at=START)
    assert operation_rows.last_spoken_at(connection, 1) == START - timedelta(hours=2)


# Counts


def test_counts_that_were_missing_are_remembered(connection: sqlite3.Connection) -> None:
    ids = [put_in(connection, content, "2026-02-12T14:30:00Z") for content in ("one", "one two", "one two three")]
    assert [row.token_count for row in message_rows.rows(connection, ids)] == [None, None, None]
    snapshot_rows.store_token_counts(connection, TokenCounts({ids[0]: 1, ids[2]: 3}, {}, {}))
    assert [row.token_count for row in message_rows.rows(connection, ids)] == [1, None, 3]
