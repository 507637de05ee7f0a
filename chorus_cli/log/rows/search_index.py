"""The full-text index of the log: it is filled after messages are stored, and rebuilt if its pages cannot be read.

The transaction that adds words also stores in ``meta`` the last indexed message, and the ids of older replies that are
still being written. So a kill at any time leaves no row in the index twice, and none missing. A row is indexed once it
is no longer in progress; after that the log does not change its words. If a row was changed by hand, a search notices
that the row lacks the words by which the index found it.

The index contains texts as ``search_query.set_apart`` writes them. A search reads only row numbers from it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.attachments import from_text, with_lines
from chorus_cli.log.rules.messages import Message, words_of
from chorus_cli.log.rules.search_query import MARKS, SearchQuery, excerpt, marked_literals, set_apart
from chorus_cli.storage import meta_rows
from chorus_cli.storage.errors import UNREADABLE, damaged
from chorus_cli.storage.schema import ITEM_WORDS, MESSAGE_WORDS

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


BATCH_ROWS = 2_000
BATCH_CHARACTERS = 1_000_000
COUNTED = 1_000
STATE = "search_index"
_FORMAT = 1  # increased when texts are indexed in another way: then the index is made anew
_EXCERPT_WORDS = 24
_THOUGHT_ROWS, _THOUGHT_CHARACTERS = 20_000, 1_000_000
_PIECE_CHARACTERS, _OVERLAP_CHARACTERS = 4_000, 500
_SHOW = "INSERT INTO shown(rowid, content) VALUES (?, ?)"


class Progress(NamedTuple):
    """The ids of the last indexed and of the newest message; ``is_whole`` says that the index is up to date."""

    through: int
    newest: int
    is_whole: bool


class Scope(NamedTuple):
    """Limits of a search: the earliest time, the persona (``None``: all), and the largest number of results.

    Messages up to ``after_id`` are left out. Thoughts are searched only if ``with_thoughts`` is true.
    """

    since: datetime | None
    persona: str | None
    limit: int
    after_id: int = 0
    with_thoughts: bool = False


class Hit(NamedTuple):
    """A message that was found, and an excerpt of it, or of its thoughts (``is_thought``), with the matches marked."""

    message: Message
    excerpt: str
    is_thought: bool = False


class Found(NamedTuple):
    """Results of a search, newest first; ``more`` is the number beyond the limit, but at most ``COUNTED`` + 1."""

    hits: tuple[Hit, ...]
    more: int


class _State(NamedTuple):
    through: int
    waiting: tuple[int, ...] = ()


def progress(connection: sqlite3.Connection) -> Progress:
    """Return how much of the log is in the index."""
    state, newest = _state(connection), message_rows.newest_id(connection)
    if state is None:
        return Progress(0, newest, is_whole=False)
    is_whole = state.through >= newest and not _no_longer_written(connection, state.waiting)
    return Progress(state.through, newest, is_whole)


def index_batch(connection: sqlite3.Connection, rows: int = BATCH_ROWS) -> Progress:
    """Index the next messages, at most ``rows`` and few enough for a short transaction; return the progress."""
    with damage_told():
        state = _state(connection) or begin_anew(connection)
        finished = _no_longer_written(connection, state.waiting)
        fresh, begun, through = _next_rows(connection, state.through, rows)
        connection.executemany(
            "INSERT INTO message_words(rowid, content) VALUES (?, ?)",
            [(id_, set_apart(content)) for id_, content in [*finished.items(), *fresh]],
        )
        waiting = tuple(id_ for id_ in state.waiting if id_ not in finished) + begun
        _store(connection, _State(through, waiting))
    return progress(connection)


def begin_anew(connection: sqlite3.Connection) -> _State:
    """Empty the index; later batches fill it again."""
    with damage_told():
        connection.execute("INSERT INTO message_words(message_words) VALUES ('delete-all')")
    return _store(connection, _State(0))


def begin_in_new_pages(connection: sqlite3.Connection) -> _State:
    """Empty the index by making it in new pages; later batches fill it again."""
    replace(connection, MESSAGES)
    return _store(connection, _State(0))


def check(connection: sqlite3.Connection) -> None:
    """Raise `IndexDamagedError` if the index contradicts itself or lacks a message or word. This needs a write lock."""
    with damage_told():
        connection.execute("INSERT INTO message_words(message_words, rank) VALUES ('integrity-check', 0)")
        # Words are counted, because SQLite accepts an index whose list of parts is all zeros as sound and empty.
        connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, message_words, row)")
        (words,) = connection.execute("SELECT COALESCE(SUM(cnt), 0) FROM temp.words").fetchone()
        connection.execute("DROP TABLE temp.words")
        sizes = connection.execute("SELECT sz FROM message_words_docsize").fetchall()
        state = _state(connection) or _State(0)
        (lacks,) = connection.execute(
            "SELECT EXISTS(SELECT id FROM messages WHERE id <= ? AND id NOT IN (SELECT value FROM json_each(?)) "
            "EXCEPT SELECT id FROM message_words_docsize)",
            (state.through, json.dumps(state.waiting)),
        ).fetchone()
    if lacks or words != sum(_size(stored) for (stored,) in sizes):
        raise IndexDamagedError


def _size(stored: bytes) -> int:
    """Return the number of a message's words, which SQLite stores as seven bits a byte, the highest bits first."""
    size = 0
    for byte in stored:
        size = size << 7 | byte & 0x7F
    return size


