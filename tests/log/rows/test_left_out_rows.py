"""What is not in view, counted by reason; `test_view_stateful` compares the counts with a naive model's."""

from __future__ import annotations

import sqlite3
from collections import Counter
from datetime import datetime, timedelta

from chorus_cli.context.rows.thread_views import count_outside
from chorus_cli.context.rules.view import Reason
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Clear, Edit, Redo, Subject, Undo
from chorus_cli.log.rules.log_acts import Act
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE
from tests.fakes import START
from tests.log.rows.test_messages import answer, ask
from tests.log.rows.views import view_in

HOURS = 8


def found(connection: sqlite3.Connection, now: datetime = START) -> tuple[Counter[Reason], Counter[Reason]]:
    return count_outside(connection, "frodo", 1, view_in(connection, "frodo", 1, cutoff(now, HOURS)))


def numbers(connection: sqlite3.Connection, now: datetime = START) -> dict[Reason, int]:
    return found(connection, now)[0]


def say(connection: sqlite3.Connection, *hours_ago: float, thread: int = 1, reply: str = "A friend.") -> None:
    """Say something at each of these moments, in 7 tokens, and have it answered in 3."""
    for each in hours_ago:
        opened = ask(connection, thread=thread, at=START - timedelta(hours=each))
        answer(connection, opened, reply, 3 if reply else 0)


def do(connection: sqlite3.Connection, act: Act, *members: int | MessageContent, hours_ago: float = 0) -> Operation:
    made = START - timedelta(hours=hours_ago)
    return operation_rows.introduce(connection, NewOperation("frodo", act, made, 1, members=members))


def undo(connection: sqlite3.Connection, subject: Operation | int, kind: type[Undo | Redo] = Undo) -> None:
    named = Subject(turn_id=subject) if isinstance(subject, int) else Subject(operation_id=subject.id)
    operation_rows.introduce(connection, NewOperation("frodo", kind(named), START, 1))


def copy(text: str, revises: int | None = None) -> MessageContent:
    return MessageContent(1, Role.USER, text, START - timedelta(days=30), revises=revises)


def test_what_is_left_out_is_counted_by_reason(connection: sqlite3.Connection) -> None:
    say(connection, 30, 20)
    do(connection, Clear(), hours_ago=15)
    say(connection, 12, 10, 9, 1)
    say(connection, 50, thread=2)
    numbers, tokens = found(connection)
    assert numbers == {Reason.BOUNDARY: 4, Reason.AGE: 6}
    assert tokens == {Reason.BOUNDARY: 20 + 4 * TOKENS_PER_MESSAGE, Reason.AGE: 30 + 6 * TOKENS_PER_MESSAGE}


def test_empty_rows_and_uncounted_tokens_do_not_count(connection: sqlite3.Connection) -> None:
    say(connection, 30, reply="")
    connection.execute(
        "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
        "VALUES ('frodo', 1, 'user', 'not yet counted', '2026-02-11T00:00:00Z')"
    )
    assert found(connection) == ({Reason.AGE: 2}, {Reason.AGE: 7 + 2 * TOKENS_PER_MESSAGE})


def test_a_message_that_was_reworded_twice_is_one(connection: sqlite3.Connection) -> None:
    say(connection, 3)
    do(connection, Edit(), copy("reworded", revises=1), 2)
    reworded = do(connection, Edit(), copy("reworded again", revises=3), 2)
    assert numbers(connection) == {}
    assert numbers(connection, START + timedelta(hours=20)) == {Reason.AGE: 2}
    undo(connection, reworded)
    assert numbers(connection) == {}
    undo(connection, 1)
    assert numbers(connection) == {}
    do(connection, Clear())
    assert numbers(connection) == {Reason.BOUNDARY: 2}
