"""A full-text index of messages or of memory items: its damage, and the ranking of the texts that a search finds.

Each word of a search is looked for on its own, and the score of a text is the sum of what its words count. A word
counts more if few texts have it, and more in a text that is short or has it often (the latter as SQLite's BM25). Words
that many texts have find nothing: they only add to the scores of texts that rarer words have found.

The index contains the stems of English words, which shortens the beginnings that can be looked for in it. What it finds
for the beginning of a word is therefore compared with the texts.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeVar

from chorus_cli.core.errors import DatabaseDamagedError, StorageError
from chorus_cli.core.text.apart import set_apart
from chorus_cli.log.rules.search_query import SearchQuery, Term, all_of, any_of, beginning, folded, spaced
from chorus_cli.storage.errors import UNREADABLE, damaged
from chorus_cli.storage.schema import ITEM_WORDS, MESSAGE_WORDS, TOKENIZER, UNSTEMMED
from chorus_cli.storage.store import Connection, Store

T = TypeVar("T")

_ATTEMPTS = 3
_SIGNS_OF_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR}


class WordIndex(NamedTuple):
    """A full-text index: its table, and the statement that makes it."""

    table: str
    statement: str

    @property
    def condition(self) -> str:
        """The SQL condition that a row of ``sqlite_master`` belongs to the index."""
        return f"(name = '{self.table}' OR name GLOB '{self.table}_*' OR tbl_name GLOB '{self.table}_*')"


MESSAGES = WordIndex("message_words", MESSAGE_WORDS)
ITEMS = WordIndex("context_item_words", ITEM_WORDS)


class IndexDamagedError(Exception):
    """An index cannot be read, or contradicts itself or its texts."""


@contextmanager
def damage_told() -> Iterator[None]:
    """Turn errors that may mean a damaged index into `IndexDamagedError`; pass on others, such as a full disk."""
    try:
        yield
    except UNREADABLE as error:
        if is_damage(error):
            raise IndexDamagedError from error
        raise


def is_damage(error: sqlite3.DatabaseError | UnicodeDecodeError | MemoryError) -> bool:
    """Return whether an error may mean damage, unlike a full disk or another program's lock."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, UnicodeDecodeError | MemoryError) or code in _SIGNS_OF_DAMAGE


def require_sound_pages(connection: sqlite3.Connection, index: WordIndex) -> None:
    """Raise `IndexDamagedError` if pages of the index cannot be read; the words in them are not checked."""
    fault = _fault(connection, f"{index.condition} AND rootpage > 0")
    if fault:
        raise IndexDamagedError(fault)


