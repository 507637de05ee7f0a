"""``/context`` over a long window, beside reading and computing the view of it once."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Pair, figure
from benchmarks.stored_log import PERSONA, TARGET, StoredRow, context_of, stored_log
from benchmarks.surroundings import libraries_frozen, temporary_folder
from chorus_cli.context.commands import drawn_parts, drawn_window, usage
from chorus_cli.context.service.context import Context
from chorus_cli.context.service.report import context_report
from chorus_cli.core.time import timestamps
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


GOAL = 3
_HOURS = 8
_COLUMNS = 80
_NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
_SENTENCE = "We went over the plan again and found one more thing that nobody had thought of. "


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of messages in the window, and of rounds."""

    messages: int = 10_000
    rounds: int = 31


QUICK = Sizes(rounds=7)


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time the report against the view."""
    return compare(QUICK if quick else Sizes())


def compare(sizes: Sizes) -> Iterator[Figure]:
    """Yield the figure; every message of the window has to be in the request."""
    with temporary_folder() as folder:
        path = folder / "chorus.db"
        with stored_log(path, _rows(sizes.messages)), libraries_frozen():
            pairs = asyncio.run(_pairs(path, sizes))
    yield figure(f"/context over {sizes.messages:,} messages", "reading and computing the view", pairs, GOAL)


async def _pairs(path: Path, sizes: Sizes) -> list[Pair]:
    store = Store(Sqlite(path))
    await store.open()
    context = context_of(store, 10_000_000)
    try:
        return [await _pair(context, sizes.messages) for _ in range(sizes.rounds + 1)][1:]
    finally:
        await store.close()


async def _pair(context: Context, expected: int) -> Pair:
    frame = await context.request_settings(TARGET)
    begun = time.perf_counter()
    await context.store.read(context.read, frame, _NOW)
    between = time.perf_counter()
    report = await context_report(context, TARGET, _NOW)
    drawn_window(report.plan.snapshot.view, report.moments, _NOW, _COLUMNS)
    drawn_parts(report)
    usage(report)
    ended = time.perf_counter()
    if len(report.plan.sent) != expected:
        raise RuntimeError(f"The request has {len(report.plan.sent)} messages instead of {expected}.")
    return ended - between, between - begun


def _rows(number: int) -> Iterator[StoredRow]:
    """Yield questions and answers in turns, spread over the window."""
    opening = cutoff(_NOW, _HOURS)
    for position in range(number):
        moment = opening + timedelta(hours=_HOURS) * (position + 1) / (number + 1)
        role = "assistant" if position % 2 else "user"
        turn = position + 1 - position % 2
        yield PERSONA, 1, turn, role, f"{position}: {_SENTENCE * 3}", timestamps.to_text(moment), 50