def find(connection: sqlite3.Connection, query: SearchQuery, scope: Scope) -> Found:
    """Return the indexed messages that contain all words and literals of the query, newest first.

    A query of literals alone reads the whole log. If a message that was found has no match, raise `IndexDamagedError`.
    """
    with damage_told() if query.expression else nullcontext():
        ids = _matching(connection, query, scope)
    shown = message_rows.rows(connection, ids[: scope.limit])[::-1]
    found = excerpts({message.id: words_of(message) for message in shown}, query)
    if len(found) < len(shown):
        raise IndexDamagedError
    hits = tuple(Hit(message, found[message.id]) for message in shown)
    return Found(hits, max(0, len(ids) - scope.limit))


def _matching(connection: sqlite3.Connection, query: SearchQuery, scope: Scope) -> list[int]:
    """Return the ids of the messages found, newest first: up to the limit, and ``COUNTED`` + 1 more."""
    withdrawn = [*operation_rows.undone_imports(connection)]
    # CROSS JOIN makes SQLite read the index first, which yields the newest rows first.
    source = "message_words CROSS JOIN messages ON id = message_words.rowid" if query.expression else "messages"
    order = "message_words.rowid" if query.expression else "id"
    conditions = [
        "message_words MATCH :expression" if query.expression else "status <> 'streaming'",
        "timestamp > :since" if scope.since else "",
        "persona = :persona" if scope.persona is not None else "",
        f"{order} > :after",
        # This is one condition on a list, because SQLite limits the length of a chain of conditions.
        "NOT EXISTS (SELECT 1 FROM json_each(:literals) WHERE instr(messages.content, value) = 0 "
        "AND COALESCE(instr(messages.attachments, value), 0) = 0)"
        if query.literals
        else "",
        "COALESCE(introduced_by, 0) NOT IN (SELECT value FROM json_each(:withdrawn))" if withdrawn else "",
    ]
    found = connection.execute(
        f"SELECT id FROM {source} WHERE {' AND '.join(filter(None, conditions))} ORDER BY {order} DESC LIMIT :rows",
        {
            "expression": query.expression,
            "since": timestamps.to_text(scope.since) if scope.since else "",
            "persona": scope.persona,
            "after": scope.after_id,
            "literals": json.dumps(query.literals),
            "withdrawn": json.dumps(withdrawn),
            "rows": scope.limit + COUNTED + 1,
        },
    ).fetchall()
    return [id_ for (id_,) in found]


def excerpts(contents: Mapping[int, str], query: SearchQuery) -> Mapping[int, str]:
    """Return an excerpt of each text, by id; a text that does not match the expression of the query has none.

    An index in memory finds the matches in these texts, with the same tokenizer as the index of the log.
    """
    if not query.expression:
        return {id_: excerpt(marked_literals(content, query.literals)) for id_, content in contents.items()}
    texts = {id_: set_apart(content) for id_, content in contents.items()}
    pieces = [(id_, piece) for id_, text in texts.items() for piece in _pieces(text)]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        memory.execute("CREATE VIRTUAL TABLE shown USING fts5(content, tokenize='unicode61 remove_diacritics 2')")
        memory.executemany(_SHOW, enumerate(piece for _, piece in pieces))
        matching = memory.execute("SELECT rowid FROM shown WHERE shown MATCH ?", (query.expression,)).fetchall()
        first = {pieces[number][0]: number for (number,) in sorted(matching, reverse=True)}
        marked = memory.execute(
            "SELECT rowid, snippet(shown, 0, ?, ?, '…', ?) FROM shown WHERE shown MATCH ? "
            "AND rowid IN (SELECT value FROM json_each(?))",
            (*MARKS, _EXCERPT_WORDS, query.expression, json.dumps([*first.values()])),
        ).fetchall()
        found = {pieces[number][0]: excerpt(text) for number, text in marked}
        memory.execute("DELETE FROM shown")
        memory.executemany(_SHOW, [(id_, text) for id_, text in texts.items() if id_ not in found])
        apart = memory.execute("SELECT rowid FROM shown WHERE shown MATCH ?", (query.expression,)).fetchall()
    return {**found, **{id_: excerpt(texts[id_][:_PIECE_CHARACTERS]) for (id_,) in apart}}


