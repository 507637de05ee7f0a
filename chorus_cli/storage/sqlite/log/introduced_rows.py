"""Messages that an operation puts into the log: rewordings, messages of foreign sessions, the reply of a retry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.core.log.messages import Message, NewMessage, Role, Status
from chorus_cli.core.time import timestamps
from chorus_cli.storage.sqlite.log import message_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from chorus_cli.core.log.operations import Operation


def store_members(
    connection: sqlite3.Connection, persona: str, operation_id: int, members: Sequence[int | NewMessage]
) -> list[int]:
    """Store the members that are new, and return the ids of all in their order."""
    known = message_rows.turns_of(connection, [member for member in members if isinstance(member, int)])
    turn_of_thread: dict[int, int] = {}
    ids: list[int] = []
    for member in members:
        if isinstance(member, int):
            # One that is not in the log is refused by the database itself.
            id_, (thread_id, turn_id) = member, known.get(member, (0, member))
        else:
            previous = None if member.role is Role.USER else turn_of_thread.get(member.thread_id)
            thread_id, chosen = member.thread_id, member.turn_id or previous
            id_ = _insert(connection, persona, operation_id, replace(member, turn_id=chosen), None)
            turn_id = chosen or id_
        turn_of_thread[thread_id] = turn_id
        ids.append(id_)
    return ids


def open_retry(connection: sqlite3.Connection, question: Message, retry: Operation, model: str, run: str) -> Message:
    """Store the empty reply that process ``run`` is going to write, once more, in the turn of ``question``."""
    empty = NewMessage(
        question.thread_id,
        Role.ASSISTANT,
        "",
        retry.created_at,
        question.turn_id,
        model=model,
        status=Status.STREAMING,
    )
    id_ = _insert(connection, question.persona, retry.id, empty, run)
    message_rows.store_token_counts(connection, {id_: 0})
    return message_rows.rows(connection, [id_])[0]


def _insert(connection: sqlite3.Connection, persona: str, operation_id: int, new: NewMessage, run: str | None) -> int:
    timestamp = timestamps.to_text(new.timestamp)
    cursor = connection.execute(
        "INSERT INTO messages(persona, thread_id, turn_id, role, content, preamble, tool_calls, tool_call_id, "
        "timestamp, status, run, model, introduced_by, revises, checksum) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            persona,
            new.thread_id,
            new.turn_id,
            new.role,
            new.content,
            new.preamble,
            new.tool_calls,
            new.tool_call_id,
            timestamp,
            new.status,
            run,
            new.model,
            operation_id,
            new.revises,
            message_rows.checksum(new.role, new.thread_id, persona, timestamp, new.content),
        ),
    )
    return int(cursor.lastrowid or 0)
