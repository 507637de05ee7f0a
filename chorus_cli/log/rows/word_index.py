"""Searches a full-text index of messages or of memory items, ranks the texts, and mends the index.

Each word of a search is looked for on its own, and the score of a text is the sum of the scores of its words. A word
scores higher if few texts have it, and, as in BM25, in a text that is short or has it often. Common words only add to
the scores of texts that rarer words have found; if all words are common, they also find texts that have all of them.

The index contains the stems of English words, so it can look only for a shortened beginning of a word. Texts that it
finds by the beginning of a word are therefore compared with the whole beginning.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

from chorus_cli.core.errors import DatabaseDamagedError, StorageError
from chorus_cli.log.rows.postgres_words import PostgresWords
from chorus_cli.log.rows.sqlite_words import SqliteWords, damage_told, fill_memory, require_sound_log, stems
from chorus_cli.log.rows.words import IndexDamagedError, Texts, WordIndex
from chorus_cli.log.rules.search_query import SearchQuery, Term, Wanted, any_of, beginning, folded, spaced
from chorus_cli.storage.port import Connection
from chorus_cli.storage.schema import TOKENIZER, UNSTEMMED
from chorus_cli.storage.store import Store

T = TypeVar("T")

_ATTEMPTS = 3


async def mending(
    work: Callable[[], Awaitable[T]],
    store: Store,
    make_again: Callable[[Connection], object],
    tell: Callable[[str], None] | None,
    sentences: tuple[str, str],
) -> T:
    """Return the result of work with an index; if the index is damaged, make it again and repeat the work.

    ``tell`` gets the first of the ``sentences``, once. If the index stays damaged, the second is the error's sentence.
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


MOST_RANKED = 10_000  # the most texts with a common word that are ranked, newest first; SQLite needs 0.05 s for them
_MOST_COUNTED = 100_000
_ENDINGS = """
    s es ed er ers ing ings ly y ies ness ment ments ation ations ational ator ization izations ive ives iveness ous
    ously ousness al ally ality able ible ability ibility ful fully fulness ance ence ant ent ism ist ity ities e
"""


def index_of(connection: Connection, index: WordIndex) -> SqliteWords | PostgresWords:
    """Return an index; its methods ask SQLite for one term after the other, and a server for all terms at once."""
    return (SqliteWords if isinstance(connection, sqlite3.Connection) else PostgresWords)(connection, index)


def scores(connection: Connection, texts: Texts, query: SearchQuery) -> dict[int, float]:
    """Return the scores of the texts that a query finds, by the ids of their rows."""
    with damage_told():
        return _Scoring(connection, texts, query).scores()


