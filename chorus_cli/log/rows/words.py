"""What a search asks of a full-text index; each engine of the log answers in its own way.

`sqlite_words` and `postgres_words` have the statements. Both find the same texts, because the words of both are those
that SQLite's tokenizer makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from chorus_cli.log.rules.search_query import Term, Wanted
from chorus_cli.storage.schema import ITEM_WORDS, MESSAGE_WORDS


class IndexDamagedError(Exception):
    """An index cannot be read, or contradicts itself or its texts."""


class WordIndex(NamedTuple):
    """A full-text index: its table, and SQLite's statement that makes it."""

    table: str
    statement: str

    @property
    def condition(self) -> str:
        """The SQL condition that a row of ``sqlite_master`` belongs to the index."""
        return f"(name = '{self.table}' OR name GLOB '{self.table}_*' OR tbl_name GLOB '{self.table}_*')"


MESSAGES = WordIndex("message_words", MESSAGE_WORDS)
ITEMS = WordIndex("context_item_words", ITEM_WORDS)


class Texts(NamedTuple):
    """The texts that are searched: the index of their words, their table, the rows that may be found, and their number.

    ``condition`` is SQL for the rows that may be found, with its ``values``; ``text`` is SQL for the text of a row. At
    least ``most`` of the texts that a query finds are returned.
    """

    words: WordIndex
    table: str
    condition: str
    values: Mapping[str, object]
    number: int = 0
    most: int = 0
    text: str = "content"


class Words(Protocol):
    """A full-text index on a connection. SQLite is asked one thing after the other, a server all at once."""

    def ids(self, every: Sequence[Wanted], texts: Texts, newest: int = 0) -> Iterator[AbstractSet[int]]:
        """Yield the ids of the texts that have what is wanted, or only of the ``newest`` so many."""

    def ranks(self, terms: Sequence[Term], texts: Texts, newest: int = 0) -> Iterator[Mapping[int, float]]:
        """Yield how well the texts match that have a term, by id; only the proportions of the numbers count."""

    def counts(self, terms: Sequence[Term], most: int, texts: Texts | None = None) -> Iterator[int]:
        """Yield how many of the texts, or of all texts of the index, have a term, or ``most`` if more have it."""

    def contents(self, ids: Sequence[int], texts: Texts) -> Iterator[tuple[int, str]]:
        """Yield the texts of some ids, each with its id, in the order of ``ids``."""

    def newest_id(self) -> int:
        """Return the id of the newest text of the index, 0 if it is empty."""

    def put(self, texts: Iterable[tuple[int, str]]) -> None:
        """Put texts into the index by their ids; a memory item's words replace its former ones."""

    def keep(self, kept: str) -> None:
        """Remove all other words than those of the ids that the query ``kept`` returns."""

    def empty(self) -> None:
        """Remove all words."""

    def make_again(self) -> None:
        """Make an empty index in place of one that may be damaged."""

    def check(self, texts: str, values: Mapping[str, object]) -> None:
        """Raise `IndexDamagedError` if the index contradicts itself, or lacks one of the ids that ``texts`` returns."""
