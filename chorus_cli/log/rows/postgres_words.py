"""Full-text indexes on a server: the stems that SQLite's tokenizer makes of each text, with their positions (places).

PostgreSQL keeps at most 255 positions of a stem, and none after 16,383. A text that loses positions is cut: it gets the
mark ``_CUT`` as a stem. A search finds a cut text by the stems of a phrase, and then looks for the phrase in the text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from chorus_cli.log.rows.sqlite_words import matching, stems
from chorus_cli.log.rows.words import IndexDamagedError, Texts, WordIndex
from chorus_cli.log.rules.search_query import Term, Wanted
from chorus_cli.storage.port import Connection, Rows
from chorus_cli.storage.schema import TOKENIZER

_MOST_PLACES, _LAST_PLACE = 255, 16_383
_CUT, _NEVER = "' '", "'  '"  # not stems: the mark of a cut text, and a lexeme that no text has
_MOST_STEM_BYTES = 1_900
_MOST_BYTES = 1_000_000  # about the most bytes of stems and positions that PostgreSQL takes for one text
_BYTES_BESIDE = 4
_READ_AT_ONCE = 250
_MOST_COUNTED = 10_001
_SAMPLE = 1_000  # the newest texts, which give the average length and the share of texts with a common word


@dataclass(frozen=True)
class PostgresWords:
    """A full-text index on a server."""

    connection: Connection
    index: WordIndex

    def ids(self, every: Sequence[Wanted], texts: Texts, newest: int = 0) -> Iterator[AbstractSet[int]]:
        """Yield for each condition the ids of the texts that meet it: all, or the ``newest`` if that is not 0."""
        asked = [self._asked(wanted, texts, newest, "0") for wanted in every]
        return (self._found(wanted, texts, rows).keys() for wanted, rows in zip(every, asked, strict=True))

    def ranks(self, terms: Sequence[Term], texts: Texts, newest: int = 0) -> Iterator[Mapping[int, float]]:
        """Yield for each term the BM25 ranks of the texts, by id; their average length is estimated from the newest.

        ``ts_rank_cd`` of a single term is a tenth for each position of the term, so 0 if the text kept no position.
        """
        often = "GREATEST(10 * ts_rank_cd(words, CAST(:phrase AS tsquery)), 1)"
        newest_ones = f"SELECT length FROM {self.index.table} ORDER BY id DESC LIMIT {_SAMPLE}"
        average = f"(SELECT AVG(length) FROM ({newest_ones}) AS newest_ones)"
        rank = f"{often} / ({often} + 0.3 + 0.9 * length / {average})"
        every = [Wanted([term]) for term in terms]
        asked = [
            self._asked(wanted, texts, newest, rank, _phrase(term)) for term, wanted in zip(terms, every, strict=True)
        ]
        return (self._found(wanted, texts, rows) for wanted, rows in zip(every, asked, strict=True))

    def counts(self, terms: Sequence[Term], most: int, texts: Texts | None = None) -> Iterator[int]:
        """Yield for each term the number of ``texts`` with it, at most ``most``; ``None`` means the whole index.

        Counting many texts takes long, so above a limit their number is estimated from their share of the newest texts.
        """
        table, wanted = self.index.table, "words @@ CAST(:wanted AS tsquery)"
        joined, condition = (self._joined(texts), texts.condition) if texts else ("", "TRUE")
        found = f"SELECT 1 FROM {table} {joined} WHERE {wanted} AND {condition} LIMIT :counted"
        newest = f"SELECT words FROM {table} ORDER BY id DESC LIMIT {_SAMPLE}"
        about = (
            f"(SELECT COUNT(*) FROM ({newest}) AS newest WHERE {wanted}) * (SELECT MAX(id) FROM {table}) / {_SAMPLE}"
        )
        counting = (
            f"SELECT CASE WHEN number < :counted OR number = :most THEN number ELSE GREATEST({about}, number) END "
            f"FROM (SELECT COUNT(*) AS number FROM ({found}) AS found) AS counted"
        )
        values = {
            **(texts.values if texts else {}),
            "most": most,
            "counted": most if texts else min(most, _MOST_COUNTED),
        }
        asked = [self.connection.execute(counting, {**values, "wanted": _of_term(term)}) for term in terms]
        return (min(most, int(rows.fetchone()[0])) for rows in asked)

    def contents(self, ids: Sequence[int], texts: Texts) -> Iterator[tuple[int, str]]:
        """Yield the texts of some ids, each with its id, in the order of ``ids``."""
        reading = f"SELECT id, {texts.text} FROM {texts.table} WHERE id IN (SELECT value FROM json_each(?))"
        for begin in range(0, len(ids), _READ_AT_ONCE):
            together = ids[begin : begin + _READ_AT_ONCE]
            found = dict(self.connection.execute(reading, (json.dumps(together),)).fetchall())
            yield from ((id_, found[id_]) for id_ in together)

    def newest_id(self) -> int:
        """Return the id of the newest text of the index, 0 if it is empty."""
        return int(self.connection.execute(f"SELECT COALESCE(MAX(id), 0) FROM {self.index.table}").fetchone()[0])

    def put(self, texts: Iterable[tuple[int, str]]) -> None:
        """Put the words of texts into the index by id; they replace the texts' former words."""
        columns = [[*column] for column in zip(*_vectors([*texts]), strict=True)]
        if columns:
            self.connection.execute(
                f"INSERT INTO {self.index.table}(id, words, length) SELECT id, CAST(words AS tsvector), length "
                "FROM unnest(CAST(? AS bigint[]), CAST(? AS text[]), CAST(? AS bigint[])) AS texts(id, words, length) "
                "ON CONFLICT (id) DO UPDATE SET words = excluded.words, length = excluded.length",
                columns,
            )

    def keep(self, kept: str) -> None:
        """Remove all words except those of the ids that the query ``kept`` returns."""
        self.connection.execute(f"DELETE FROM {self.index.table} WHERE id NOT IN ({kept})")

    def empty(self) -> None:
        """Remove all words, from the server's disk too."""
        self.connection.execute(f"TRUNCATE {self.index.table}")

    def make_again(self) -> None:
        """Make an empty index in new pages."""
        self.empty()

    def check(self, texts: str, values: Mapping[str, object]) -> None:
        """Raise `IndexDamagedError` if the index lacks one of the ids that the query ``texts`` returns."""
        lacking = f"SELECT EXISTS({texts} EXCEPT SELECT id FROM {self.index.table})"
        if self.connection.execute(lacking, values).fetchone()[0]:
            raise IndexDamagedError

    def _joined(self, texts: Texts) -> str:
        return f"JOIN {texts.table} ON {texts.table}.id = {self.index.table}.id"

    def _asked(self, wanted: Wanted, texts: Texts, newest: int, rank: str, phrase: str = "") -> Rows:
        order = f"ORDER BY {self.index.table}.id DESC LIMIT {newest}" if newest else ""
        return self.connection.execute(
            f"SELECT {texts.table}.id, {rank}, words @@ CAST(:cut AS tsquery) "
            f"FROM {self.index.table} {self._joined(texts)} "
            f"WHERE words @@ CAST(:wanted AS tsquery) AND {texts.condition} {order}",
            {**texts.values, "wanted": _query(wanted), "phrase": phrase, "cut": _CUT},
        )

    def _found(self, wanted: Wanted, texts: Texts, rows: Rows) -> dict[int, float]:
        """Return the ranks by id; leave out cut texts that have the stems of a phrase but not the phrase."""
        found = {id_: (rank, is_cut) for id_, rank, is_cut in rows.fetchall()}
        unsure = [id_ for id_, (_, is_cut) in found.items() if is_cut] if _CUT in _query(wanted) else []
        lacking = {*unsure} - matching(self.contents(unsure, texts), wanted, TOKENIZER) if unsure else set()
        return {id_: rank for id_, (rank, _) in found.items() if id_ not in lacking}


