"""The log: what is stored of a turn, how a reply grows, and what is said of damaged rows."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import DatabaseDamagedError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import interrupted_replies, message_rows, operation_rows
from chorus_cli.log.rules.messages import Message, Role, Status
from tests.fakes import START
from tests.log.rows.logged_turns import answer, ask, contents, everything, put_in
from tests.storage.database import database

if TYPE_CHECKING:
    from collections.abc import Callable

EPOCH = datetime(1, 1, 1, tzinfo=UTC)


# Storing a turn


def test_message_persisted_to_sqlite(connection: sqlite3.Connection) -> None:
    answer(connection, ask(connection))
    assert connection.execute("SELECT role, content FROM messages ORDER BY id").fetchall() == [
        ("user", "Who goes there?"),
        ("assistant", "A friend."),
    ]


def test_message_includes_agent_name_and_thread_id(connection: sqlite3.Connection) -> None:
    opened = ask(connection, persona="reviewer", thread=9)
    assert {(row.persona, row.thread_id) for row in (opened.question, opened.reply)} == {("reviewer", 9)}
    assert connection.execute("SELECT DISTINCT persona, thread_id FROM messages").fetchall() == [("reviewer", 9)]


def test_message_includes_timestamp(connection: sqlite3.Connection) -> None:
    in_berlin = datetime(2026, 7, 1, 1, 30, 0, 250_000, tzinfo=ZoneInfo("Europe/Berlin"))
    opened = ask(connection, at=in_berlin)
    assert opened.question.timestamp == in_berlin
    assert opened.question.timestamp.tzinfo is UTC
    assert connection.execute("SELECT DISTINCT timestamp FROM messages").fetchall() == [
        ("2026-06-30T23:30:00.250000Z",)
    ]


def test_messages_queryable_by_agent(connection: sqlite3.Connection) -> None:
    for persona, content in [("frodo", "one"), ("reviewer", "two"), ("frodo", "three")]:
        answer(connection, ask(connection, content, persona=persona), "reply")
    assert contents(everything(connection, "frodo")) == ["one", "reply", "three", "reply"]
    assert contents(everything(connection, "reviewer")) == ["two", "reply"]


def test_a_turn_opens_with_its_question_and_an_empty_reply_in_progress(connection: sqlite3.Connection) -> None:
    ask(connection)
    opened = ask(connection, "And you?")
    question = Message(3, "frodo", 1, 3, Role.USER, "And you?", START, preamble="It is late.", token_count=7)
    assert opened.question == question
    assert opened.reply == Message(
        4, "frodo", 1, 3, Role.ASSISTANT, "", START, status=Status.STREAMING, run="this-run", model="model",
        token_count=0,
    )  # fmt: skip
    assert message_rows.rows(connection, [3, 4]) == [opened.question, opened.reply]


def test_a_reply_grows_and_ends_and_its_question_stays_as_it_was(connection: sqlite3.Connection) -> None:
    opened = ask(connection)
    usage = {"prompt_tokens": 40, "completion_tokens": 3}
    for grown in (
        opened.reply._replace(content="A fri", status=Status.STREAMING, token_count=2),
        opened.reply._replace(content="A friend.", status=Status.TRUNCATED, token_count=3, usage=usage),
    ):
        message_rows.update_reply(connection, grown)
        assert everything(connection) == [opened.question, grown]


@given(content=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_as_it_was_said(content: str) -> None:
    connection = database()
    opened = ask(connection, content)
    assert contents([opened.question, answer(connection, opened, content)]) == [content, content]
    connection.close()


def test_a_crash_between_two_rows_of_a_turn_cannot_happen(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    ask(connection)
    connection.execute("ROLLBACK")
    assert everything(connection) == []


# Checksums


def expected_checksum(message: Message) -> str:
    moment = message.timestamp.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    text = f"{message.role.value}|{message.thread_id}|{message.persona}|{moment}|{message.content}"
    return blake2b(text.encode(), digest_size=8).hexdigest()


def test_each_row_carries_the_checksum_of_what_it_says(connection: sqlite3.Connection) -> None:
    opened = ask(connection, "é 😀")
    rows = [opened.question, answer(connection, opened, "So it seems.")]
    stored = connection.execute("SELECT checksum FROM messages ORDER BY id").fetchall()
    assert stored == [(expected_checksum(row),) for row in rows]
    assert len(stored[0][0]) == 16


@pytest.mark.parametrize(
    "changed",
    [
        ("assistant", 1, "frodo", "2026-02-12T14:30:00.000000Z", "Hello"),
        ("user", 2, "frodo", "2026-02-12T14:30:00.000000Z", "Hello"),
        ("user", 1, "sam", "2026-02-12T14:30:00.000000Z", "Hello"),
        ("user", 1, "frodo", "2026-02-12T14:30:00.000001Z", "Hello"),
        ("user", 1, "frodo", "2026-02-12T14:30:00.000000Z", "Hallo"),
    ],
)
def test_a_changed_row_no_longer_fits_its_checksum(changed: tuple[str, int, str, str, str]) -> None:
    original = message_rows.checksum("user", 1, "frodo", "2026-02-12T14:30:00.000000Z", "Hello")
    assert message_rows.checksum(*changed) != original


# Replies whose process is gone


def test_replies_of_processes_that_are_gone_become_interrupted(connection: sqlite3.Connection) -> None:
    running = ask(connection, run="alive")
    gone = ask(connection, run="gone")
    message_rows.update_reply(connection, gone.reply._replace(content="Half a rep", token_count=3))
    finished = answer(connection, ask(connection, run="gone"))
    connection.execute(
        "INSERT INTO messages(persona, thread_id, role, status, timestamp) "
        "VALUES ('frodo', 1, 'assistant', 'streaming', '2026-02-12T14:30:00Z')"
    )
    assert len(interrupted_replies.mark_interrupted(connection, lambda run: run == "alive", START).interrupted) == 2
    found = {row.id: (row.status, row.content) for row in everything(connection) if row.role is Role.ASSISTANT}
    assert found == {
        running.reply.id: (Status.STREAMING, ""),
        gone.reply.id: (Status.INTERRUPTED, "Half a rep"),
        finished.id: (Status.COMPLETE, "A friend."),
        7: (Status.INTERRUPTED, ""),
    }


def test_without_replies_in_progress_nobody_is_asked_whether_they_live(connection: sqlite3.Connection) -> None:
    answer(connection, ask(connection))

    def asked(run: str) -> bool:
        raise AssertionError(run)

    assert interrupted_replies.mark_interrupted(connection, asked, START).interrupted == ()


# Damage


@pytest.mark.parametrize(
    "read",
    [
        lambda connection: message_rows.rows(connection, [1]),
        lambda connection: message_rows.rows_since(connection, 1, 0, EPOCH),
        lambda connection: message_rows.history(connection, "frodo", None, None, 0),
    ],
    ids=["rows", "rows_since", "history"],
)
@pytest.mark.parametrize("timestamp", ["2026-13-45T25:61:61Z", "2026-02-30T00:00:00Z", "2026-02-12T14:30:00 noonZ"])
def test_a_damaged_time_is_a_sentence(
    connection: sqlite3.Connection, timestamp: str, read: Callable[[sqlite3.Connection], object]
) -> None:
    put_in(connection, "when?", timestamp)
    assert operation_rows.last_spoken_at(connection, 1) is None
    with pytest.raises(DatabaseDamagedError, match=f"Message 1 of frodo, of {timestamp}, cannot be read: "):
        read(connection)


@pytest.mark.parametrize(("column", "damaged"), [("role", "usar"), ("status", "complexe"), ("usage", "{'prompt")])
def test_a_row_that_makes_no_sense_is_a_sentence_that_names_it(
    connection: sqlite3.Connection, column: str, damaged: str
) -> None:
    answer(connection, ask(connection))
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(f"UPDATE messages SET {column} = ? WHERE id = 2", (damaged,))  # noqa: S608
    with pytest.raises(DatabaseDamagedError, match="Message 2 of frodo"):
        everything(connection)


def test_times_are_written_in_one_width_so_that_text_order_is_time_order() -> None:
    moments = [START, START + timedelta(microseconds=1), datetime(2026, 2, 12, 15, tzinfo=UTC)]
    texts = [timestamps.to_text(moment) for moment in moments]
    assert texts == sorted(texts)
    assert {len(text) for text in texts} == {27}
    assert [timestamps.from_text(text) for text in texts] == moments
