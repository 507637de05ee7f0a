"""The vectors of messages, made in their order. If the log is a file, a trigger deletes vectors of changed messages.

If the model failed at a message, the vector is empty, so that the model does not try the message again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from chorus_cli.log.rows import found_messages, message_rows
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.search_query import SearchQuery
from chorus_cli.storage.port import Connection

MOST_CHARACTERS = 1_000
"""The model reads this many characters from the beginning of a message, in about half a second."""

_MOST_COMPARED = 200_000
_WORDS = f"substr(content, 1, {MOST_CHARACTERS})"
_IS_SAID = "role IN ('user', 'assistant')"


def lacking(connection: Connection, model: str, most: int) -> Mapping[int, str]:
    """Return the beginnings of the next messages without a vector of ``model``, by id.

    Messages after a reply in progress have to wait, or the reply would never get a vector.
    """
    found = connection.execute(
        f"SELECT id, {_WORDS} FROM messages NOT INDEXED WHERE id > ? "
        "AND id < COALESCE((SELECT MIN(id) FROM messages WHERE status = 'streaming'), id + 1) "
        f"AND {_IS_SAID} AND content <> '' ORDER BY id LIMIT ?",
        (_newest(connection, model), most),
    )
    return dict(found.fetchall())


def add(connection: Connection, model: str, texts: Mapping[int, str], vectors: Mapping[int, bytes]) -> None:
    """Store the vectors of ``texts``, except for messages that have changed meanwhile, for example by a purge."""
    stored = f"SELECT id, {_WORDS} FROM messages WHERE id IN (SELECT value FROM json_each(?))"
    present = dict(connection.execute(stored, (json.dumps([*vectors]),)).fetchall())
    connection.executemany(
        "INSERT INTO message_vectors(message_id, model, vector) VALUES (?, ?, ?) "
        "ON CONFLICT (message_id) DO UPDATE SET model = excluded.model, vector = excluded.vector",
        [(id_, model, vector) for id_, vector in vectors.items() if present.get(id_) == texts[id_]],
    )


def remove_purged(connection: Connection) -> None:
    """Delete the vectors of purged messages. If the log is on a server, no trigger deletes them."""
    purged = connection.execute("SELECT id FROM messages WHERE purged_by IS NOT NULL").fetchall()
    connection.execute(
        "DELETE FROM message_vectors WHERE message_id IN (SELECT value FROM json_each(?))",
        (json.dumps([id_ for (id_,) in purged]),),
    )


def comparable(connection: Connection, model: str, query: SearchQuery, scope: Scope) -> tuple[list[int], bytes]:
    """Return the ids of messages that a search may find, newest first, and their vectors; at most 200,000."""
    condition, values = found_messages.may_be_found(connection, query, scope)
    may_be_found = connection.execute(
        f"SELECT id FROM messages WHERE {_IS_SAID} AND {condition} ORDER BY id DESC LIMIT {_MOST_COMPARED}", values
    )
    ids = {id_ for (id_,) in may_be_found}
    # If the log is on a server, the vectors are in a file on this machine, so no statement can join both tables.
    stored = connection.execute(
        "SELECT message_id, vector FROM message_vectors WHERE message_id >= ? AND model = ? AND vector <> x'' "
        "ORDER BY message_id DESC",
        (min(ids, default=0), model),
    )
    rows = [row for row in stored if row[0] in ids]
    return [id_ for id_, _ in rows], b"".join(vector for _, vector in rows)


def percent(connection: Connection, model: str) -> int:
    """Return the percentage of the log that has vectors."""
    return 100 * _newest(connection, model) // max(message_rows.newest_id(connection), 1)


def number(connection: Connection, model: str) -> int:
    """Return how many messages have a vector that is not empty."""
    query = "SELECT COUNT(*) FROM message_vectors WHERE model = ? AND vector <> x''"
    (found,) = connection.execute(query, (model,)).fetchone()
    return int(found)


def _newest(connection: Connection, model: str) -> int:
    """Return the id of the newest message with a vector, 0 if there is none."""
    newest = "SELECT message_id FROM message_vectors WHERE model = ? ORDER BY message_id DESC LIMIT 1"
    found = connection.execute(newest, (model,)).fetchone()
    return found[0] if found else 0
