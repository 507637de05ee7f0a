"""The rows of messages: what is stored of a turn, how it is read back, and what is said of damaged ones."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chorus_cli.core import limits
from chorus_cli.core.errors import DatabaseDamagedError
from chorus_cli.log.rows import input_rows, interrupted_replies, message_rows, operation_rows, thread_rows
from chorus_cli.log.rows.interrupted_replies import BrokenOff
from chorus_cli.log.rows.message_rows import sized
from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Status
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage.port import Connection, FinishedRows
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store
from tests.fakes import START
from tests.storage.database import new_log, without_checks
from tests.storage.schemas import SERVER


class OpenedTurn(NamedTuple):
    question: Message
    reply: Message


def ask(
    connection: Connection,
    content: str = "Who goes there?",
    *,
    persona: str = "frodo",
    thread: int = 1,
    at: datetime = START,
    run: str = "this-run",
) -> OpenedTurn:
    question = MessageContent(thread, Role.USER, content, at, preamble="It is late.", token_count=7)
    return OpenedTurn(*message_rows.open_turn(connection, persona, question, "model", run))


def answer(connection: Connection, opened: OpenedTurn, content: str = "A friend.", tokens: int = 3) -> Message:
    grown = opened.reply._replace(content=content, status=Status.COMPLETE, token_count=tokens)
    message_rows.update_reply(connection, grown)
    return message_rows.rows(connection, [opened.reply.id])[0]


def put_in(connection: Connection, content: str, timestamp: str, *, thread: int = 1) -> int:
    stored = connection.execute(
        "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES ('frodo', ?, 'user', ?, ?) "
        "RETURNING id",
        (thread, content, timestamp),
    )
    return int(stored.fetchone()[0])


def everything(connection: Connection, persona: str = "frodo") -> list[Message]:
    return message_rows.history(connection, persona, None, None, 0)


def contents(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]


EPOCH = datetime(1, 1, 1, tzinfo=UTC)


# Storing a turn


def test_message_persisted_to_sqlite(connection: Connection) -> None:
    answer(connection, ask(connection))
    assert connection.execute("SELECT role, content FROM messages ORDER BY id").fetchall() == [
        ("user", "Who goes there?"),
        ("assistant", "A friend."),
    ]


def test_message_includes_agent_name_and_thread_id(connection: Connection) -> None:
    opened = ask(connection, persona="reviewer", thread=9)
    assert {(row.persona, row.thread_id) for row in (opened.question, opened.reply)} == {("reviewer", 9)}
    assert connection.execute("SELECT DISTINCT persona, thread_id FROM messages").fetchall() == [("reviewer", 9)]


def test_message_includes_timestamp(connection: Connection) -> None:
    in_berlin = datetime(2026, 7, 1, 1, 30, 0, 250_000, tzinfo=ZoneInfo("Europe/Berlin"))
    opened = ask(connection, at=in_berlin)
    assert opened.question.timestamp == in_berlin
    assert opened.question.timestamp.tzinfo is UTC
    assert connection.execute("SELECT DISTINCT timestamp FROM messages").fetchall() == [
        ("2026-06-30T23:30:00.250000Z",)
    ]


def test_messages_queryable_by_agent(connection: Connection) -> None:
    for persona, content in [("frodo", "one"), ("reviewer", "two"), ("frodo", "three")]:
        answer(connection, ask(connection, content, persona=persona), "reply")
    assert contents(everything(connection, "frodo")) == ["one", "reply", "three", "reply"]
    assert contents(everything(connection, "reviewer")) == ["two", "reply"]


def test_a_turn_opens_with_its_question_and_an_empty_reply_that_grows_and_ends(connection: Connection) -> None:
    asked, reply = ask(connection)
    assert asked == Message(
        1, "frodo", 1, 1, Role.USER, "Who goes there?", START, preamble="It is late.", token_count=7
    )
    assert reply == Message(
        2, "frodo", 1, 1, Role.ASSISTANT, "", START, status=Status.STREAMING, run="this-run", model="model",
        token_count=0,
    )  # fmt: skip
    assert everything(connection) == [asked, reply]
    usage = {"prompt_tokens": 40, "completion_tokens": 3}
    for grown in (
        reply._replace(content="A fri", status=Status.STREAMING, token_count=2),
        reply._replace(content="A friend.", status=Status.TRUNCATED, token_count=3, usage=usage),
    ):
        message_rows.update_reply(connection, grown)
        assert everything(connection) == [asked, grown]


@given(content=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_as_it_was_said(content: str) -> None:
    with new_log() as connection:
        opened = ask(connection, content)
        stored = content.replace("\0", "\u2400") if SERVER in os.environ else content
        assert contents([opened.question, answer(connection, opened, content)]) == [stored, stored]


# Checksums


def expected_checksum(message: Message) -> str:
    moment = message.timestamp.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    text = f"{message.role.value}|{message.thread_id}|{message.persona}|{moment}|{message.content}"
    return blake2b(text.encode(), digest_size=8).hexdigest()


def test_each_row_carries_the_checksum_of_what_it_says(connection: Connection) -> None:
    opened = ask(connection, "é 😀")
    rows = [opened.question, answer(connection, opened, "So it seems.")]
    stored = connection.execute("SELECT checksum FROM messages ORDER BY id").fetchall()
    assert stored == [(expected_checksum(row),) for row in rows]
    assert len(stored[0][0]) == 16


# Replies whose process is gone


def test_replies_of_processes_that_are_gone_become_interrupted(connection: Connection) -> None:
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


def test_without_replies_in_progress_nobody_is_asked_whether_they_live(connection: Connection) -> None:
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
    connection: Connection, timestamp: str, read: Callable[[Connection], object]
) -> None:
    put_in(connection, "when?", timestamp)
    assert operation_rows.last_spoken_at(connection, 1) is None
    with pytest.raises(DatabaseDamagedError, match=rf"Message 1 of frodo \({timestamp}\) cannot be read: "):
        read(connection)


@pytest.mark.parametrize(("column", "damaged"), [("role", "usar"), ("status", "complexe"), ("usage", "{'prompt")])
def test_a_row_that_makes_no_sense_is_a_sentence_that_names_it(
    connection: Connection, column: str, damaged: str
) -> None:
    answer(connection, ask(connection))
    without_checks(connection)
    connection.execute(f"UPDATE messages SET {column} = ? WHERE id = 2", (damaged,))  # noqa: S608
    with pytest.raises(DatabaseDamagedError, match="Message 2 of frodo"):
        everything(connection)


# Reading


def test_rows_come_in_the_order_of_the_log_also_after_a_clock_was_set_back(connection: Connection) -> None:
    for hours in (0, 2, 1):
        ask(connection, at=START - timedelta(hours=hours))
    in_order, since = [1, 2, 3, 4, 5, 6], START - timedelta(hours=8)
    for found in (
        message_rows.rows(connection, [99, *reversed(in_order)]),
        message_rows.rows_since(connection, 1, 0, since),
        everything(connection),
    ):
        assert [row.id for row in found] == in_order
    assert message_rows.id_before_newest(connection, "frodo", None, None, 2) == 4
    assert message_rows.rows(connection, []) == []


def test_more_ids_can_be_asked_for_than_sqlite_takes_variables(connection: Connection) -> None:
    ask(connection)
    assert [row.id for row in message_rows.rows(connection, range(100_000))] == [1, 2]


def test_rows_since_are_those_of_the_thread_beyond_an_id_and_a_moment(connection: Connection) -> None:
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
    with new_log() as connection:
        put_in(connection, "by hand", text)
        found = message_rows.rows_since(connection, 1, 0, since.replace(tzinfo=UTC))
    assert found or datetime.fromisoformat(text) <= since.replace(tzinfo=UTC)


def test_history_comes_in_pages_and_ends_with_an_empty_one(connection: Connection) -> None:
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


def test_history_can_be_that_of_a_thread_or_since_a_moment(connection: Connection) -> None:
    for content, thread, hours in [("first", 1, 30), ("second", 2, 20), ("third", 1, 10)]:
        answer(connection, ask(connection, content, thread=thread, at=START - timedelta(hours=hours)), "reply")
    read = message_rows.history
    assert contents(read(connection, "frodo", 1, None, 0)) == ["first", "reply", "third", "reply"]
    assert contents(read(connection, "frodo", None, START - timedelta(hours=25), 0)) == [
        "second", "reply", "third", "reply",
    ]  # fmt: skip
    assert read(connection, "frodo", 2, START - timedelta(hours=15), 0) == []


def test_a_clock_set_back_makes_no_older_turn_the_newest(connection: Connection) -> None:
    assert (message_rows.newest_id(connection), message_rows.newest_turn_id(connection, 1)) == (0, 0)
    assert operation_rows.last_spoken_at(connection, 1) is None
    for hours, thread in ((0, 1), (0, 2), (2, 1), (2, 2)):
        opened = ask(connection, thread=thread, at=START - timedelta(hours=hours))
    connection.execute(
        "INSERT INTO messages(persona, thread_id, turn_id, role, timestamp) "
        "VALUES ('frodo', 2, 3, 'tool_result', '2026-02-12T14:31:00Z')"
    )
    assert [message_rows.newest_turn_id(connection, thread) for thread in (1, 2)] == [5, opened.question.id]
    assert message_rows.newest_id(connection) == 9
    assert operation_rows.last_spoken_at(connection, 1) == START


LONG_AGO = START - timedelta(days=1)
BY_HAND = {
    "a row": (
        "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
        "VALUES ('frodo', 1, 'user', 'hm', '2026-02-12T14:30:00Z')"
    ),
    "other words": "UPDATE messages SET content = content || '!' WHERE id = (SELECT MAX(id) FROM messages)",
    "another status": "UPDATE messages SET status = 'failed' WHERE id = (SELECT MAX(id) FROM messages)",
    "a deleted row": "DELETE FROM messages WHERE id = (SELECT MAX(id) FROM messages)",
}


def seen(connection: Connection) -> list[Message]:
    return message_rows.rows_since(connection, 1, 0, LONG_AGO)


def turn(connection: Connection, number: int) -> None:
    opened = ask(connection, f"question {number}", at=START + timedelta(milliseconds=number))
    seen(connection)
    answer(connection, opened, f"answer {number}")


def turn_taken_back(connection: Connection, number: int) -> None:
    """Store a message and read it in a transaction that is rolled back, so that another gets its id."""
    never = MessageContent(1, Role.USER, "never", START - timedelta(milliseconds=number + 1), token_count=1)
    message_rows.insert_row(connection, "frodo", never)
    seen(connection)
    raise RuntimeError


async def changed(path: Path, changes: Iterable[str]) -> None:
    store = Store(Sqlite(path))
    await store.open()
    for number, change in enumerate(changes):
        if change == "a turn":
            await store.write(turn, number)
        elif change == "a turn taken back":
            with suppress(RuntimeError):
                await store.write(turn_taken_back, number)
        elif number % 2:
            await store.write(lambda connection, change: connection.execute(BY_HAND[change]) and None, change)
        else:
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute(BY_HAND[change])
        known = await store.read(seen)
        with closing(sqlite3.connect(path)) as other:
            assert known == seen(other)
    await store.close()


@given(st.lists(st.sampled_from(["a turn", "a turn taken back", *BY_HAND]), max_size=8))
@example(["a turn", "other words"])
@example(["a turn", "a turn", "other words"])
@example(["a turn taken back", "a turn"])
def test_known_messages_are_those_of_the_log_whatever_happens_to_it(changes: list[str]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(changed(Path(folder) / "chorus.db", changes))


async def test_a_turn_reads_only_what_is_new(store: Store) -> None:
    for number in range(3):
        await store.write(turn, number)
    before = await store.read(seen)
    await store.write(turn, 3)
    after = await store.read(seen)
    assert [old is new for old, new in zip(before, after, strict=False)] == [True] * 6
    assert len(after) == 8


async def test_more_than_so_many_characters_are_not_kept(store: Store) -> None:
    def read_twice(connection: Connection, most_characters: int) -> list[bool]:
        finished: FinishedRows[Message] = FinishedRows(most_characters)
        read = partial(sized, connection)
        before, after = (finished.read(connection, [1, 2], read) for _ in range(2))
        return [old is new for old, new in zip(before, after, strict=True)]

    await store.write(turn, 0)
    characters = sum(len(row.content + row.preamble) for row in await store.read(seen))
    assert await store.read(read_twice, characters) == [True, True]
    assert await store.read(read_twice, characters - 1) == [False, False]


SINCE = START - timedelta(hours=1)


def find(connection: Connection, *given_up: int) -> None:
    """Do as a process does that starts or sends a message."""
    interrupted_replies.mark_interrupted(connection, lambda run: run == "alive", START, given_up)


def taken(connection: Connection) -> list[int]:
    return [place.thread_number for place in interrupted_replies.take_broken_off(connection, SINCE)]


def test_threads_that_several_processes_find_are_named_once(connection: Connection) -> None:
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


def test_replies_that_end_with_their_process_alive_are_not_named(connection: Connection) -> None:
    given_up = ask(connection, run="alive", thread=1).reply
    stopped = ask(connection, run="alive", thread=2).reply
    message_rows.update_reply(connection, stopped._replace(status=Status.INTERRUPTED))
    ask(connection, run="alive", thread=3)
    find(connection, given_up.id)
    assert taken(connection) == []


def test_a_thread_is_not_named_that_was_closed_went_on_was_cleared_or_is_old(connection: Connection) -> None:
    for thread in (1, 2):
        ask(connection, run="gone", thread=thread)
    find(connection)
    thread_rows.close(connection, [1], START + timedelta(seconds=1))
    answer(connection, ask(connection, thread=2))
    assert taken(connection) == []
    ask(connection, run="gone", thread=3)
    find(connection)
    operation_rows.introduce(connection, NewOperation("frodo", Clear(), START, None))
    assert taken(connection) == []
    ask(connection, run="gone", thread=4, at=SINCE)
    find(connection)
    assert taken(connection) == []


async def remember(store: Store, persona: str, *lines: str) -> None:
    for line in lines:
        await store.write(input_rows.add, persona, line, START)


async def test_the_same_line_twice_in_a_row_is_remembered_once_per_persona(store: Store) -> None:
    await remember(store, "chorus", "one", "one", "two\nlines", "one")
    await remember(store, "frodo", "secret")
    assert await store.read(input_rows.newest, "chorus") == ["one", "two\nlines", "one"]
    assert await store.read(input_rows.newest, "frodo") == ["secret"]


async def test_only_the_newest_are_kept(store: Store) -> None:
    await remember(store, "frodo", "kept")

    def fill(connection: Connection) -> None:
        for number in range(input_rows.MOST_ROWS + 5):
            input_rows.add(connection, "chorus", f"line {number}", START)

    await store.write(fill)
    known = await store.read(input_rows.newest, "chorus")
    assert (len(known), known[0], known[-1]) == (input_rows.MOST_ROWS, f"line {input_rows.MOST_ROWS + 4}", "line 5")
    assert await store.read(input_rows.newest, "frodo") == ["kept"]


async def test_a_very_long_line_is_not_kept(store: Store) -> None:
    longest = limits.INPUT_LINE.most
    await remember(store, "chorus", "x" * longest, "x" * (longest + 1))
    assert list(map(len, await store.read(input_rows.newest, "chorus"))) == [longest]
