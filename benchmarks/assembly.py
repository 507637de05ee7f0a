"""A request of a hundred thousand tokens, assembled from counts that are stored with the messages."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Pair, figure
from benchmarks.prose import prose
from benchmarks.stored_log import PERSONA, TARGET, StoredRow, stored_log
from benchmarks.surroundings import libraries_frozen, temporary_folder
from chorus_cli.context.rows.snapshot_rows import read_snapshot, thread_journal
from chorus_cli.context.rules.plan import RequestPlan, plan_fitting, plan_whole
from chorus_cli.context.rules.view import RequestSettings, RequestStart, SystemPrompt
from chorus_cli.core.time import timestamps
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.models.providers.token_counter import VocabularyCounter
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE, Limit

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from chorus_cli.machine.ports import TokenCounter

GOAL = 0.2
_HOURS = 8
_NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
_SYSTEM_PROMPT = "You keep a record of a long journey."
_PAUSE = timedelta(seconds=10)


Words = tuple[int, int]
"""The fewest and the most words of a message."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many tokens the messages have together, how many words each question and each reply, and how often to look.

    Reading takes its time by the message and counting by the letter: the shorter the messages, the larger the ratio.
    """

    tokens: int = 100_000
    words: Sequence[tuple[Words, Words]] = (((10, 80), (50, 350)), ((20, 400), (100, 700)))
    rounds: int = 101


QUICK = Sizes(rounds=21)


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time the assembly against counting what it has put together."""
    return compare(QUICK if quick else Sizes())


def compare(sizes: Sizes) -> Iterator[Figure]:
    """Yield a figure for each length of messages; it is told if the stored counts and the counted ones differ."""
    counter = VocabularyCounter()
    for words in sizes.words:
        rows = list(_rows(sizes.tokens, words, counter))
        with temporary_folder() as folder, stored_log(folder / "chorus.db", rows) as connection, libraries_frozen():
            pairs = [_pair(connection, sizes.tokens, counter) for _ in range(sizes.rounds + 1)][1:]
        name = f"assembling {sizes.tokens:,} tokens in {len(rows):,} messages"
        yield figure(name, "counting them by tiktoken", pairs, GOAL)


def _pair(connection: sqlite3.Connection, tokens: int, counter: TokenCounter) -> Pair:
    begun = time.perf_counter()
    plan = _plan(connection, tokens, counter)
    between = time.perf_counter()
    counted = sum(counter.count(message.content) + TOKENS_PER_MESSAGE for message in plan.request.messages)
    ended = time.perf_counter()
    if counted != plan.tokens or counted < tokens:
        raise RuntimeError(f"The request has {counted} tokens, not the {plan.tokens} of its stored counts.")
    return between - begun, ended - between


def _plan(connection: sqlite3.Connection, tokens: int, counter: TokenCounter) -> RequestPlan:
    """Read the snapshot and plan its request, as a turn does between the clock and the model."""
    system_prompt = SystemPrompt(_SYSTEM_PROMPT, counter.count(_SYSTEM_PROMPT), 0)
    frame = RequestSettings(TARGET, system_prompt, Limit(4 * tokens, "the benchmark"))
    connection.execute("BEGIN")
    journal = thread_journal(connection, PERSONA, 1)
    snapshot = read_snapshot(connection, frame, journal, RequestStart(cutoff(_NOW, _HOURS)))
    connection.execute("COMMIT")
    return plan_whole(snapshot) or plan_fitting(snapshot, counter.count)


def _rows(tokens: int, words: tuple[Words, Words], counter: TokenCounter) -> Iterator[StoredRow]:
    """Yield questions and answers in turns, oldest first, until they have so many tokens."""
    chance = random.Random(7)  # noqa: S311 - words, no secret
    opening = cutoff(_NOW, _HOURS)
    position = total = 0
    while total < tokens:
        role = "assistant" if position % 2 else "user"
        text = prose(chance, chance.randint(*words[position % 2]))
        count = counter.count(text)
        moment = timestamps.to_text(opening + _PAUSE * (position + 1))
        yield PERSONA, 1, position + 1 - position % 2, role, text, moment, count
        total += count + TOKENS_PER_MESSAGE
        position += 1