def _pieces(text: str) -> Iterator[str]:
    """Yield overlapping pieces of a text: the time for an excerpt grows with the square of the number of matches."""
    for start in range(0, max(1, len(text) - _OVERLAP_CHARACTERS), _PIECE_CHARACTERS - _OVERLAP_CHARACTERS):
        yield text[start : start + _PIECE_CHARACTERS]


class ThoughtPage(NamedTuple):
    """Thoughts by the ids of their messages. The next page ends before the id ``before``; 0 means there is none."""

    texts: Mapping[int, str]
    before: int


def page_of_thoughts(connection: sqlite3.Connection, scope: Scope, before: int) -> ThoughtPage:
    """Return some of the thoughts before an id, so few that they neither keep the store busy nor fill the memory."""
    first = max(before - _THOUGHT_ROWS, scope.after_id + 1)
    cursor = connection.execute(
        "SELECT id, reasoning FROM messages NOT INDEXED WHERE id >= :first AND id < :before AND reasoning IS NOT NULL "
        "AND status <> 'streaming' AND timestamp > :since AND (:persona IS NULL OR persona = :persona) "
        "AND COALESCE(introduced_by, 0) NOT IN (SELECT value FROM json_each(:withdrawn)) ORDER BY id DESC",
        {
            "first": first,
            "before": before,
            "since": timestamps.to_text(scope.since) if scope.since else "",
            "persona": scope.persona,
            "withdrawn": json.dumps([*operation_rows.undone_imports(connection)]),
        },
    )
    texts: dict[int, str] = {}
    characters = 0
    for id_, text in cursor:
        texts[id_] = text
        characters += len(text)
        if characters >= _THOUGHT_CHARACTERS:
            cursor.close()
            return ThoughtPage(texts, id_)
    return ThoughtPage(texts, first if first > scope.after_id + 1 else 0)


def excerpts_of_thoughts(texts: Mapping[int, str], query: SearchQuery) -> Mapping[int, str]:
    """Return, by id, an excerpt of each text that contains all words and literals of the query."""
    possible = {id_: text for id_, text in texts.items() if all(literal in text for literal in query.literals)}
    return excerpts(possible, query) if possible else {}


def _next_rows(
    connection: sqlite3.Connection, after: int, rows: int
) -> tuple[Sequence[tuple[int, str]], tuple[int, ...], int]:
    """Return the finished rows among the next rows, the ids of rows in progress, and the last id that was read."""
    cursor = connection.execute(
        "SELECT id, content, attachments, status = 'streaming' FROM messages WHERE id > ? ORDER BY id LIMIT ?",
        (after, rows),
    )
    fresh: list[tuple[int, str]] = []
    begun: list[int] = []
    through, characters = after, 0
    for id_, content, attached, is_written in cursor:
        through = id_
        if is_written:
            begun.append(id_)
            continue
        fresh.append((id_, f"{content}\n{_names(attached)}" if attached else content))
        characters += len(content)
        if characters >= BATCH_CHARACTERS:
            break
    cursor.close()
    return fresh, tuple(begun), through


def _names(attached: str) -> str:
    """Return the lines that name the attachments of a row."""
    try:
        return with_lines("", from_text(attached))
    except (ValueError, TypeError):
        # Reading the row itself reports the damage.
        return ""


def _no_longer_written(connection: sqlite3.Connection, waiting: Sequence[int]) -> Mapping[int, str]:
    """Return, by id, the contents of the waiting messages that are no longer in progress."""
    found = connection.execute(
        "SELECT id, content FROM messages WHERE id IN (SELECT value FROM json_each(?)) AND status <> 'streaming'",
        (json.dumps(waiting),),
    ).fetchall()
    return dict(found)


def _state(connection: sqlite3.Connection) -> _State | None:
    """Return the stored state of the index, ``None`` if there is none or it is invalid."""
    try:
        stored = json.loads(meta_rows.value(connection, STATE) or "null")
        return _State(stored["through"], tuple(stored["waiting"])) if stored["format"] == _FORMAT else None
    except (ValueError, TypeError, KeyError):
        return None


def _store(connection: sqlite3.Connection, state: _State) -> _State:
    """Store the state of the index, and return it."""
    text = json.dumps({"format": _FORMAT, "through": state.through, "waiting": state.waiting})
    meta_rows.store(connection, STATE, text)
    return state
