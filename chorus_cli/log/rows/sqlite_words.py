"""Full-text indexes in SQLite (FTS5), and how damage to them is found."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from dataclasses import dataclass

from chorus_cli.core.text.apart import set_apart
from chorus_cli.log.rows.words import ITEMS, MESSAGES, IndexDamagedError, Texts, WordIndex
from chorus_cli.log.rules.search_query import Term, Wanted
from chorus_cli.storage.errors import UNREADABLE, damaged
from chorus_cli.storage.port import Connection

_SIGNS_OF_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR}


@dataclass(frozen=True)
class SqliteWords:
    """An FTS5 index of texts as `set_apart` returns them. A search reads only ids and ranks from it."""

    connection: Connection
    index: WordIndex

    def ids(self, every: Sequence[Wanted], texts: Texts, newest: int = 0) -> Iterator[AbstractSet[int]]:
        """Yield for each condition the ids of the texts that meet it: all, or the ``newest`` if that is not 0."""
        return (self._found(expression(wanted), "0", texts, newest).keys() for wanted in every)

    def ranks(self, terms: Sequence[Term], texts: Texts, newest: int = 0) -> Iterator[Mapping[int, float]]:
        """Yield for each term the BM25 ranks of the texts, by id; the statistics are those of the whole index."""
        return (self._found(_of_term(term), "-rank", texts, newest) for term in terms)

    def counts(self, terms: Sequence[Term], most: int, texts: Texts | None = None) -> Iterator[int]:
        """Yield for each term the number of ``texts`` with it, at most ``most``; ``None`` means the whole index."""
        joined, condition = (self._joined(texts), texts.condition) if texts else ("", "TRUE")
        counting = (
            f"SELECT COUNT(*) FROM (SELECT 1 FROM {self.index.table} {joined} "
            f"WHERE {self.index.table} MATCH :expression AND {condition} LIMIT :most)"
        )
        for term in terms:
            values = {**(texts.values if texts else {}), "expression": _of_term(term), "most": most}
            yield int(self.connection.execute(counting, values).fetchone()[0])

    def contents(self, ids: Sequence[int], texts: Texts) -> Iterator[tuple[int, str]]:
        """Yield the texts of some ids, each with its id, in the order of ``ids``."""
        reading = f"SELECT {texts.text} FROM {texts.table} WHERE id = ?"
        return ((id_, self.connection.execute(reading, (id_,)).fetchone()[0]) for id_ in ids)

    def newest_id(self) -> int:
        """Return the id of the newest text of the index, 0 if it is empty."""
        newest = f"SELECT COALESCE(MAX(id), 0) FROM {self.index.table}_docsize"
        return int(self.connection.execute(newest).fetchone()[0])

    def put(self, texts: Iterable[tuple[int, str]]) -> None:
        """Put the words of texts into the index by id; the words of a memory item replace its former words."""
        # To replace words, SQLite needs the former text, and the index of messages does not keep it.
        verb = "INSERT OR REPLACE" if self.index == ITEMS else "INSERT"
        self.connection.executemany(
            f"{verb} INTO {self.index.table}(rowid, content) VALUES (?, ?)",
            ((id_, set_apart(text)) for id_, text in texts),
        )

    def keep(self, kept: str) -> None:
        """Remove all words except those of the ids that ``kept`` returns; the rebuild erases the removed words."""
        self.connection.execute(f"DELETE FROM {self.index.table} WHERE rowid NOT IN ({kept})")
        self._told("rebuild")

    def empty(self) -> None:
        """Remove all words."""
        self._told("delete-all")

    def make_again(self) -> None:
        """Make an empty index in new pages. The old pages stay unused in the file."""
        self.connection.execute("PRAGMA writable_schema = ON")
        try:
            self.connection.execute(f"DELETE FROM sqlite_master WHERE {self.index.condition}")
        finally:
            # RESET makes this connection read the schema again; the statement below makes other connections do it.
            self.connection.execute("PRAGMA writable_schema = RESET")
        self.connection.execute(self.index.statement)

    def check(self, texts: str, values: Mapping[str, object]) -> None:
        """Raise `IndexDamagedError` if the index contradicts itself or lacks one of the texts. This needs a write lock.

        Words are counted, because SQLite takes an index for sound and empty if its list of segments is all zeros.
        """
        table = self.index.table
        self._told("integrity-check")
        self.connection.execute(f"CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, {table}, row)")
        (words,) = self.connection.execute("SELECT COALESCE(SUM(cnt), 0) FROM temp.words").fetchone()
        self.connection.execute("DROP TABLE temp.words")
        sizes = self.connection.execute(f"SELECT sz FROM {table}_docsize").fetchall()
        lacking = f"SELECT EXISTS({texts} EXCEPT SELECT id FROM {table}_docsize)"
        (lacks,) = self.connection.execute(lacking, values).fetchone()
        if lacks or words != sum(_size(stored) for (stored,) in sizes):
            raise IndexDamagedError

    def _told(self, command: str) -> None:
        table = self.index.table
        self.connection.execute(f"INSERT INTO {table}({table}, rank) VALUES (?, 0)", (command,))

    def _found(self, matched: str, rank: str, texts: Texts, newest: int) -> dict[int, float]:
        order = f"ORDER BY {self.index.table}.rowid DESC LIMIT {newest}" if newest else ""
        found = self.connection.execute(
            f"SELECT {texts.table}.id, {rank} FROM {self.index.table} {self._joined(texts)} "
            f"WHERE {self.index.table} MATCH :expression AND {texts.condition} {order}",
            {**texts.values, "expression": matched},
        )
        return dict(found.fetchall())

    def _joined(self, texts: Texts) -> str:
        # CROSS JOIN makes SQLite read the index first.
        return f"CROSS JOIN {texts.table} ON {texts.table}.id = {self.index.table}.rowid"


def _size(stored: bytes) -> int:
    """Return the number of a text's words, which SQLite stores in bytes of seven bits each, the highest bits first."""
    size = 0
    for byte in stored:
        size = size << 7 | byte & 0x7F
    return size


