"""A log with a full-text index, and searches in it."""

from __future__ import annotations

import sqlite3

from chorus_cli.log.rows import search_index
from chorus_cli.log.rows.search_index import Found, Scope, index_batch
from chorus_cli.log.rules.search_query import search_query

EVERYWHERE = Scope(None, None, 100)


def put(connection: sqlite3.Connection, *contents: str, status: str = "complete", persona: str = "frodo") -> None:
    connection.executemany(
        "INSERT INTO messages(persona, thread_id, role, content, timestamp, status) "
        "VALUES (?, 1, 'user', ?, '2026-02-12T14:30:00.000000Z', ?)",
        [(persona, content, status) for content in contents],
    )


def index_all(connection: sqlite3.Connection, rows: int = 3) -> None:
    while not index_batch(connection, rows).is_whole:
        pass


def find(connection: sqlite3.Connection, typed: str, scope: Scope = EVERYWHERE) -> Found:
    return search_index.find(connection, search_query(typed), scope)


def ids(connection: sqlite3.Connection, typed: str) -> list[int]:
    return [hit.message.id for hit in find(connection, typed).hits]


def indexed(connection: sqlite3.Connection) -> list[int]:
    """Return the numbers of the rows in the index, each as often as it is there."""
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.inside USING fts5vocab('main', 'message_words', 'instance')"
    )
    return [row for (row,) in connection.execute("SELECT doc FROM inside WHERE term = 'row' ORDER BY doc")]
