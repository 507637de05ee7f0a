"""The rows of operations: stored, numbered, of an installation, read back to the boundary, and what they leave out."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rows.thread_views import count_outside, thread_at_work
from chorus_cli.context.rules.view import Reason
from chorus_cli.core.errors import ThreadError
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import message_rows, operation_rows, thread_lists, thread_rows
from chorus_cli.log.rows.operation_rows import all_of, introduce, introduce_reversal, since_boundary
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Clear, Edit, Fold, Redo, Restore, Retry, SettingChange, Subject, Undo, Window
from chorus_cli.log.rules.log_acts import Act, Flash, MemoryChange, Unreadable
from chorus_cli.log.rules.messages import MessageContent, Role, Status
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE
from chorus_cli.storage.migrations import STEPS, migrate
from chorus_cli.storage.port import Connection
from tests.amount import examples
from tests.fakes import START
from tests.log.rows.views import view_in
from tests.storage.database import REFUSALS, new_log, without_checks
from tests.storage.schemas import SERVER

THREADS = (1, 2)
BY_THEMSELVES = (Clear(), Edit(), Restore(), Retry(), Window(None, 24), Fold(), Flash())
"""One act of each kind but for undo and redo, which need a subject."""


def say(connection: Connection, text: str = "Hello") -> int:
    """Say something and return the newest id: that of the empty reply."""
    question = MessageContent(1, Role.USER, text, START, token_count=1)
    _, reply = message_rows.open_turn(connection, "frodo", question, "model", "run")
    return reply.id


def clear(connection: Connection, at: datetime = START) -> Operation:
    return introduce(connection, NewOperation("frodo", Clear(), at))


# Storing


def test_clear_advances_last_clear_time(connection: Connection) -> None:
    for hours in (0, 3):
        newest = say(connection)
        clear(connection, START + timedelta(hours=hours))
        base = journal.boundary(since_boundary(connection, "frodo", 1))
        assert base is not None
        assert (base.created_at, base.after_message_id) == (START + timedelta(hours=hours), newest)


def test_clear_does_not_delete_messages_from_db(connection: Connection) -> None:
    say(connection, "still here")
    before = connection.execute("SELECT * FROM messages").fetchall()
    clear(connection)
    assert connection.execute("SELECT * FROM messages").fetchall() == before
    assert [row.content for row in message_rows.history(connection, "frodo", None, None, 0)] == ["still here", ""]


@pytest.mark.parametrize("thread", [None, 1])
@pytest.mark.parametrize(
    ("act", "after"),
    [
        (Clear(), None),
        (Edit((2, 1, 3)), 2),
        (Restore((4,)), None),
        (Retry(frozenset({2, 4})), None),
        (Undo(Subject(operation_id=7)), None),
        (Undo(Subject(turn_id=3)), None),
        (Redo(Subject(operation_id=7)), None),
        (Redo(Subject(turn_id=3)), None),
        (Window(None, 24), None),
        (Window(24, None), None),
        (SettingChange(("mcpServers", "time"), {"command": "uvx", "args": []}, None), None),
        (Window("eight", [1, {"a": None}]), None),
        (Fold(), None),
        (Flash(), None),
    ],
)
def test_every_operation_comes_back_as_it_was_stored(
    connection: Connection, thread: int | None, act: Act, after: int | None
) -> None:
    newest = [say(connection), say(connection)][-1]
    members = act.members
    stored = introduce(connection, NewOperation("frodo", act, START, thread, after, members))
    expected = Operation(1, act, thread, newest if after is None else after, START)
    assert replace(stored, newest_message_id=None) == expected
    assert stored.made_after == newest
    assert all_of(connection, "frodo", 1) == [stored]


def edited(connection: Connection, *members: int) -> Operation:
    return introduce(connection, NewOperation("frodo", Edit(), START, 1, members=members))


def test_members_must_be_messages_of_the_log(connection: Connection) -> None:
    say(connection)
    connection.execute("SAVEPOINT before")
    with pytest.raises(REFUSALS):
        # A server refuses it when a result is asked for.
        all_of(connection, "frodo", edited(connection, 1, 99).thread_id)
    connection.execute("ROLLBACK TO before")
    assert all_of(connection, "frodo", 1) == []


# Reading


Deed = tuple[Act | type[Undo | Redo], int | None, int]
DEEDS = st.tuples(st.sampled_from([*BY_THEMSELVES, Undo, Redo]), st.sampled_from([None, *THREADS]), st.integers(0, 30))


def play(connection: Connection, deeds: list[Deed]) -> None:
    """Store the operations; an undo or redo takes back an earlier operation, and concerns the threads that it did."""
    stored: list[Operation] = []
    for act, thread, choice in deeds:
        if not isinstance(act, type):
            stored.append(introduce(connection, NewOperation("frodo", act, START, thread)))
        elif stored:
            about = stored[choice % len(stored)]
            subject = Subject(operation_id=about.id)
            introduce(connection, NewOperation("frodo", act(subject), START, about.thread_id))


@examples(150)
@given(deeds=st.lists(DEEDS, max_size=25))
def test_what_is_read_is_the_end_of_the_journal_from_its_base_on(deeds: list[Deed]) -> None:
    with new_log() as connection:
        play(connection, deeds)
        for thread in THREADS:
            everything = all_of(connection, "frodo", thread)
            read = since_boundary(connection, "frodo", thread)
            base = journal.boundary(everything)
            assert journal.boundary(read) == base
            by_id = {known.id: known for known in everything}
            of_context = [known for known in everything if not journal.concerns_memory(known, by_id)]
            assert read == [known for known in of_context if base is None or known.id >= base.id]
            assert [known for known in journal.effective(everything) if known in read] == journal.effective(read)


def test_operations_on_the_memory_are_parsed_neither_for_a_context_nor_for_a_reversal(
    connection: Connection,
) -> None:
    say(connection)
    window = introduce(connection, NewOperation("frodo", Window(8, 24), START, 1))
    introduce(connection, NewOperation("frodo", MemoryChange("capture"), START))
    connection.execute("UPDATE operations SET detail = 'not JSON' WHERE kind = 'memory'")
    reversal = introduce_reversal(connection, NewOperation("frodo", Undo(Subject(window.id)), START, 1))
    assert [each.id for each in since_boundary(connection, "frodo", 1)] == [window.id, reversal.id]


def test_a_long_journal_is_read_back_to_its_boundary(connection: Connection) -> None:
    introduce(connection, NewOperation("frodo", Window(4, 8), START, 1))
    boundary = clear(connection)
    windows = [introduce(connection, NewOperation("frodo", Window(8, 24), START, 1)) for _ in range(450)]
    assert since_boundary(connection, "frodo", 1) == [boundary, *windows]


# Damage


@pytest.mark.parametrize(
    "damaged",
    [
        {"detail": "not JSON"},
        {"detail": "[]"},
        {"detail": "null"},
        {"kind": "undo", "detail": '{"undoes": 3}'},
        {"kind": "retry", "detail": '{"replaced": 3}'},
        {"kind": "window", "detail": '{"context_hours": {"before": 8}}'},
        {"created_at": "2026-02-31T00:00:00Z"},
        {"kind": "clean"},
    ],
)
def test_an_operation_that_makes_no_sense_changes_nothing_and_is_named(
    connection: Connection, damaged: dict[str, str]
) -> None:
    clear(connection)
    without_checks(connection)
    for column, value in damaged.items():
        connection.execute(f"UPDATE operations SET {column} = ?", (value,))  # noqa: S608
    for read in (operation_rows.all_of, operation_rows.since_boundary):
        operations = read(connection, "frodo", 1)
        assert [each.act for each in operations] == [Unreadable()]
        assert journal.boundary(operations) is None
        told = "Operation 1 of the journal cannot be read and is passed over; chorus doctor repairs it."
        assert journal.unread_notice(operations) == told


TABLES = ("threads", "operations")
PERSONAS = st.sampled_from(["frodo", "sam", "x"])
HAND_WRITTEN_IDS = st.integers(-2, 12)
MESSAGE = "INSERT INTO messages(persona, thread_id, role, timestamp) VALUES (?, ?, 'user', '2026-02-12T14:30:00Z')"
THREAD_UNLESS_THERE = (
    # A server counts before it finds out that a row is there.
    "INSERT INTO threads(persona, id) SELECT * FROM (SELECT ?, ?) AS new(persona, id) "
    "WHERE new.id NOT IN (SELECT id FROM threads)"
    if SERVER in os.environ
    else "INSERT OR IGNORE INTO threads(persona, id) VALUES (?, ?)"
)
STEP = st.one_of(
    st.tuples(st.just("open"), PERSONAS),
    st.tuples(st.just("clear"), PERSONAS),
    st.tuples(st.just("INSERT INTO threads(persona) VALUES (?)"), PERSONAS),
    st.tuples(st.just(THREAD_UNLESS_THERE), PERSONAS, HAND_WRITTEN_IDS),
    st.tuples(st.just("INSERT INTO operations(persona, kind) VALUES (?, 'retry')"), PERSONAS),
    st.tuples(st.just(MESSAGE), PERSONAS, HAND_WRITTEN_IDS),
)


def done(connection: Connection, step: tuple[str | int, ...]) -> None:
    match step:
        case ("open", str(persona)):
            thread_rows.new(connection, persona, "", START)
        case ("clear", str(persona)):
            operation_rows.introduce(connection, NewOperation(persona, Clear(), START))
        case (str(statement), *values):
            connection.execute(statement, values)


def numbers(connection: Connection, table: str) -> dict[str, list[int]]:
    """Return the numbers of each persona's rows, in the order in which the rows were put in."""
    found: dict[str, list[int]] = defaultdict(list)
    for persona, number in connection.execute(f"SELECT persona, number FROM {table} ORDER BY number"):  # noqa: S608 - names of this file
        found[persona].append(number)
    return found


