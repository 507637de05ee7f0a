"""What a process leaves that ends while it writes: replies in progress, and retries that brought nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core import operations as journal
from chorus_cli.core.operations import Kind, Target
from chorus_cli.storage import operation_log
from chorus_cli.storage.operation_log import NewOperation

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from datetime import datetime

    from chorus_cli.core.operations import Operation


def mend(connection: sqlite3.Connection, is_alive: Callable[[str], bool], now: datetime) -> int:
    """Mark replies as interrupted whose process is gone, take empty retries of theirs back; return how many there were.

    Without replies in progress it costs one look at an empty index.
    """
    owners = connection.execute("SELECT DISTINCT run FROM messages WHERE status = 'streaming'").fetchall()
    gone = [run for (run,) in owners if run is None or not is_alive(run)]
    mended = 0
    for run in gone:
        found = connection.execute(
            "SELECT id, persona, thread_id, introduced_by FROM messages WHERE status = 'streaming' AND run IS ?", (run,)
        ).fetchall()
        for id_, persona, thread_id, introduced_by in found:
            connection.execute("UPDATE messages SET status = 'interrupted' WHERE id = ?", (id_,))
            if introduced_by is not None:
                _take_back_if_empty(connection, persona, thread_id, introduced_by, now)
        mended += len(found)
    return mended


def take_back_if_empty(connection: sqlite3.Connection, persona: str, retry: Operation, now: datetime) -> None:
    """Take a retry back, as if it had not been made, if no word came of it."""
    _take_back_if_empty(connection, persona, retry.thread_id or 0, retry.id, now)


def _take_back_if_empty(
    connection: sqlite3.Connection, persona: str, thread_id: int, operation_id: int, now: datetime
) -> None:
    (said,) = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM messages WHERE introduced_by = ? AND TRIM(content) <> '' AND thread_id = ?)",
        (operation_id, thread_id),
    ).fetchone()
    counting = {each.id for each in journal.effective(operation_log.all_of(connection, persona, thread_id))}
    if said or operation_id not in counting:
        return
    target = Target(operation_id=operation_id)
    operation_log.introduce(
        connection, NewOperation(persona, Kind.UNDO, now, thread_id=thread_id, target=target, automatic=True)
    )
