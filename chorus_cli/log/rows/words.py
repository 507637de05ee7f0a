"""The full-text indexes, and the texts that they contain.

`sqlite_words` and `postgres_words` have the statements of each engine, in classes with the same methods. Both find the
same texts, because both index the words that SQLite's tokenizer makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

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
    """The texts that are searched: the index of their words, their table, and the number of texts.

    ``condition`` is SQL for the rows that may be found, with its ``values``; ``text`` is SQL for the text of a row. A
    search may stop when it has found ``most`` texts.
    """

    words: WordIndex
    table: str
    condition: str
    values: Mapping[str, object]
    number: int = 0
    most: int = 0
    text: str = "content"
