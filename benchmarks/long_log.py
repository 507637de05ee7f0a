"""The view of the last eight hours and the request made of it, above logs of a thousand to a million older messages."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Pair, figure
from benchmarks.stored_log import PERSONA, TARGET, StoredRow, stored_log
from benchmarks.surroundings import temporary_folder
from chorus_cli.context.rows.snapshot_rows import read_snapshot, thread_journal
from chorus_cli.context.rules.plan import RequestPlan, plan_fitting, plan_whole
from chorus_cli.context.rules.view import RequestSettings, RequestStart, SystemPrompt
from chorus_cli.core.time import timestamps
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.models.rules.budget import Limit

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path


GOAL = 1.5
_HOURS = 8
_NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
_SENTENCE = "We went over the plan again and found one more thing that nobody had thought of. "
_FRAME = RequestSettings(
    TARGET, SystemPrompt("You keep a record of a long journey.", 10, 0), Limit(125_000, "the benchmark")
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many messages stand before the window, each against the first, how many in it, and how often to look."""

    old: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000)
    in_window: int = 200
    rounds: int = 201


QUICK = Sizes(old=(1_000, 10_000, 100_000))


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time the view above each log against the one above the smallest."""
    return compare(QUICK if quick else Sizes())


def compare(sizes: Sizes) -> Iterator[Figure]:
    """Yield a figure for every size of the log but the first, which is the reference."""
    smallest, *larger = sizes.old
    with temporary_folder() as folder, _log(folder, smallest, sizes) as reference:
        for old in larger:
            with _log(folder, old, sizes) as connection:
                pairs = [_pair(connection, reference, sizes.in_window) for _ in range(sizes.rounds + 1)][1:]
            yield figure(f"8 h view above {old:,} messages", f"above {smallest:,}", pairs, GOAL)


def _log(folder: Path, old: int, sizes: Sizes) -> AbstractContextManager[sqlite3.Connection]:
    return stored_log(folder / f"{old}.db", _rows(old, sizes.in_window))


def _pair(connection: sqlite3.Connection, reference: sqlite3.Connection, expected: int) -> Pair:
    return _seconds(connection, expected), _seconds(reference, expected)


def _seconds(connection: sqlite3.Connection, expected: int) -> float:
    begun = time.perf_counter()
    plan = _plan(connection)
    taken = time.perf_counter() - begun
    if len(plan.sent) != expected:
        raise RuntimeError(f"The request has {len(plan.sent)} messages instead of {expected}.")
    return taken


def _plan(connection: sqlite3.Connection) -> RequestPlan:
    """Read the snapshot and plan its request, as a turn does between the clock and the model."""
    connection.execute("BEGIN")
    journal = thread_journal(connection, PERSONA, 1)
    snapshot = read_snapshot(connection, _FRAME, journal, RequestStart(cutoff(_NOW, _HOURS)))
    connection.execute("COMMIT")
    return plan_whole(snapshot) or plan_fitting(snapshot, len)


def _rows(old: int, in_window: int) -> Iterator[StoredRow]:
    """Yield questions and answers in turns, oldest first: half a minute apart, and a window's worth in the window."""
    opening = cutoff(_NOW, _HOURS)
    for position in range(old + in_window):
        age = timedelta(seconds=30) * (position - old)
        inside = timedelta(hours=_HOURS) * (position - old + 1) / (in_window + 1)
        moment = timestamps.to_text(opening + (age if position < old else inside))
        turn = position + 1 - position % 2
        role = "assistant" if position % 2 else "user"
        yield PERSONA, 1, turn, role, f"{position}: {_SENTENCE * 3}", moment, 50
