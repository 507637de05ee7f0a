"""What a process leaves that ends while it writes: replies in progress, and retries that brought nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.log import journal
from chorus_cli.core.log.acts import Subject, Undo
from chorus_cli.core.log.operations import NewOperation
from chorus_cli.storage.sqlite.log import operation_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from datetime import datetime


def mend(connection: sqlite3.Connection, is_alive: Callable[[str], bool], now: datetime) -> int:
    """Mark replies as interrupted whose process is gone, take empty retries of theirs back; return how many there were.

    Without replies in progress it costs one look at an empty index.
    """
    owners = connection.execute("SELECT DISTINCT run FROM messages WHERE status = 'streaming'").fetchall()
    gone = [run for (run,) in owners if run is None or not is_alive(run)]
    mended = 0
    for run in gone:
        found = connection.execute("SELECT id FROM messages WHERE status = 'streaming' AND run IS ?", (run,)).fetchall()
        for (id_,) in found:
            connection.execute("UPDATE messages SET status = 'interrupted' WHERE id = ?", (id_,))
            take_back_if_empty(connection, id_, now)
        mended += len(found)
    return mended


def take_back_if_empty(connection: sqlite3.Connection, reply_id: int, now: datetime) -> None:
    """Take the retry back that a reply was to come of, as if it had not been made, if no word came."""
    persona, thread_id, retry_id, content = connection.execute(
        "SELECT persona, thread_id, introduced_by, content FROM messages WHERE id = ?", (reply_id,)
    ).fetchone()
    if retry_id is None or content.strip():
        return
    if any(each.id == retry_id for each in journal.effective(operation_rows.all_of(connection, persona, thread_id))):
        new = NewOperation(persona, Undo(Subject(operation_id=retry_id)), now, thread_id, automatic=True)
        operation_rows.introduce(connection, new)
