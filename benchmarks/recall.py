"""Assembling a request with a large memory, beside assembling it with a small one."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Pair, figure
from benchmarks.stored_log import PERSONA, TARGET, StoredRow, context_of, stored_log
from benchmarks.surroundings import libraries_frozen, temporary_folder
from chorus_cli.context.service.context import Context
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.memory.rows import item_changes, item_rows
from chorus_cli.memory.rows.item_changes import Addition, NewItem
from chorus_cli.memory.rules.items import Item, ItemType
from chorus_cli.recall import service as recall
from chorus_cli.storage.port import Connection
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from chorus_cli.context.rules.view import ContextSnapshot, RequestSettings

GOAL = 2
_NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
_CODE = "def step_{number}(values):\n    total = sum(values)\n    print('step {number}', total)\n    return total\n"
_QUESTION = MessageContent(
    1, Role.USER, "Could you look at the function again and say which values it returns? #7", _NOW, token_count=20
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of messages in the window, of items in the small and the large memory, and of rounds."""

    messages: int = 200
    few: int = 10
    many: int = 1_000
    rounds: int = 101


QUICK = Sizes(rounds=31)


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time the assembly with both memories."""
    return compare(QUICK if quick else Sizes())


def compare(sizes: Sizes) -> Iterator[Figure]:
    """Yield the figure; the items were captured from messages that have left the window."""
    with temporary_folder() as folder:
        small, large = folder / "small.db", folder / "large.db"
        with stored_log(small, _rows(sizes.messages)) as few, stored_log(large, _rows(sizes.messages)) as many:
            fill_memory(few, sizes.few)
            fill_memory(many, sizes.many)
            with libraries_frozen():
                pairs = asyncio.run(_pairs(large, small, sizes))
    yield figure(f"assembling with {sizes.many:,} memory items", f"with {sizes.few}", pairs, GOAL)


async def _pairs(large: Path, small: Path, sizes: Sizes) -> list[Pair]:
    stores = Store(Sqlite(large)), Store(Sqlite(small))
    for store in stores:
        await store.open()
    try:
        return [(await _seconds(stores[0]), await _seconds(stores[1])) for _ in range(sizes.rounds + 1)][1:]
    finally:
        for store in stores:
            await store.close()


async def _seconds(store: Store) -> float:
    context = context_of(store, 128_000)
    frame = await context.request_settings(TARGET)
    begun = time.perf_counter()
    snapshot, _ = await store.write(_assembled, context, frame)
    await context.plan(snapshot)
    return time.perf_counter() - begun


def _assembled(connection: Connection, context: Context, frame: RequestSettings) -> tuple[ContextSnapshot, list[Item]]:
    if item_rows.is_renewal_due(connection, PERSONA, _NOW):
        item_rows.renew(connection, PERSONA, _NOW)
    snapshot = context.read(connection, frame, _NOW)
    return snapshot, recall.recalled(connection, snapshot, _QUESTION, 0)


def fill_memory(connection: sqlite3.Connection, number: int) -> None:
    """Capture each item in an operation of its own."""
    connection.execute("BEGIN")
    for position in range(number):
        item = NewItem(ItemType.CODE, _CODE.format(number=position))
        addition = Addition(PERSONA, [item], "capture", _NOW, f"message #{position + 1}", automatic=True)
        item_changes.add(connection, addition)
    connection.execute("COMMIT")


def _rows(number: int) -> Iterator[StoredRow]:
    """Yield questions and answers in turns, spread over the last hour."""
    for position in range(number):
        moment = _NOW - timedelta(hours=1) * (number - position) / number
        role = "assistant" if position % 2 else "user"
        turn = position + 1 - position % 2
        yield PERSONA, 1, turn, role, f"{position}: We went over the plan again.", timestamps.to_text(moment), 12
