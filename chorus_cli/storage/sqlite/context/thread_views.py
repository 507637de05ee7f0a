"""Views of threads without all of their rows: the number of messages in one, and the newest ones of any age."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from chorus_cli.core.context.view import put_in, view
from chorus_cli.core.log import journal
from chorus_cli.core.log.acts import Retry
from chorus_cli.core.log.threads import last_exchange
from chorus_cli.core.time import timestamps
from chorus_cli.storage.sqlite.log import message_rows, operation_rows, thread_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.log.operations import Operation
    from chorus_cli.core.log.threads import Exchange

_AT_FIRST = 8
_EVER = datetime.min.replace(tzinfo=UTC)

_IN_VIEW = """
WITH
    put_in(id) AS (SELECT value FROM json_each(:put_in)),
    out_of_it(id) AS (SELECT value FROM json_each(:replaced)),
    undone(turn) AS (SELECT value FROM json_each(:undone_turns)),
    entered(turn) AS (
        SELECT COALESCE(turn_id, id) FROM messages WHERE id IN (SELECT value FROM json_each(:members))
    )
SELECT (
    SELECT COUNT(*) FROM messages INDEXED BY messages_of_thread
    WHERE thread_id = :thread AND timestamp > :since AND id > :after
        AND id NOT IN put_in AND id NOT IN out_of_it
        AND (introduced_by IS NULL OR introduced_by IN (SELECT value FROM json_each(:retries)))
        AND COALESCE(turn_id, id) NOT IN undone
        AND (COALESCE(turn_id, id) > :after OR COALESCE(turn_id, id) IN entered)
) + (
    SELECT COUNT(*) FROM messages
    WHERE id IN put_in AND (thread_id = :thread OR id IN (SELECT value FROM json_each(:brought)))
        AND id NOT IN out_of_it AND COALESCE(turn_id, id) NOT IN undone
)
"""
"""The rule of the view in SQL."""


def number_in_view(
    connection: sqlite3.Connection, thread_id: int, operations: Sequence[Operation], since: datetime
) -> int:
    """Count the messages in view of a thread whose window begins at ``since``; the cost follows the window.

    ``operations`` concern the thread and reach back to its boundary.
    """
    boundary = journal.boundary(operations)
    later = [each for each in journal.effective(operations) if boundary is None or each.id > boundary.id]
    members = boundary.members_in(thread_id) if boundary and boundary.created_at > since else ()
    counting = [*([boundary] if boundary else []), *later]
    (number,) = connection.execute(
        _IN_VIEW,
        {
            "thread": thread_id,
            "since": timestamps.to_text(since),
            "after": boundary.after_message_id if boundary else 0,
            "put_in": json.dumps(list(put_in(thread_id, operations, since))),
            "brought": json.dumps([id_ for each in counting for id_ in each.brought_into(thread_id)]),
            "members": json.dumps(members),
            "replaced": json.dumps(list(journal.replaced(later))),
            "retries": json.dumps([each.id for each in later if isinstance(each.act, Retry)]),
            "undone_turns": json.dumps(_undone_turns(operations, boundary)),
        },
    ).fetchone()
    return int(number)


def newest_in_context(
    connection: sqlite3.Connection, thread_id: int, operations: Sequence[Operation], number: int = _AT_FIRST
) -> tuple[Message, ...]:
    """Return the last messages of a thread that an operation has not taken out, whatever their age.

    They are the end of the view of a window without limits, with the whole of its last turn. Of the thread's newest
    rows ``number`` are read, and four times as many until that is complete.
    """
    boundary = journal.boundary(operations)
    after = boundary.after_message_id if boundary else 0
    while True:
        newest = thread_rows.newest_ids(connection, thread_id, after, number)
        members = [id_ for each in operations for id_ in each.members_in(thread_id)[-number:]]
        rows = message_rows.rows(connection, {*newest, *members})
        seen = view(thread_id, rows, operations, _EVER).messages
        if len(newest) < number or (seen and seen[0].turn_id != seen[-1].turn_id):
            return seen
        number *= 4


def last_exchange_of(connection: sqlite3.Connection, persona: str, thread_id: int) -> Exchange | None:
    """Return the last turn of a thread that counts, whatever its age; ``None`` if there is none."""
    operations = operation_rows.since_boundary(connection, persona, thread_id)
    return last_exchange(newest_in_context(connection, thread_id, operations))


def _undone_turns(operations: Sequence[Operation], boundary: Operation | None) -> list[int]:
    after = boundary.id if boundary else 0
    return [
        subject.turn_id
        for subject, newest in journal.latest_reversals(operations).items()
        if subject.turn_id is not None and journal.is_undo(newest) and newest.id > after
    ]
