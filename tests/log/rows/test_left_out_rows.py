"""What is not in view: each message counted once, under the reason that holds for it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.context.rows.thread_views import Outside, count_outside
from chorus_cli.context.rules.view import Reason
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Clear, Edit, Redo, Restore, Retry, Subject, Undo
from chorus_cli.log.rules.log_acts import Act
from chorus_cli.log.rules.messages import MessageContent, Role, Status
from chorus_cli.log.rules.operations import NewOperation
from tests.fakes import START
from tests.log.rows.test_messages import answer, ask
from tests.log.rows.views import view_in

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from datetime import datetime

    from chorus_cli.log.rules.operations import Operation

HOURS = 8


def found(connection: sqlite3.Connection, now: datetime = START) -> Mapping[Reason, Outside]:
    return count_outside(connection, "frodo", 1, view_in(connection, "frodo", 1, cutoff(now, HOURS)))


def numbers(connection: sqlite3.Connection, now: datetime = START) -> dict[Reason, int]:
    return {reason: each.messages for reason, each in found(connection, now).items()}


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


def retry(connection: sqlite3.Connection, question: int, *replaced: int, hours_ago: float = 0) -> Operation:
    operation = do(connection, Retry(frozenset(replaced)), hours_ago=hours_ago)
    [asked] = message_rows.rows(connection, [question])
    reply = message_rows.open_retry(connection, asked, operation, "model", "run")
    message_rows.update_reply(connection, reply._replace(content="A foe.", status=Status.COMPLETE, token_count=3))
    return operation


def copy(text: str, revises: int | None = None) -> MessageContent:
    return MessageContent(1, Role.USER, text, START - timedelta(days=30), revises=revises)


def test_what_is_left_out_is_counted_by_reason(connection: sqlite3.Connection) -> None:
    say(connection, 30, 20)
    do(connection, Clear(), hours_ago=15)
    say(connection, 12, 10, 9, 1)
    say(connection, 50, thread=2)
    assert found(connection) == {Reason.BOUNDARY: Outside(4, 20), Reason.AGE: Outside(6, 30)}


def test_without_a_boundary_only_age_leaves_out(connection: sqlite3.Connection) -> None:
    say(connection, 30, 1)
    assert found(connection) == {Reason.AGE: Outside(2, 10)}


def test_empty_rows_and_uncounted_tokens_do_not_count(connection: sqlite3.Connection) -> None:
    say(connection, 30, reply="")
    connection.execute(
        "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
        "VALUES ('frodo', 1, 'user', 'not yet counted', '2026-02-11T00:00:00Z')"
    )
    assert found(connection) == {Reason.AGE: Outside(2, 7)}


def test_what_an_edit_kept_is_not_left_out(connection: sqlite3.Connection) -> None:
    say(connection, 30, 20)
    do(connection, Edit(), 1, 2, 3, hours_ago=1)
    assert found(connection) == {Reason.BOUNDARY: Outside(1, 3)}


def test_what_an_edit_kept_is_left_out_by_age_once_the_edit_has_left_the_window(connection: sqlite3.Connection) -> None:
    say(connection, 30, 20)
    do(connection, Edit(), 1, 2, 3, hours_ago=10)
    assert found(connection) == {Reason.BOUNDARY: Outside(1, 3), Reason.AGE: Outside(3, 17)}


def test_a_reply_that_was_asked_for_once_more_is_a_message_like_any_other(connection: sqlite3.Connection) -> None:
    say(connection, 2)
    another = retry(connection, 1, 2, hours_ago=1)
    assert numbers(connection) == {}
    undo(connection, another)
    assert numbers(connection) == {Reason.TAKEN_BACK: 1}
    do(connection, Clear())
    assert numbers(connection) == {Reason.BOUNDARY: 3}
    assert numbers(connection, START + timedelta(hours=20)) == {Reason.BOUNDARY: 3}


def test_another_reply_stays_one_although_a_restore_of_it_is_undone(connection: sqlite3.Connection) -> None:
    say(connection, 2)
    retry(connection, 1, 2)
    do(connection, Clear())
    undo(connection, do(connection, Restore(), 1, 3))
    assert numbers(connection) == {Reason.BOUNDARY: 3}


def test_another_reply_leaves_by_age_whether_it_counts_or_not(connection: sqlite3.Connection) -> None:
    say(connection, 2)
    retry(connection, 1, 2)
    undo(connection, retry(connection, 1))
    assert numbers(connection, START + timedelta(hours=20)) == {Reason.AGE: 4}


def test_what_a_restore_has_put_in_is_told_apart_once_it_is_undone(connection: sqlite3.Connection) -> None:
    say(connection, 3, 2)
    do(connection, Clear())
    restored = do(connection, Restore(), 1, 2, copy("from elsewhere"), copy("and this"))
    assert numbers(connection) == {Reason.BOUNDARY: 2}
    undo(connection, restored)
    assert numbers(connection) == {Reason.BOUNDARY: 4, Reason.WITHDRAWN: 2}
    undo(connection, restored, Redo)
    assert numbers(connection) == {Reason.BOUNDARY: 2}


def test_what_was_restored_again_is_before_the_boundary_although_it_came_with_what_is_undone(
    connection: sqlite3.Connection,
) -> None:
    first = do(connection, Restore(), copy("from elsewhere"))
    undo(connection, first)
    again = do(connection, Restore(), 1)
    assert numbers(connection) == {}
    assert numbers(connection, START + timedelta(hours=20)) == {Reason.AGE: 1}
    do(connection, Clear())
    assert numbers(connection) == {Reason.BOUNDARY: 1}
    undo(connection, again)
    assert numbers(connection) == {Reason.WITHDRAWN: 1}


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


@pytest.mark.parametrize(("content", "number"), [("from a tool", 1), ("", 0)])
def test_what_comes_late_to_a_turn_that_was_cleared_is_cleared_too(
    connection: sqlite3.Connection, content: str, number: int
) -> None:
    say(connection, 3)
    do(connection, Clear())
    connection.execute(
        "INSERT INTO messages(persona, thread_id, turn_id, role, content, timestamp) "
        "VALUES ('frodo', 1, 1, 'tool_result', ?, '2026-02-12T14:30:00Z')",
        (content,),
    )
    assert numbers(connection) == {Reason.BOUNDARY: 2 + number}


def test_a_message_of_another_thread_that_an_edit_kept_is_counted_once_its_restore_is_undone(
    connection: sqlite3.Connection,
) -> None:
    say(connection, 2, thread=2)
    restored = do(connection, Restore((1, 2), threads=((1, 2),)), 1, 2)
    do(connection, Edit((1,)), 1)
    undo(connection, restored)
    do(connection, Clear())
    assert numbers(connection) == {Reason.BOUNDARY: 1}
