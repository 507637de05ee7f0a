"""The full-text index of the log, filled outside the write path: a message is stored without touching it.

``meta`` stores, in the same transaction as the words, the last indexed message and the ids of older replies that were
still being written then. So no row is in the index twice and none is missing, whenever a process is killed. A row is
indexed once it is complete; after that the log does not change it. A row that was changed by hand is noticed when it
no longer matches the query that found it.

The index contains texts as ``core/log/search_query.set_apart`` writes them, and only row numbers are read from it.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rows.index_renewal import MESSAGES, IndexDamagedError, damage_told, replace
from chorus_cli.log.rules.attachments import from_text, with_lines
from chorus_cli.log.rules.messages import words_of
from chorus_cli.log.rules.search_query import MARKS, excerpt, marked_literals, set_apart
from chorus_cli.storage import meta_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.log.rules.messages import Message
    from chorus_cli.log.rules.search_query import SearchQuery

BATCH_ROWS = 2_000
BATCH_CHARACTERS = 1_000_000
COUNTED = 1_000
STATE = "search_index"
_FORMAT = 1  # raised when texts are to be indexed in another way: the index is then begun anew
_EXCERPT_WORDS = 24
_PIECE_CHARACTERS, _OVERLAP_CHARACTERS = 4_000, 500
_SHOW = "INSERT INTO shown(rowid, content) VALUES (?, ?)"


@dataclass(frozen=True, slots=True)
class Progress:
    """The last indexed message and the newest one; ``is_whole`` says that the index is up to date."""

    through: int
    newest: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """Limits of a search: the earliest time, the persona (``None``: all), and the largest number of results.

    Only messages with a larger id than ``after_id`` are found. What models thought before them is searched only
    ``with_thoughts``.
    """

    since: datetime | None
    persona: str | None
    limit: int
    after_id: int = 0
    with_thoughts: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found, and an excerpt of it, or of the thought before it, in which the matches are marked."""

    message: Message
    excerpt: str
    is_thought: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """Results of a search, newest first; ``more`` is the number beyond the limit, counted up to ``COUNTED``."""

    hits: tuple[Hit, ...]
    more: int


@dataclass(frozen=True, slots=True)
class _State:
    through: int
    waiting: tuple[int, ...] = ()


def progress(connection: sqlite3.Connection) -> Progress:
    """Return the progress of the index."""
    state, newest = _state(connection), message_rows.newest_id(connection)
    if state is None:
        return Progress(0, newest, is_whole=False)
    is_whole = state.through >= newest and not _no_longer_written(connection, state.waiting)
    return Progress(state.through, newest, is_whole)


def index_batch(connection: sqlite3.Connection, rows: int = BATCH_ROWS) -> Progress:
    """Index the next messages, at most ``rows``, and few enough for a short transaction.

    Raises:
        IndexDamagedError: the index cannot take them.
    """
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
    """Empty the index; the batches that follow fill it again.

    Raises:
        IndexDamagedError: it cannot even be emptied.
    """
    with damage_told():
        connection.execute("INSERT INTO message_words(message_words) VALUES ('delete-all')")
    return _begun(connection)


def begin_in_new_pages(connection: sqlite3.Connection) -> _State:
    """Begin the index anew in new pages; the old ones stay behind."""
    replace(connection, MESSAGES)
    return _begun(connection)


def check(connection: sqlite3.Connection) -> None:
    """Check the consistency of the whole index; SQLite takes a write lock for that.

    Raises:
        IndexDamagedError: it contradicts itself, or has not the words that it counted in the messages.
    """
    with damage_told():
        connection.execute("INSERT INTO message_words(message_words, rank) VALUES ('integrity-check', 0)")
        # To SQLite, an index whose list of parts is zeros is a sound one without words.
        connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, message_words, row)")
        (words,) = connection.execute("SELECT COALESCE(SUM(cnt), 0) FROM temp.words").fetchone()
        connection.execute("DROP TABLE temp.words")
        sizes = connection.execute("SELECT sz FROM message_words_docsize").fetchall()
    if words != sum(_size(stored) for (stored,) in sizes):
        raise IndexDamagedError


def _size(stored: bytes) -> int:
    """Return the number of a message's words, which SQLite stores with seven bits in each byte, the highest first."""
    size = 0
    for byte in stored:
        size = size << 7 | byte & 0x7F
    return size


def find(connection: sqlite3.Connection, query: SearchQuery, scope: Scope) -> Found:
    """Return the indexed messages that contain all words and literals of the query, newest first.

    A query of literals alone reads the whole log.

    Raises:
        IndexDamagedError: the index cannot be read, or a message no longer matches its words in the index.
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
    """Return the ids of the messages found, newest first: up to the limit, and ``COUNTED`` + 1 more.

    Those of imports that are undone are not among them.
    """
    withdrawn = [*operation_rows.undone_imports(connection)]
    # CROSS JOIN keeps SQLite to this order: the index first, which gives the rows from the newest on.
    source = "message_words CROSS JOIN messages ON id = message_words.rowid" if query.expression else "messages"
    order = "message_words.rowid" if query.expression else "id"
    conditions = [
        "message_words MATCH :expression" if query.expression else "status <> 'streaming'",
        "timestamp > :since" if scope.since else "",
        "persona = :persona" if scope.persona is not None else "",
        f"{order} > :after",
        # A list and no chain of conditions, whose length SQLite limits.
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
    """Return an excerpt of each text, by id; a text that no longer matches has none.

    They come from an index of these texts in memory, which has the same tokenizer as the large one.
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
    """Yield overlapping pieces of a text: the time for an excerpt grows with the square of the matches."""
    for start in range(0, max(1, len(text) - _OVERLAP_CHARACTERS), _PIECE_CHARACTERS - _OVERLAP_CHARACTERS):
        yield text[start : start + _PIECE_CHARACTERS]


def _next_rows(
    connection: sqlite3.Connection, after: int, rows: int
) -> tuple[Sequence[tuple[int, str]], tuple[int, ...], int]:
    """Return the next rows to index, the ids of the replies among them in progress, and the last id."""
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
    """Return the lines that stand for the attachments of a row."""
    try:
        return with_lines("", from_text(attached))
    except (ValueError, TypeError):
        # The row itself is told as damaged when it is read.
        return ""


def _no_longer_written(connection: sqlite3.Connection, waiting: Sequence[int]) -> Mapping[int, str]:
    """Return the contents of the waiting rows that are complete by now, by id."""
    found = connection.execute(
        "SELECT id, content FROM messages WHERE id IN (SELECT value FROM json_each(?)) AND status <> 'streaming'",
        (json.dumps(waiting),),
    ).fetchall()
    return dict(found)


def _begun(connection: sqlite3.Connection) -> _State:
    state = _State(0)
    _store(connection, state)
    return state


def _state(connection: sqlite3.Connection) -> _State | None:
    """Return the stored state of the index, ``None`` if there is none or it is invalid."""
    try:
        stored = json.loads(meta_rows.value(connection, STATE) or "null")
        return _State(stored["through"], tuple(stored["waiting"])) if stored["format"] == _FORMAT else None
    except (ValueError, TypeError, KeyError):
        return None


def _store(connection: sqlite3.Connection, state: _State) -> None:
    text = json.dumps({"format": _FORMAT, "through": state.through, "waiting": state.waiting})
    meta_rows.store(connection, STATE, text)
