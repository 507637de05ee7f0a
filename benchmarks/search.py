"""Searching a million messages by the full-text index, beside reading them all with ``LIKE``."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Pair, figure
from benchmarks.surroundings import temporary_folder
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import found_messages, search_index
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.search_query import search_query
from chorus_cli.storage import migrations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


GOAL, QUESTION_GOAL = 0.1, 0.5
_BEGINNING = datetime(2020, 1, 1, tzinfo=UTC)
_WORDS = 20_000
_WORDS_PER_MESSAGE = 40
_SCOPE = Scope(None, None, 10)
_EVERY = 1_000
"""One message of so many holds the word that is looked for, which may stand in no other."""

_QUESTION = "Who said that word21 and word90 were of word400 and mithril?"
"""A question, the commonest word of which is in a sixth of the messages."""

_SEARCHES = (
    ("a word", "mithril", ("mithril",), GOAL),
    ("three required words", "+mithril +word9 +word4", ("mithril", "word9 ", "word4 "), GOAL),
    ("a part of a Chinese sentence", "東京", ("東京",), GOAL),
    ("a question", _QUESTION, ("mithril",), QUESTION_GOAL),
)
_MOST_WORDS = 3
_LIKE = "FROM messages WHERE content LIKE ? AND content LIKE ? AND content LIKE ?"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many messages there are, and how often to look."""

    messages: int = 1_000_000
    rounds: int = 7


QUICK = Sizes(messages=100_000)


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time a search against ``LIKE``, each with the ten best or newest messages and how many more there are."""
    return compare(QUICK if quick else Sizes())


def compare(sizes: Sizes) -> Iterator[Figure]:
    """Yield a figure for each kind of search."""
    with temporary_folder() as folder, _log(folder / "search.db", sizes.messages) as connection:
        for name, typed, words, goal in _SEARCHES:
            pairs = [_pair(connection, typed, words) for _ in range(sizes.rounds + 1)][1:]
            yield figure(f"search {sizes.messages:,} messages for {name}", "LIKE", pairs, goal)


def _pair(connection: sqlite3.Connection, typed: str, words: Sequence[str]) -> Pair:
    begun = time.perf_counter()
    found = found_messages.find(connection, search_query(typed), _SCOPE)
    between = time.perf_counter()
    like = [f"%{word}%" for word in words] + ["%"] * (_MOST_WORDS - len(words))
    newest = connection.execute(f"SELECT id {_LIKE} ORDER BY id DESC LIMIT {_SCOPE.limit}", like).fetchall()
    (number,) = connection.execute(f"SELECT COUNT(*) {_LIKE}", like).fetchone()
    ended = time.perf_counter()
    if not newest or (typed != _QUESTION and len(found.matches) + found.more != number):
        raise RuntimeError(f"The search for {typed} found other messages than LIKE.")
    return between - begun, ended - between


@contextmanager
def _log(path: Path, messages: int) -> Iterator[sqlite3.Connection]:
    """Make a database whose log is indexed."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        migrations.migrate(connection)
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES ('chorus', 1, 'user', ?, ?)",
            _rows(messages),
        )
        while not search_index.index_batch(connection).is_whole:
            pass
        connection.execute("COMMIT")
        yield connection


def _rows(messages: int) -> Iterator[tuple[str, str]]:
    """Yield texts of words that are as unevenly frequent as those of a language, always the same."""
    chance = random.Random(7)  # noqa: S311 - words, no secret
    words = [f"word{number}" for number in range(_WORDS)]
    weights = [1 / rank for rank in range(1, _WORDS + 1)]
    drawn = chance.choices(words, weights, k=_WORDS_PER_MESSAGE * 1_000)
    for number in range(messages):
        place = chance.randrange(len(drawn) - _WORDS_PER_MESSAGE)
        text = " ".join(drawn[place : place + _WORDS_PER_MESSAGE])
        rare = " of mithril, in 我在東京都" if number % _EVERY == 0 else ""
        yield text + rare, timestamps.to_text(_BEGINNING + timedelta(seconds=30) * number)