@given(st.lists(STEP, max_size=30))
def test_the_rows_of_each_persona_are_counted_from_one(steps: list[tuple[str | int, ...]]) -> None:
    with new_log() as connection:
        for step in steps:
            done(connection, step)
        for table in TABLES:
            assert all(counted == list(range(1, len(counted) + 1)) for counted in numbers(connection, table).values())
        unopened = "SELECT COUNT(*) FROM messages WHERE thread_id NOT IN (SELECT id FROM threads)"
        assert connection.execute(unopened).fetchone() == (0,)


def test_the_number_of_a_deleted_row_is_not_given_again_nor_one_twice(connection: Connection) -> None:
    for table, columns, values in (("threads", "persona", "'x'"), ("operations", "persona, kind", "'x', ''")):
        insert, delete = f"INSERT INTO {table}({columns}) VALUES ({values})", f"DELETE FROM {table}"  # noqa: S608
        for statement in (insert, delete, insert):
            connection.execute(statement)
        assert numbers(connection, table) == {"x": [2]}
    connection.execute("INSERT INTO threads(persona) VALUES ('x')")
    with pytest.raises(REFUSALS, match=r"(?i)unique"):
        connection.execute("UPDATE threads SET number = 2 WHERE number = 3").fetchall()


def test_a_row_put_in_with_plain_sql_opens_its_thread(connection: Connection) -> None:
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
    with new_log() as connection:
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