def require_sound_log(connection: sqlite3.Connection) -> None:
    """Raise `DatabaseDamagedError` if a table that is not part of an index is damaged: then nothing may be written."""
    fault = _fault(connection, f"NOT {MESSAGES.condition} AND NOT {ITEMS.condition}")
    if fault:
        (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
        raise damaged(path, fault)


async def mending(
    work: Callable[[], Awaitable[T]],
    store: Store,
    make_again: Callable[[Connection], object],
    tell: Callable[[str], None] | None,
    sentences: tuple[str, str],
) -> T:
    """Return the result of work with an index; if the index is damaged, make it again and repeat the work.

    Of the two ``sentences``, ``tell`` gets the first once; the second is the error if the index is still damaged.
    """
    renewed, beyond_repair = sentences
    for attempt in range(_ATTEMPTS):
        try:
            return await work()
        except IndexDamagedError:
            await store.read(require_sound_log)
            await store.write(make_again)
            # If this fails, the old pages only waste space.
            with suppress(StorageError):
                await store.compact()
            if tell is not None and not attempt:
                tell(renewed)
    raise DatabaseDamagedError(beyond_repair)


def replace(connection: sqlite3.Connection, index: WordIndex) -> None:
    """Make an empty index in new pages. The old pages stay unused in the file."""
    connection.execute("PRAGMA writable_schema = ON")
    try:
        connection.execute(f"DELETE FROM sqlite_master WHERE {index.condition}")
    finally:
        # RESET ends the mode and makes this connection read the schema again; the statement below makes others do so.
        connection.execute("PRAGMA writable_schema = RESET")
    connection.execute(index.statement)


def _fault(connection: sqlite3.Connection, condition: str) -> str:
    """Return the first fault that SQLite finds in the tables that meet ``condition``, empty if there is none."""
    tables: Sequence[tuple[str]] = connection.execute(
        f"SELECT printf('\"%w\"', name) FROM sqlite_master WHERE type = 'table' AND {condition}"
    ).fetchall()
    for (table,) in tables:
        try:
            [(found,), *_] = connection.execute(f"PRAGMA quick_check({table})").fetchall()
        except UNREADABLE as error:
            if not is_damage(error):
                raise
            return str(error)
        if found != "ok":
            return str(found).splitlines()[-1]
    return ""


MOST_RANKED = 10_000
"""How many texts a search ranks by one word, the newest ones; SQLite ranks these in a twentieth of a second."""

_MOST_COUNTED = 100_000
_ENDINGS = """
    s es ed er ers ing ings ly y ies ness ment ments ation ations ational ator ization izations ive ives iveness ous
    ously ousness al ally ality able ible ability ibility ful fully fulness ance ence ant ent ism ist ity ities e
"""


class Texts(NamedTuple):
    """The texts that are searched: the index of their words, their table, the rows that may be found, and their number.

    ``condition`` is SQL for the rows that may be found, with its ``values``; ``text`` is SQL for the text of a row. At
    least ``most`` of the texts that a query finds are returned.
    """

    words: WordIndex
    table: str
    condition: str
    values: Mapping[str, object]
    number: int
    most: int
    text: str = "content"


def scores(connection: sqlite3.Connection, texts: Texts, query: SearchQuery) -> dict[int, float]:
    """Return the scores of the texts that have the terms of a query, by the ids of their rows."""
    with damage_told():
        return _Scoring(connection, texts, query).scores()


def count(connection: sqlite3.Connection, index: WordIndex, term: Term, most: int) -> int:
    """Return how many texts of an index have a term, or ``most`` if more have it."""
    counting = f"SELECT COUNT(*) FROM (SELECT 1 FROM {index.table} WHERE {index.table} MATCH ? LIMIT ?)"
    (number,) = connection.execute(counting, (term.expression, most)).fetchone()
    return int(number)


@dataclass(slots=True)
class _Scoring:
    """The scoring of the texts that a query finds.

    A lead is a sequence of terms. If there are leads, only texts that have all terms of one of them are looked for.
    """

    connection: sqlite3.Connection
    texts: Texts
    query: SearchQuery
    _newest: str = field(default="", init=False)

    def scores(self) -> dict[int, float]:
        """Score by the rare terms, let common words add to that, and take out the texts with excluded terms."""
        required, index = self.query.required, self.texts.words
        counts = {term: count(self.connection, index, _loosened(term), MOST_RANKED + 1) for term in required}
        counts |= {term: count(self.connection, index, _loosened(term), _MOST_COUNTED) for term in self.query.words}
        rare, common = _divided(counts)
        is_bounded = any(counts[term] <= MOST_RANKED for term in required or rare)
        # Every later statement contains the rare terms, or all the required ones.
        self._newest = "" if is_bounded else f"ORDER BY {index.table}.rowid DESC LIMIT {MOST_RANKED}"
        leads: list[Sequence[Term]] = [required] if required else [(term,) for term in rare]
        counted = {term: self._scored(term, is_alone=len(counts) == 1) for term in rare}
        found = {*self._ids(required)} if required else {id_ for ids in counted.values() for id_ in ids}
        weights = {word: self._weight(counts[word]) for word in common if word not in required}
        for word, weight in weights.items():
            counted[word] = dict.fromkeys(self._ids((word,), leads), weight)
        if weights and not required and not is_bounded:
            leads.append(self.query.words)
            with_all = self._ids(self.query.words)
            found |= with_all
            for word, number in counts.items():
                counted[word] = {**counted.get(word, {}), **dict.fromkeys(with_all, self._weight(number))}
        for term in self.query.excluded:
            found -= set() if term.begins else self._ids((term,), leads)
        totals = dict.fromkeys(found, 0.0)
        for term_scores in counted.values():
            for id_ in found & term_scores.keys():
                totals[id_] += term_scores[id_]
        return self._compared(totals, counted)

    def _compared(self, totals: dict[int, float], counted: Mapping[Term, Mapping[int, float]]) -> dict[int, float]:
        """Compare texts with the terms that begin words, best first, until enough have them; leave out all others."""
        patterns = {term: beginning(term) for term in (*self.query.terms, *self.query.excluded) if term.begins}
        if not patterns:
            return totals
        compared: dict[int, float] = {}
        reading = f"SELECT {self.texts.text} FROM {self.texts.table} WHERE id = ?"
        for id_ in sorted(totals, key=lambda id_: (totals[id_], id_), reverse=True):
            if len(compared) == self.texts.most:
                break
            (text,) = self.connection.execute(reading, (id_,)).fetchone()
            words = spaced(text)
            has = {term for term, pattern in patterns.items() if pattern.search(words)}
            lacks = patterns.keys() - has
            shares = [each[id_] for term, each in counted.items() if id_ in each and term not in lacks]
            is_found = lacks.isdisjoint(self.query.required) if self.query.required else bool(shares)
            if is_found and has.isdisjoint(self.query.excluded):
                compared[id_] = sum(shares)
        return compared

    def _scored(self, term: Term, *, is_alone: bool) -> dict[int, float]:
        """Return what a term counts in each text that has it; the average is the weight of the term."""
        ranks = self._found(_loosened(term).expression, "-rank")
        # Only the proportions of ranks are used, because SQLite computes them for all texts of the index.
        mean = sum(ranks.values()) / len(ranks) if ranks else 1
        weight = 1.0 if is_alone else _weight(len(ranks), self.texts.number)
        return {id_: weight * rank / mean for id_, rank in ranks.items()}

    def _weight(self, number: int) -> float:
        """Return the weight of a word that a ``number`` of texts of the index have."""
        connection, table = self.connection, self.texts.words.table
        (newest,) = connection.execute(f"SELECT COALESCE(MAX(id), 0) FROM {table}_docsize").fetchone()
        return _weight(self.texts.number * number / max(newest, 1), self.texts.number)

    def _ids(self, terms: Sequence[Term], leads: Sequence[Sequence[Term]] = ()) -> AbstractSet[int]:
        """Return the ids of the texts with all of some terms, and with all terms of a lead if there are any leads."""
        wanted = all_of(map(_loosened, terms))
        lead = " OR ".join(f"({all_of(map(_loosened, each))})" for each in leads)
        return self._found(f"({lead}) AND ({wanted})" if lead else wanted, "0").keys()

    def _found(self, expression: str, rank: str) -> dict[int, float]:
        # CROSS JOIN makes SQLite read the index first.
        index, table = self.texts.words.table, self.texts.table
        found = self.connection.execute(
            f"SELECT {table}.id, {rank} FROM {index} CROSS JOIN {table} ON {table}.id = {index}.rowid "
            f"WHERE {index} MATCH :expression AND {self.texts.condition} {self._newest}",
            {**self.texts.values, "expression": expression},
        )
        return dict(found.fetchall())


def having(texts: Mapping[int, str], query: SearchQuery) -> set[int]:
    """Return the keys of those texts in memory that have the terms of a query."""
    held = {id_: text for id_, text in texts.items() if all(literal in text for literal in query.literals)}
    if not query.terms:
        return set(held)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        fill_memory(memory, held.items(), TOKENIZER)
        memory.execute("CREATE TABLE texts(id INTEGER PRIMARY KEY, content TEXT)")
        memory.executemany("INSERT INTO texts VALUES (?, ?)", held.items())
        return set(scores(memory, Texts(WordIndex("shown", ""), "texts", "TRUE", {}, len(held), len(held)), query))


def fill_memory(memory: sqlite3.Connection, texts: Iterable[tuple[int, str]], tokenizer: str) -> None:
    """Make the full-text index ``shown`` of texts in memory."""
    memory.execute(f"CREATE VIRTUAL TABLE shown USING fts5(content, tokenize='{tokenizer}')")
    memory.executemany(
        "INSERT INTO shown(rowid, content) VALUES (?, ?)", ((id_, set_apart(text)) for id_, text in texts)
    )


def marking(query: SearchQuery) -> Iterator[tuple[str, str]]:
    """Yield the tokenizers and expressions that mark the terms in a text: the first that finds something is right."""
    if any(term.begins for term in query.terms):
        yield UNSTEMMED, any_of(query.terms)
    yield TOKENIZER, any_of(map(_loosened, query.terms))


def _divided(counts: Mapping[Term, int]) -> tuple[list[Term], list[Term]]:
    """Divide terms that occur into rare ones, at least one, and common ones; each part has the rarest first."""
    rarest_first = sorted((term for term, count in counts.items() if count), key=lambda term: counts[term])
    totals = accumulate(counts[term] for term in rarest_first)
    rare = sum(total <= MOST_RANKED for total in totals) or 1
    return rarest_first[:rare], rarest_first[rare:]


def _weight(number: float, of: int) -> float:
    """Return the weight of a word that a ``number`` of texts have, ``of`` so many."""
    return math.log(1 + (max(of, number) - number + 0.5) / (number + 0.5))


@lru_cache(maxsize=64)
def _loosened(term: Term) -> Term:
    """Return a beginning that all stems have of the words that begin with a term; another term is returned as it is.

    The index contains only these stems.
    """
    *before, last = re.split(r"(?<=[\W_])(?=[^\W_])", folded(term.text)) if term.begins else [""]
    if not (last.isascii() and last.isalpha()):
        return term
    endings = ((ending, cut) for ending in _ENDINGS.split() for cut in range(len(ending) + 1))
    shared = last
    for stem in _stems({last + ending[cut:] for ending, cut in endings if last.endswith(ending[:cut])}):
        while not stem.startswith(shared):
            shared = shared[:-1]
    return term._replace(text="".join([*before, shared or last]))


def _stems(words: Collection[str]) -> list[str]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        fill_memory(memory, enumerate(words), TOKENIZER)
        memory.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(shown, row)")
        return [stem for (stem,) in memory.execute("SELECT term FROM stems")]
