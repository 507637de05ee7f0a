"""A message that a connection knows is not read again, and is never another than the one in the log."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from chorus_cli.log.rows import message_rows
from chorus_cli.log.rows.message_rows import sized
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.storage.store import FinishedRows, Store
from tests.fakes import START
from tests.log.rows.logged_turns import answer, ask

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chorus_cli.log.rules.messages import Message

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


def seen(connection: sqlite3.Connection) -> list[Message]:
    return message_rows.rows_since(connection, 1, 0, LONG_AGO)


def turn(connection: sqlite3.Connection, number: int) -> None:
    opened = ask(connection, f"question {number}", at=START + timedelta(milliseconds=number))
    seen(connection)
    answer(connection, opened, f"answer {number}")


def turn_taken_back(connection: sqlite3.Connection, number: int) -> None:
    """Store a message and read it in a transaction that is rolled back, so that another gets its id."""
    never = MessageContent(1, Role.USER, "never", START - timedelta(milliseconds=number + 1), token_count=1)
    message_rows.insert_row(connection, "frodo", never)
    seen(connection)
    raise RuntimeError


def carry_out(connection: sqlite3.Connection, statement: str) -> None:
    connection.execute(statement)


async def changed(path: Path, changes: Iterable[str]) -> None:
    store = Store(path)
    await store.open()
    for number, change in enumerate(changes):
        if change == "a turn":
            await store.write(turn, number)
        elif change == "a turn taken back":
            with suppress(RuntimeError):
                await store.write(turn_taken_back, number)
        elif number % 2:
            await store.write(carry_out, BY_HAND[change])
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
    def read_twice(connection: sqlite3.Connection, most_characters: int) -> list[bool]:
        finished: FinishedRows[Message] = FinishedRows(most_characters)
        read = partial(sized, connection)
        before, after = (finished.read(connection, [1, 2], read) for _ in range(2))
        return [old is new for old, new in zip(before, after, strict=True)]

    await store.write(turn, 0)
    characters = sum(len(row.content + row.preamble) for row in await store.read(seen))
    assert await store.read(read_twice, characters) == [True, True]
    assert await store.read(read_twice, characters - 1) == [False, False]
