"""Threads whose replies ended with their process are kept until a chat names them, whoever finds them first."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

from chorus_cli.log.rows import interrupted_replies, message_rows, operation_rows, thread_rows
from chorus_cli.log.rows.interrupted_replies import BrokenOff
from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.messages import Status
from chorus_cli.log.rules.operations import NewOperation
from tests.fakes import START
from tests.log.rows.logged_turns import answer, ask

SINCE = START - timedelta(hours=1)


def find(connection: sqlite3.Connection, *given_up: int) -> None:
    """Do as a process does that starts or sends a message."""
    interrupted_replies.mark_interrupted(connection, lambda run: run == "alive", START, given_up)


def taken(connection: sqlite3.Connection) -> list[int]:
    return [place.thread_number for place in interrupted_replies.take_broken_off(connection, SINCE)]


def test_threads_that_several_processes_find_are_named_once(connection: sqlite3.Connection) -> None:
    assert interrupted_replies.take_broken_off(connection, SINCE) == ()
    ask(connection, run="gone", thread=1)
    find(connection)
    ask(connection, run="gone", thread=2, persona="bilbo")
    ask(connection, run="gone", thread=1)
    find(connection)
    find(connection)
    assert interrupted_replies.take_broken_off(connection, SINCE) == (
        BrokenOff("frodo", 1, "Who goes there?"),
        BrokenOff("bilbo", 1, "Who goes there?"),
    )
    assert interrupted_replies.take_broken_off(connection, SINCE) == ()


def test_replies_that_end_with_their_process_alive_are_not_named(connection: sqlite3.Connection) -> None:
    given_up = ask(connection, run="alive", thread=1).reply
    stopped = ask(connection, run="alive", thread=2).reply
    message_rows.update_reply(connection, stopped._replace(status=Status.INTERRUPTED))
    ask(connection, run="alive", thread=3)
    find(connection, given_up.id)
    assert taken(connection) == []


def test_a_thread_is_not_named_that_was_closed_went_on_or_was_cleared(connection: sqlite3.Connection) -> None:
    for thread in (1, 2):
        ask(connection, run="gone", thread=thread)
    find(connection)
    thread_rows.close(connection, [1], START)
    answer(connection, ask(connection, thread=2))
    assert taken(connection) == []
    ask(connection, run="gone", thread=3)
    find(connection)
    operation_rows.introduce(connection, NewOperation("frodo", Clear(), START, None))
    assert taken(connection) == []


def test_a_reply_that_no_window_reaches_is_not_named(connection: sqlite3.Connection) -> None:
    ask(connection, run="gone", at=SINCE)
    find(connection)
    assert taken(connection) == []
