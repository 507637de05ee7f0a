"""The input history of the prompt, per persona."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.log.rows import input_rows

if TYPE_CHECKING:
    from chorus_cli.storage.store import Connection, Store

NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)


async def remember(store: Store, persona: str, *lines: str) -> None:
    for line in lines:
        await store.write(input_rows.add, persona, line, NOW)


async def test_lines_come_newest_first_and_per_persona(store: Store) -> None:
    await remember(store, "chorus", "one", "two\nlines", "/new")
    await remember(store, "frodo", "secret")
    assert await store.read(input_rows.newest, "chorus") == ["/new", "two\nlines", "one"]
    assert await store.read(input_rows.newest, "frodo") == ["secret"]


async def test_the_same_line_twice_in_a_row_is_remembered_once(store: Store) -> None:
    await remember(store, "chorus", "one", "one", "two", "one")
    assert await store.read(input_rows.newest, "chorus") == ["one", "two", "one"]


async def test_only_the_newest_are_kept(store: Store) -> None:
    await remember(store, "frodo", "kept")

    def fill(connection: Connection) -> None:
        for number in range(input_rows.MOST_ROWS + 5):
            input_rows.add(connection, "chorus", f"line {number}", NOW)

    await store.write(fill)
    known = await store.read(input_rows.newest, "chorus")
    assert (len(known), known[0], known[-1]) == (input_rows.MOST_ROWS, f"line {input_rows.MOST_ROWS + 4}", "line 5")
    assert await store.read(input_rows.newest, "frodo") == ["kept"]


async def test_a_very_long_line_is_not_kept(store: Store) -> None:
    longest = limits.INPUT_LINE.most
    await remember(store, "chorus", "x" * longest, "x" * (longest + 1))
    assert list(map(len, await store.read(input_rows.newest, "chorus"))) == [longest]