@dataclass(slots=True)
class _Scoring:
    """The scoring of the texts that a query finds.

    A lead is a sequence of terms. If there are leads, a search finds only texts that have all terms of one lead.
    """

    connection: Connection
    texts: Texts
    query: SearchQuery
    _newest: int = field(default=0, init=False)

    @property
    def _words(self) -> SqliteWords | PostgresWords:
        return index_of(self.connection, self.texts.words)

    def scores(self) -> dict[int, float]:
        """Score texts by the rare terms, add the weights of common words, and leave out texts with excluded terms."""
        required = self.query.required
        counts = self._counted(required, MOST_RANKED + 1) | self._counted(self.query.words, _MOST_COUNTED)
        rare, common = _divided(counts)
        is_bounded = any(counts[term] <= MOST_RANKED for term in required or rare)
        # Every later statement contains the rare terms or all required terms, so a term with few texts keeps it fast.
        self._newest = 0 if is_bounded else MOST_RANKED
        leads: list[Sequence[Term]] = [required] if required else [(term,) for term in rare]
        counted = self._scored(rare, is_alone=len(counts) == 1)
        if len(required) > 1 or (required and required[0] not in counted):
            found = {*self._having([required])[0]}
        else:
            found = {*counted[required[0]]} if required else {id_ for ids in counted.values() for id_ in ids}
        weights = self._weights({word: counts[word] for word in common if word not in required})
        having = self._having([[word] for word in weights], leads)
        counted |= {
            word: dict.fromkeys(ids, weight) for (word, weight), ids in zip(weights.items(), having, strict=True)
        }
        if weights and not required and not is_bounded:
            leads.append(self.query.words)
            (with_all,) = self._having([self.query.words])
            found |= with_all
            for word, weight in self._weights(counts).items():
                counted[word] = {**counted.get(word, {}), **dict.fromkeys(with_all, weight)}
        found.difference_update(*self._having([[term] for term in self.query.excluded if not term.begins], leads))
        totals = dict.fromkeys(found, 0.0)
        for term_scores in counted.values():
            for id_ in found & term_scores.keys():
                totals[id_] += term_scores[id_]
        return self._compared(totals, counted)

    def _compared(self, totals: dict[int, float], counted: Mapping[Term, Mapping[int, float]]) -> dict[int, float]:
        """Check texts, best first, for terms that begin words, until enough texts have them; leave out all others."""
        patterns = {term: beginning(term) for term in (*self.query.terms, *self.query.excluded) if term.begins}
        if not patterns:
            return totals
        compared: dict[int, float] = {}
        best_first = sorted(totals, key=lambda id_: (totals[id_], id_), reverse=True)
        for id_, text in self._words.contents(best_first, self.texts):
            words = spaced(text)
            has = {term for term, pattern in patterns.items() if pattern.search(words)}
            lacks = patterns.keys() - has
            shares = [each[id_] for term, each in counted.items() if id_ in each and term not in lacks]
            is_found = lacks.isdisjoint(self.query.required) if self.query.required else bool(shares)
            if is_found and has.isdisjoint(self.query.excluded):
                compared[id_] = sum(shares)
            if len(compared) == self.texts.most:
                break
        return compared

    def _counted(self, terms: Sequence[Term], most: int) -> dict[Term, int]:
        return dict(zip(terms, self._words.counts([*map(_loosened, terms)], most), strict=True))

    def _scored(self, terms: Sequence[Term], *, is_alone: bool) -> dict[Term, Mapping[int, float]]:
        """Return the scores of each term in the texts that have it; their average is the weight of the term."""
        scored: dict[Term, Mapping[int, float]] = {}
        every = self._words.ranks([*map(_loosened, terms)], self.texts, self._newest)
        for term, ranks in zip(terms, every, strict=True):
            mean = sum(ranks.values()) / len(ranks) if ranks else 1
            weight = 1.0 if is_alone else _weight(len(ranks), self.texts.number)
            scored[term] = {id_: weight * rank / mean for id_, rank in ranks.items()}
        return scored

    def _weights(self, counts: Mapping[Term, int]) -> dict[Term, float]:
        """Return the weights of words, given the number of texts of the index that have each word."""
        newest = max(self._words.newest_id(), 1) if counts else 1
        return {word: _weight(self.texts.number * count / newest, self.texts.number) for word, count in counts.items()}

    def _having(
        self, every: Sequence[Sequence[Term]], leads: Sequence[Sequence[Term]] = ()
    ) -> Sequence[AbstractSet[int]]:
        """Return, for each list, the ids of texts with all its terms and, given ``leads``, all terms of one lead."""
        loose = [[*map(_loosened, lead)] for lead in leads]
        return [
            *self._words.ids([Wanted([*map(_loosened, terms)], loose) for terms in every], self.texts, self._newest)
        ]


def having(texts: Mapping[int, str], query: SearchQuery) -> set[int]:
    """Return the keys of the texts in memory that a query finds."""
    held = {id_: text for id_, text in texts.items() if query.has_literals(text)}
    if not query.terms:
        return set(held)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        fill_memory(memory, held.items(), TOKENIZER)
        memory.execute("CREATE TABLE texts(id INTEGER PRIMARY KEY, content TEXT)")
        memory.executemany("INSERT INTO texts VALUES (?, ?)", held.items())
        return set(scores(memory, Texts(WordIndex("shown", ""), "texts", "TRUE", {}, len(held), len(held)), query))


def marking(query: SearchQuery) -> Iterator[tuple[str, Wanted]]:
    """Yield tokenizers, each with a condition, that mark the terms in a text; the first pair that matches is right."""
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
    """Return the weight of a word that ``number`` texts out of ``of`` have: the inverse document frequency of BM25."""
    return math.log(1 + (max(of, number) - number + 0.5) / (number + 0.5))


@lru_cache(maxsize=64)
def _loosened(term: Term) -> Term:
    """Shorten a term to the beginning shared by the stems of all words that begin with it; the index has only stems."""
    *before, last = re.split(r"(?<=[\W_])(?=[^\W_])", folded(term.text)) if term.begins else [""]
    if not (last.isascii() and last.isalpha()):
        return term
    endings = ((ending, cut) for ending in _ENDINGS.split() for cut in range(len(ending) + 1))
    shared = last
    words = {last + ending[cut:] for ending, cut in endings if last.endswith(ending[:cut])}
    for _, stem, _ in stems([*enumerate(words)], TOKENIZER):
        while not stem.startswith(shared):
            shared = shared[:-1]
    return term._replace(text="".join([*before, shared or last]))
