"""Texts that have the words of purged ones and stay: other messages, and all that only holds a short text."""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import SessionError
from chorus_cli.log.rows import search_index
from chorus_cli.log.rows.message_rows import THERE
from chorus_cli.log.rules.search_query import set_apart
from chorus_cli.personas import files as persona_files
from chorus_cli.sessions import files as session_files
from chorus_cli.stores.purge.attached import text_of
from chorus_cli.stores.purge.selection import AMONG, in_words, words_in_parts
from chorus_cli.stores.rules.purge_reports import DOCUMENT, Repetition
from chorus_cli.stores.rules.traces import UNWATCHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from chorus_cli.log.rules.log_acts import PurgedIds
    from chorus_cli.sessions.rules.format import Session
    from chorus_cli.stores.purge.concerned import Concerned
    from chorus_cli.stores.purge.sessions import SessionChange
    from chorus_cli.stores.rules.traces import Watch


class _Place(NamedTuple):
    """A column of texts: rows of an id, the number that users see, the persona and the text, without the ``ids``.

    ``words`` takes the words out of a text.
    """

    name: str
    table: str
    rows: str
    words: Callable[[str], str] = str


def _of_messages(name: str, table: str, column: str, words: Callable[[str], str] = str) -> _Place:
    return _Place(name, table, f"id, id, persona, {column} FROM messages WHERE {column} <> '' AND {THERE}", words)


def _in_thoughts(stored: str) -> str:
    text, parts = json.loads(stored)
    return "\n".join(filter(None, (text, *words_in_parts(parts or ""))))


_THOUGHTS = _Place(
    "thoughts of message",
    "messages",
    "id, id, persona, json_array(reasoning, thought_parts) FROM messages "
    f"WHERE (reasoning <> '' OR thought_parts <> '') AND {THERE}",
    _in_thoughts,
)
_SHORT = (
    _Place("memory item", "items", "id, id, persona, content FROM context_items WHERE purged_by IS NULL"),
    _Place("summary", "summaries", "id, id, persona, content FROM summaries WHERE content <> ''"),
    _Place("line of the input history", "inputs", "id, id, persona, content FROM input_history WHERE content <> ''"),
    _Place("title of thread", "titles", "id, number, persona, title FROM threads WHERE title <> ''"),
    _of_messages("preamble of message", "preambles", "preamble"),
    _of_messages("tool call in message", "messages", "tool_calls", in_words),
)


def repeated(connection: sqlite3.Connection, found: Concerned, watch: Watch = UNWATCHED) -> list[int]:
    """Return other messages that repeat purged texts, which stay.

    The index of the search is asked for a few phrases; for more, or without it, all other messages are read once.
    """
    condition, ids = f"{THERE} AND id NOT {AMONG}", found.ids.messages
    if search_index.progress(connection).is_whole and found.traces.phrases:
        with suppress(sqlite3.DatabaseError):
            condition, ids = f"{THERE} AND id {AMONG}", frozenset(_hits(connection, found.traces.phrases) - ids)
    cursor = connection.execute(
        f"SELECT id, content FROM messages WHERE {condition} ORDER BY id", {"ids": json.dumps([*ids])}
    )
    return [id_ for id_, content in watch.over(cursor) if found.traces.have_run_in(content)]


def elsewhere(connection: sqlite3.Connection, found: Concerned, watch: Watch = UNWATCHED) -> Iterator[Repetition]:
    """Yield the places in the log, other than the texts of messages, that have words of purged texts and stay."""
    for place in (*_SHORT, _THOUGHTS) if found.traces.are_of_short_texts else (_THOUGHTS,):
        rows = connection.execute(
            f"SELECT {place.rows} AND id NOT {AMONG} ORDER BY id", {"ids": json.dumps([*_gone(found.ids, place)])}
        )
        for _, number, persona, stored in watch.over(rows):
            text = place.words(stored)
            if found.traces.have_run_in(text):
                yield Repetition(place.name, f"#{number}", persona, text)


def in_sessions(personas: Path, found: Concerned, changes: Iterable[SessionChange]) -> Iterator[Repetition]:
    """Yield the sessions whose summaries, titles or descriptions have words of purged texts after the changes."""
    after = {(each.persona, each.session_id): each.after for each in changes}
    for folder in sorted(personas.glob(f"*/{session_files.SESSIONS_FOLDER}")):
        persona = folder.parent.name
        for session_id in sorted(session_files.ids(personas, persona)):
            key = (persona, session_id)
            texts = _said_about(after[key]) if key in after else _texts(personas, persona, session_id)
            if text := next(filter(found.traces.have_run_in, texts), ""):
                yield Repetition("session", session_id, persona, text)


def in_documents(personas: Path, found: Concerned) -> Iterator[Repetition]:
    """Yield the documents of personas that have words of purged texts or of the search: no purge changes them."""
    for folder in sorted(personas.glob(f"*/{persona_files.DOCUMENTS_FOLDER}")):
        persona = folder.parent.name
        sent, _ = persona_files.documents(personas, persona)
        for each in sent:
            if found.has_words(each.content, persona) or found.traces.have_run_in(each.content):
                yield Repetition(DOCUMENT, str(folder / each.name), persona, each.content)


def _texts(personas: Path, persona: str, session_id: str) -> tuple[str, ...]:
    try:
        return _said_about(session_files.read(personas, persona, session_id))
    except SessionError:
        return (text_of(session_files.path_of(personas, persona, session_id)),)


def _said_about(session: Session | None) -> tuple[str, ...]:
    if session is None:
        return ()
    threads = (text for thread in session.threads for text in (thread.title, thread.summary))
    return (session.summary, session.description, *threads)


def _gone(ids: PurgedIds, place: _Place) -> frozenset[int]:
    gone: frozenset[int] = getattr(ids, place.table)
    return gone | ids.messages if place.table == "preambles" else gone


def _hits(connection: sqlite3.Connection, phrases: Iterable[str]) -> set[int]:
    statement = "SELECT rowid FROM message_words WHERE message_words MATCH ?"
    return {id_ for phrase in phrases for (id_,) in connection.execute(statement, (f'"{set_apart(phrase)}"',))}
