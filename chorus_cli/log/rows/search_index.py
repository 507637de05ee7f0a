"""The full-text index of messages: it is filled after messages are stored, and rebuilt if its pages cannot be read.

The transaction that adds words also stores in ``meta`` the last indexed message, and the ids of older replies that are
still being written. So if the process is killed, the index lacks no row and has none twice. A row is indexed when
it is no longer in progress; after that, only a purge changes its words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from chorus_cli.log.rows import message_rows
from chorus_cli.log.rows.sqlite_words import damage_told
from chorus_cli.log.rows.word_index import index_of
from chorus_cli.log.rows.words import MESSAGES
from chorus_cli.log.rules.attachments import from_text, with_lines
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection

BATCH_ROWS = 2_000
BATCH_CHARACTERS = 1_000_000
STATE = meta_rows.SEARCH_INDEX
_FORMAT = 2  # changes with the way in which texts are indexed; an index of another format is made anew


class Progress(NamedTuple):
    """The ids of the last message read for the index and of the newest one; ``is_whole``: it is up to date."""

    through: int
    newest: int
    is_whole: bool

    @property
    def percent(self) -> int:
        """How much of the log is in the index."""
        return 100 * self.through // max(self.newest, 1)


class _State(NamedTuple):
    through: int
    waiting: tuple[int, ...] = ()


def progress(connection: Connection) -> Progress:
    """Return how much of the log is in the index."""
    state, newest = _state(connection), message_rows.newest_id(connection)
    if state is None:
        return Progress(0, newest, is_whole=False)
    is_whole = state.through >= newest and not _no_longer_written(connection, state.waiting)
    return Progress(state.through, newest, is_whole)


def index_batch(connection: Connection, rows: int = BATCH_ROWS) -> Progress:
    """Index the next messages, few enough for a short transaction, and replies that have ended; return the progress.

    At most ``rows`` new messages are read.
    """
    with damage_told():
        state = _state(connection) or begin_anew(connection)
        finished = _no_longer_written(connection, state.waiting)
        fresh, begun, through = _next_rows(connection, state.through, rows)
        index_of(connection, MESSAGES).put([*finished.items(), *fresh])
        waiting = tuple(id_ for id_ in state.waiting if id_ not in finished) + begun
        _store(connection, _State(through, waiting))
    return progress(connection)


def begin_anew(connection: Connection) -> _State:
    """Empty the index; later batches fill it again."""
    with damage_told():
        index_of(connection, MESSAGES).empty()
    return _store(connection, _State(0))


def begin_in_new_pages(connection: Connection) -> _State:
    """Replace the index with an empty one in new pages; later batches fill it."""
    index_of(connection, MESSAGES).make_again()
    return _store(connection, _State(0))


def check(connection: Connection) -> None:
    """Raise `IndexDamagedError` if the index contradicts itself or lacks a message that was read for it.

    SQLite needs a write lock for this check.
    """
    state = _state(connection) or _State(0)
    indexed = "SELECT id FROM messages WHERE id <= :through AND id NOT IN (SELECT value FROM json_each(:waiting))"
    with damage_told():
        index_of(connection, MESSAGES).check(indexed, {"through": state.through, "waiting": json.dumps(state.waiting)})


def _next_rows(connection: Connection, after: int, rows: int) -> tuple[Sequence[tuple[int, str]], tuple[int, ...], int]:
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


def _no_longer_written(connection: Connection, waiting: Sequence[int]) -> Mapping[int, str]:
    """Return, by id, the contents of the waiting messages that are no longer in progress."""
    found = connection.execute(
        "SELECT id, content FROM messages WHERE id IN (SELECT value FROM json_each(?)) AND status <> 'streaming'",
        (json.dumps(waiting),),
    ).fetchall()
    return dict(found)


def _state(connection: Connection) -> _State | None:
    """Return the stored state of the index, ``None`` if there is none or it is invalid."""
    try:
        stored = json.loads(meta_rows.value(connection, STATE) or "null")
        return _State(stored["through"], tuple(stored["waiting"])) if stored["format"] == _FORMAT else None
    except (ValueError, TypeError, KeyError):
        return None


def _store(connection: Connection, state: _State) -> _State:
    text = json.dumps({"format": _FORMAT, "through": state.through, "waiting": state.waiting})
    meta_rows.store(connection, STATE, text)
    return state
