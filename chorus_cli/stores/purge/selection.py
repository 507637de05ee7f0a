"""The messages that a purge is asked for, and texts that a search finds."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from chorus_cli.attachments.files import attachments
from chorus_cli.attachments.rows import attachments_in
from chorus_cli.core.errors import PurgeError
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import search_index, thread_rows
from chorus_cli.log.rows.message_rows import THERE
from chorus_cli.log.rows.search_index import IndexDamagedError, damage_told
from chorus_cli.log.rules.attachments import Kind
from chorus_cli.log.rules.search_query import search_query, set_apart
from chorus_cli.stores.rules.purging import WantedPurge

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from chorus_cli.stores.rules.purging import AskedPurge

_BATCH_ROWS = 2_000
_MOST_BYTES = 100_000_000
_OF_PERSONA = "(:persona = '' OR persona = :persona)"


def selected(connection: sqlite3.Connection, asked: AskedPurge, persona: str, attached: Path) -> WantedPurge:
    """Return the purge with the messages that are meant now.

    ``persona`` is a slug: whose thread or which persona is meant, or the limit of a span or a search, which may be
    empty. ``attached`` is the folder of attachments: a search finds messages by the texts in theirs.
    """
    if asked.messages:
        return WantedPurge(_there(connection, asked.messages))
    if asked.thread:
        thread_id = thread_rows.had(connection, persona, asked.thread).id
        return WantedPurge(_ids(connection, "thread_id = :thread", thread=thread_id), threads=frozenset({thread_id}))
    if asked.words:
        wanted = WantedPurge(words=asked.words, persona=persona)
        return wanted._replace(messages=selected_by_words(connection, wanted, (attached,)))
    if asked.since is not None:
        since, until = timestamps.to_text(asked.since), timestamps.to_text(asked.until) if asked.until else ""
        condition = f"timestamp >= :since AND (:until = '' OR timestamp <= :until) AND {_OF_PERSONA}"
        found = _ids(connection, condition, since=since, until=until, persona=persona)
        return WantedPurge(found, since=since, until=until, persona=persona)
    return WantedPurge(_ids(connection, "persona = :persona", persona=persona), personas=frozenset({persona}))


def text_of(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read or has over 100 MB."""
    with suppress(OSError):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MOST_BYTES:
            return path.read_text(encoding="utf-8", errors="replace")
    return ""


def selected_by_words(connection: sqlite3.Connection, wanted: WantedPurge, attached: Sequence[Path]) -> frozenset[int]:
    """Return the messages of a log that a search for the words of a purge finds; none without words.

    ``attached`` are the folders in which an attachment may be.
    """
    if not wanted.words:
        return frozenset()
    return _found(connection, wanted.words, wanted.persona) | _found_in_files(
        connection, wanted.words, wanted.persona, attached
    )


def matching(texts: Mapping[int, str], words: str) -> set[int]:
    """Return the keys of the texts that a search for ``words`` finds; none without words."""
    if not words or not texts:
        return set()
    query = search_query(words)
    found = {key for key, text in texts.items() if all(literal in text for literal in query.literals)}
    if not query.expression or not found:
        return found
    # Such an index in memory has the same tokenizer as that of the log.
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        memory.execute("CREATE VIRTUAL TABLE shown USING fts5(content, tokenize='unicode61 remove_diacritics 2')")
        memory.executemany("INSERT INTO shown(rowid, content) VALUES (?, ?)", [(k, set_apart(texts[k])) for k in found])
        return {key for (key,) in memory.execute("SELECT rowid FROM shown WHERE shown MATCH ?", (query.expression,))}


def in_calls(tool_calls: str) -> list[str]:
    """Return the words of calls of tools: name and arguments of each, and every text among the arguments."""
    texts: list[str] = []
    try:
        for call in json.loads(tool_calls or "[]"):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            texts.append(f"{name} {arguments}".replace("\\n", " "))
            with suppress(ValueError, RecursionError):
                texts += _texts_in(json.loads(arguments))
    except (ValueError, TypeError, KeyError, RecursionError):
        texts.append(tool_calls)
    return texts