MESSAGE_OF = (
    "INSERT INTO messages(persona, thread_id, role, timestamp{}) VALUES ('x', 1, 'user', '2026-02-12T14:30:00Z'{})"
)
OPERATION = "INSERT INTO operations(persona, kind) VALUES ('x', 'clear')"
ROWS = {
    "messages": MESSAGE_OF.format("", ""),
    "operations": OPERATION,
    "summaries": (
        "INSERT INTO summaries(operation_id, persona, thread_id, first_message_id, through_message_id, content) "
        "SELECT id, 'x', 1, 1, 1, 's' FROM operations ORDER BY id LIMIT 1"
    ),
    "context_items": "INSERT INTO context_items(persona, item_type, content) VALUES ('x', 'TASK', 'c')",
}


def origins(connection: Connection, table: str) -> list[tuple[int, str, int]]:
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
        connection.execute(MESSAGE_OF.format(", origin, origin_seq", ", 'elsewhere', 7"))
        assert origins(connection, "messages")[-1][1:] == ("elsewhere", 7)


def test_each_installation_has_an_origin_of_its_own() -> None:
    found = set()
    for _ in range(3):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            migrate(connection)
            found |= set(connection.execute("SELECT origin FROM installation"))
    assert len(found) == 3


# What is not in view, counted by reason; `test_view_stateful` compares the counts of messages with a naive model's


def outside(connection: Connection, now: datetime = START) -> tuple[Counter[Reason], Counter[Reason]]:
    """Count the messages that eight hours do not reach, and their tokens."""
    return count_outside(connection, "frodo", 1, view_in(connection, "frodo", 1, cutoff(now, 8)))[:2]


def test_tokens_are_counted_by_reason_without_those_of_empty_rows(connection: Connection) -> None:
    say(connection)
    clear(connection, START - timedelta(hours=15))
    say(connection)
    connection.execute(MESSAGE, ("frodo", 1))
    connection.execute("UPDATE messages SET content = 'not yet counted' WHERE id = 5")
    connection.execute("UPDATE messages SET timestamp = '2026-02-12T05:00:00Z', token_count = token_count * id")
    counts = {Reason.BOUNDARY: 1, Reason.AGE: 2}
    tokens = {Reason.BOUNDARY: 1 + TOKENS_PER_MESSAGE, Reason.AGE: 3 + 2 * TOKENS_PER_MESSAGE}
    assert outside(connection) == (counts, tokens)


def test_a_message_that_was_reworded_twice_is_one(connection: Connection) -> None:
    question = MessageContent(1, Role.USER, "Hello", START, token_count=1)
    _, reply = message_rows.open_turn(connection, "frodo", question, "model", "run")
    message_rows.update_reply(connection, reply._replace(content="A friend.", status=Status.COMPLETE, token_count=3))
    for text, revises in (("reworded", 1), ("reworded again", 3)):
        copy = MessageContent(1, Role.USER, text, START - timedelta(days=30), revises=revises)
        edit = introduce(connection, NewOperation("frodo", Edit(), START, 1, members=(copy, reply.id)))
    assert outside(connection)[0] == {}
    assert outside(connection, START + timedelta(hours=20))[0] == {Reason.AGE: 2}
    for subject in (Subject(operation_id=edit.id), Subject(turn_id=1)):
        introduce(connection, NewOperation("frodo", Undo(subject), START, 1))
        assert outside(connection)[0] == {}
    clear(connection)
    assert outside(connection)[0] == {Reason.BOUNDARY: 2}
