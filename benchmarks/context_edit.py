"""The text of `/context edit`: written and read back for a thousand messages and for ten thousand."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Pair, figure
from benchmarks.surroundings import libraries_frozen
from chorus_cli.editing.rules.format import parse
from chorus_cli.editing.rules.matching import laid_out, matched
from chorus_cli.log.rules.messages import Message, Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


GOAL = 12
_BEGINNING = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
_SENTENCE = "We went over the plan again and found one more thing that nobody had thought of.\n"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many messages, how many the reference has, and how often to look."""

    large: int = 10_000
    small: int = 1_000
    rounds: int = 21


QUICK = Sizes(rounds=7)


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time the large edit against the small one."""
    return compare(QUICK if quick else Sizes())


def compare(sizes: Sizes) -> Iterator[Figure]:
    """Yield the figure for ten times the messages: what takes linear time is ten times as long."""
    with libraries_frozen():
        large, small = _log(sizes.large), _log(sizes.small)
        pairs = [_pair(large, small) for _ in range(sizes.rounds + 1)][1:]
    yield figure(f"/context edit, {sizes.large:,} messages", f"{sizes.small:,} messages", pairs, GOAL)


def _pair(large: Sequence[Message], small: Sequence[Message]) -> Pair:
    return _seconds(large), _seconds(small)


def _seconds(log: Sequence[Message]) -> float:
    """Render, parse and match a log whose younger half is in context, and of which nothing is changed."""
    middle = len(log) // 2
    begun = time.perf_counter()
    sheet = laid_out("Chorus", log[:middle], log[middle:])
    members = matched(parse(sheet.text, sheet.name), sheet, log[0].thread_id)
    taken = time.perf_counter() - begun
    if members != sheet.members or len(members) != len(log) - middle:
        raise RuntimeError("The context was changed by nobody.")
    return taken


def _log(length: int) -> list[Message]:
    return [_message(position) for position in range(length)]


def _message(position: int) -> Message:
    """Return a question or an answer, half a minute after the one before."""
    role = Role.ASSISTANT if position % 2 else Role.USER
    moment = _BEGINNING + timedelta(seconds=30) * position
    return Message(position + 1, "chorus", 1, position + 1 - position % 2, role, _SENTENCE * 3, moment)