def in_parts(thought_parts: str) -> list[str]:
    """Return every text among a provider's parts of thoughts, without the escapes of JSON."""
    try:
        return _texts_in(json.loads(thought_parts)) if thought_parts else []
    except (ValueError, RecursionError):
        return [thought_parts]


def words_in_parts(thought_parts: str) -> list[str]:
    """Return the texts among a provider's parts of thoughts but for names and signatures, which have no blanks."""
    return [text for text in in_parts(thought_parts) if " " in text or not text.isascii()]


def _texts_in(value: object) -> list[str]:
    """Return the texts anywhere in a value of JSON."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _texts_in(each)]


def _found(connection: sqlite3.Connection, words: str, persona: str) -> frozenset[int]:
    """Return the messages with the words in their text, their thoughts, or the arguments of tools."""
    query = search_query(words)
    condition = f"{THERE} AND {_OF_PERSONA}"
    found: set[int] = set()
    if query.expression and not query.literals and search_index.progress(connection).is_whole:
        with suppress(IndexDamagedError), damage_told():
            hits = connection.execute(
                "SELECT id FROM message_words CROSS JOIN messages ON id = message_words.rowid "
                f"WHERE message_words MATCH :expression AND {condition}",
                {"expression": query.expression, "persona": persona},
            )
            found = {id_ for (id_,) in hits}
            beside = "reasoning IS NOT NULL OR thought_parts IS NOT NULL OR tool_calls IS NOT NULL"
            condition = f"({beside}) AND {condition}"
    # Without the index, and for all that is not in it, every row is looked at.
    cursor = connection.execute(
        "SELECT id, content, COALESCE(reasoning, ''), COALESCE(thought_parts, ''), COALESCE(tool_calls, ''), "
        f"COALESCE(attachments, '') FROM messages WHERE {condition}",
        {"persona": persona},
    )
    while batch := cursor.fetchmany(_BATCH_ROWS):
        found |= matching(_texts(batch), words)
    return frozenset(found)


def _found_in_files(
    connection: sqlite3.Connection, words: str, persona: str, folders: Sequence[Path]
) -> frozenset[int]:
    """Return the messages with the words in one of their attached texts, each of which is read once."""
    naming: dict[str, set[int]] = {}
    rows = connection.execute(
        f"SELECT id, attachments FROM messages WHERE attachments IS NOT NULL AND {THERE} AND {_OF_PERSONA}",
        {"persona": persona},
    )
    for id_, text in rows:
        for each in attachments_in(text):
            if each.kind is Kind.TEXT:
                naming.setdefault(each.sha256, set()).add(id_)
    texts = ((_text_in(folders, digest), ids) for digest, ids in naming.items())
    return frozenset(id_ for text, ids in texts if matching({1: text}, words) for id_ in ids)


def _text_in(folders: Iterable[Path], digest: str) -> str:
    """Return the text of an attachment in the first of the folders that has it."""
    paths = (attachments.path_of(folder, digest) for folder in folders)
    return next(filter(None, map(text_of, paths)), "")


def _texts(batch: Iterable[Sequence[str]]) -> dict[int, str]:
    return {
        int(id_): "\n".join(filter(None, (content, reasoning, *in_parts(parts), *in_calls(calls), attached)))
        for id_, content, reasoning, parts, calls, attached in batch
    }


def _there(connection: sqlite3.Connection, ids: Collection[int]) -> frozenset[int]:
    found = _ids(connection, "id IN (SELECT value FROM json_each(:ids))", ids=json.dumps([*ids]))
    if unknown := sorted(set(ids) - found):
        named = enumerated([f"#{id_}" for id_ in unknown], "or")
        raise PurgeError(f"There is no message {named}, or it is purged already. /search shows the numbers.")
    return found


def _ids(connection: sqlite3.Connection, condition: str, **values: object) -> frozenset[int]:
    found = connection.execute(f"SELECT id FROM messages WHERE {condition} AND {THERE}", values).fetchall()
    return frozenset(id_ for (id_,) in found)
