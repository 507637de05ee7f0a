"""The vectors of messages, oldest message first. A trigger deletes the vector of a message whose words change.

The vector of a message at which the model failed is empty, so that the model is not asked for it again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from chorus_cli.log.rows import found_messages, message_rows
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.search_query import SearchQuery

MOST_CHARACTERS = 1_000
"""How much of a message its vector stands for: this takes the model about half a second."""

_MOST_COMPARED = 200_000
_WORDS = f"substr(content, 1, {MOST_CHARACTERS})"


def lacking(connection: sqlite3.Connection, model: str, most: int) -> Mapping[int, str]:
    """Return, by id, the beginnings of the next messages without a vector of ``model``.

    They are older than any reply that is being written, because vectors are made in the order of messages.
    """
    found = connection.execute(
        f"SELECT id, {_WORDS} FROM messages NOT INDEXED WHERE id > ? "
        "AND id < COALESCE((SELECT MIN(id) FROM messages WHERE status = 'streaming'), id + 1) "
        "AND role IN ('user', 'assistant') AND content <> '' ORDER BY id LIMIT ?",
        (_newest(connection, model), most),
    )
    return dict(found.fetchall())


def add(connection: sqlite3.Connection, model: str, texts: Mapping[int, str], vectors: Mapping[int, bytes]) -> None:
    """Store vectors of texts, but not for a message whose words have changed since, such as by a purge."""
    connection.executemany(
        f"INSERT OR REPLACE INTO message_vectors SELECT id, ?, ? FROM messages WHERE id = ? AND {_WORDS} = ?",
        [(model, vector, id_, texts[id_]) for id_, vector in vectors.items()],
    )


def comparable(connection: sqlite3.Connection, model: str, query: SearchQuery, scope: Scope) -> tuple[list[int], bytes]:
    """Return the ids of the messages that a search may find, and their vectors in a row; of very many, the newest."""
    condition, values = found_messages.may_be_found(connection, query, scope)
    rows = connection.execute(
        "SELECT message_id, vector FROM message_vectors CROSS JOIN messages ON id = message_id "
        f"WHERE message_vectors.model = :embedded_by AND vector <> x'' AND {condition} "
        f"ORDER BY message_id DESC LIMIT {_MOST_COMPARED}",
        {**values, "embedded_by": model},
    ).fetchall()
    return [id_ for id_, _ in rows], b"".join(vector for _, vector in rows)


def percent(connection: sqlite3.Connection, model: str) -> int:
    """Return how much of the log has vectors."""
    return 100 * _newest(connection, model) // max(message_rows.newest_id(connection), 1)


def number(connection: sqlite3.Connection, model: str) -> int:
    """Return how many messages have a vector that is not empty."""
    query = "SELECT COUNT(*) FROM message_vectors WHERE model = ? AND vector <> x''"
    (found,) = connection.execute(query, (model,)).fetchone()
    return int(found)


def _newest(connection: sqlite3.Connection, model: str) -> int:
    """Return the id of the newest message with a vector, 0 if there is none."""
    newest = "SELECT message_id FROM message_vectors WHERE model = ? ORDER BY message_id DESC LIMIT 1"
    found = connection.execute(newest, (model,)).fetchone()
    return found[0] if found else 0
