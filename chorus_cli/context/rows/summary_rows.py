"""The summaries that stand for the older part of a thread's context; each belongs to a fold of the journal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from chorus_cli.context.rules.view import Summary
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.messages import expanded
from chorus_cli.storage import meta_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from chorus_cli.log.rules.messages import Runs
    from chorus_cli.log.rules.operations import Operation

_MOST = 8
"""How many folds are looked at: the newest stands unless something was taken back since."""

_TURNS_OF_REST = 3
"""A failed fold is tried again with that many questions after it."""


def of_folds(
    connection: sqlite3.Connection, thread_id: int, folds: Mapping[int, Runs], boundary: Operation | None
) -> list[Summary]:
    """Return the summaries of the newest of the folds of a thread, or of its fork, that began at its boundary.

    ``folds`` holds the messages that each stands for by the id of its operation.
    """
    found = connection.execute(
        "SELECT operation_id, base_operation_id, content, token_count, model, summaries.created_at, number "
        "FROM summaries JOIN operations ON operations.id = operation_id "
        "WHERE summaries.thread_id = ? AND operation_id IN (SELECT value FROM json_each(?)) AND base_operation_id IS ? "
        # That of a purged summary is empty.
        "AND content <> '' ORDER BY operation_id DESC LIMIT ?",
        (thread_id, json.dumps(list(folds)), boundary.id if boundary else None, _MOST),
    ).fetchall()
    return [
        Summary(id_, base, folds[id_], content, tokens, model, timestamps.from_text(created_at), number)
        for id_, base, content, tokens, model, created_at, number in found
    ]


def store_token_count(connection: sqlite3.Connection, operation_id: int, tokens: int) -> None:
    """Remember the count of a summary that was put in without one."""
    connection.execute("UPDATE summaries SET token_count = ? WHERE operation_id = ?", (tokens, operation_id))


def store(connection: sqlite3.Connection, persona: str, thread_id: int, summary: Summary) -> None:
    """Store the summary that a fold has written, and forget that one failed; the fold itself is stored already."""
    meta_rows.taken(connection, meta_rows.fold_failed_key(thread_id))
    ids = expanded(summary.stands_for)
    connection.execute(
        "INSERT INTO summaries(operation_id, persona, thread_id, base_operation_id, first_message_id, "
        "through_message_id, content, token_count, model, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            summary.operation_id,
            persona,
            thread_id,
            summary.boundary_id,
            ids[0],
            ids[-1],
            summary.content,
            summary.token_count,
            summary.model,
            timestamps.to_text(summary.created_at),
        ),
    )


def store_failure(connection: sqlite3.Connection, thread_id: int) -> None:
    """Remember that a fold of a thread failed after the newest of its messages."""
    newest = "SELECT coalesce(max(id), 0) FROM messages WHERE thread_id = ?"
    (message_id,) = connection.execute(newest, (thread_id,)).fetchone()
    meta_rows.store(connection, meta_rows.fold_failed_key(thread_id), str(message_id))


def is_resting(connection: sqlite3.Connection, thread_id: int) -> bool:
    """Return whether the last fold of a thread failed, in whichever process, and few questions have followed."""
    failed_after = meta_rows.value(connection, meta_rows.fold_failed_key(thread_id))
    if failed_after is None:
        return False
    since = "SELECT count(*) FROM messages WHERE thread_id = ? AND role = 'user' AND id > CAST(? AS INTEGER)"
    (questions,) = connection.execute(since, (thread_id, failed_after)).fetchone()
    return bool(questions < _TURNS_OF_REST)