# Expressions


def expression(wanted: Wanted) -> str:
    """Return the FTS5 expression that finds the texts that meet ``wanted``."""
    terms = _all_of(wanted.terms)
    leads = " OR ".join(_all_of(lead) if len(lead) == 1 else f"({_all_of(lead)})" for lead in wanted.leads)
    return f"({leads}) AND ({terms})" if leads and terms else leads or terms


def _all_of(terms: Iterable[Term]) -> str:
    return " AND ".join(map(_of_term, terms))


def _of_term(term: Term) -> str:
    return f'{"^ " if term.is_first else ""}"{set_apart(term.text)}"{" *" if term.begins else ""}'


# Indexes in memory


def fill_memory(memory: Connection, texts: Iterable[tuple[int, str]], tokenizer: str) -> None:
    """Make the full-text index ``shown`` of texts in memory, in a transaction that is never committed."""
    memory.execute("BEGIN")
    memory.execute(f"CREATE VIRTUAL TABLE shown USING fts5(content, tokenize='{tokenizer}')")
    memory.executemany(
        "INSERT INTO shown(rowid, content) VALUES (?, ?)", ((id_, set_apart(text)) for id_, text in texts)
    )


def matching(texts: Iterable[tuple[int, str]], wanted: Wanted, tokenizer: str) -> set[int]:
    """Return the keys of the texts in memory that meet ``wanted``."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        fill_memory(memory, texts, tokenizer)
        found = memory.execute("SELECT rowid FROM shown WHERE shown MATCH ?", (expression(wanted),))
        return {key for (key,) in found}


def stems(texts: Collection[tuple[int, str]], tokenizer: str) -> Iterator[tuple[int, str, int]]:
    """Yield for each word, in order, the key of its text, its stem, and its position (place) in the text."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        fill_memory(memory, texts, tokenizer)
        memory.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(shown, instance)")
        yield from memory.execute("SELECT doc, term, offset FROM stems ORDER BY doc, offset")


# Damage


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
    """Return whether an error may mean damage; a full disk or another program's lock does not."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, UnicodeDecodeError | MemoryError) or code in _SIGNS_OF_DAMAGE


def require_sound_pages(connection: Connection, index: WordIndex) -> None:
    """Raise `IndexDamagedError` if pages of the index cannot be read; the words in them are not checked."""
    fault = _fault(connection, f"{index.condition} AND rootpage > 0")
    if fault:
        raise IndexDamagedError(fault)


def require_sound_log(connection: Connection) -> None:
    """Raise `DatabaseDamagedError` if SQLite finds damage outside of the indexes: then nothing may be written."""
    if not isinstance(connection, sqlite3.Connection):
        return
    fault = _fault(connection, f"NOT {MESSAGES.condition} AND NOT {ITEMS.condition}")
    if fault:
        (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
        raise damaged(path, fault)


def _fault(connection: Connection, condition: str) -> str:
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