def _query(wanted: Wanted) -> str:
    """Return the tsquery that finds the texts that meet ``wanted``, and cut texts that may meet it."""
    leads = " | ".join(" & ".join(map(_of_term, lead)) for lead in wanted.leads)
    return " & ".join([*([f"({leads})"] if leads else []), *map(_of_term, wanted.terms)])


def _of_term(term: Term) -> str:
    lexemes = _lexemes(term)
    if len(lexemes) == 1:
        return lexemes[0]
    return f"({_phrase(term)} | {_CUT} & {' & '.join(dict.fromkeys(lexemes))})"


def _phrase(term: Term) -> str:
    return " <-> ".join(_lexemes(term))


@lru_cache(maxsize=1_000)
def _lexemes(term: Term) -> Sequence[str]:
    found = [stem for _, stem, _ in stems([(1, term.text)], TOKENIZER)]
    if not found:
        return [_NEVER]
    *whole, last = found
    return [*map(_lexeme, whole), f"'{_beginning(last)}':*" if term.begins else _lexeme(last)]


def _lexeme(stem: str) -> str:
    """Return a stem, which has only letters and digits, in the syntax of PostgreSQL; a hash shortens a long stem."""
    begun = _beginning(stem)
    return f"'{begun}'" if begun == stem else f"'{begun}{blake2b(stem.encode(), digest_size=16).hexdigest()}'"


def _beginning(stem: str) -> str:
    return stem.encode()[:_MOST_STEM_BYTES].decode(errors="ignore")


def _vectors(texts: list[tuple[int, str]]) -> Iterator[tuple[int, str, int]]:
    """Yield the id of each text, its stems and positions in the syntax of PostgreSQL, and the number of its words."""
    places: dict[int, dict[str, list[int]]] = {id_: {} for id_, _ in texts}
    for id_, stem, place in stems(texts, TOKENIZER):
        places[id_].setdefault(stem, []).append(place + 1)
    for id_, of_text in places.items():
        yield id_, _vector(of_text), sum(map(len, of_text.values()))


def _vector(places: Mapping[str, Sequence[int]]) -> str:
    """Return stems with their positions in the syntax of PostgreSQL, as many as PostgreSQL takes."""
    found: list[str] = []
    number_of_bytes, is_cut = 0, False
    for stem, every in places.items():
        kept = [place for place in every[:_MOST_PLACES] if place <= _LAST_PLACE]
        is_cut |= len(kept) < len(every)
        lexeme = _lexeme(stem)
        number_of_bytes += len(lexeme.encode()) + 2 * len(kept) + _BYTES_BESIDE
        if number_of_bytes > _MOST_BYTES:
            is_cut = True
            break
        found.append(f"{lexeme}:{','.join(map(str, kept))}" if kept else lexeme)
    return " ".join([*found, *([_CUT] if is_cut else [])])
