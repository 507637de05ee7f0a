"""Counts of a thread's messages, made without reading them: those outside the view by reason, and those of a window."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.context.view import Reason, put_in
from chorus_cli.core.log import journal
from chorus_cli.core.log.imports import Import
from chorus_cli.core.time import timestamps
from chorus_cli.storage.sqlite.log import operation_rows
from chorus_cli.storage.sqlite.log.message_columns import counted_moment

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from datetime import datetime

    from chorus_cli.core.context.view import View


class Outside(NamedTuple):
    """A number of messages, and their tokens as far as they are counted."""

    messages: int = 0
    tokens: int = 0


_BY_REASON = """
WITH RECURSIVE
    known(id) AS (
        SELECT value FROM json_each(:in_view)
        UNION SELECT revises FROM known JOIN messages USING (id) WHERE revises IS NOT NULL
    ),
    brought(id) AS (SELECT value FROM json_each(:brought)),
    entered(id) AS (
        SELECT value FROM json_each(:entered)
        UNION SELECT revises FROM entered JOIN messages USING (id) WHERE revises IS NOT NULL
    ),
    entered_turns(id) AS (SELECT COALESCE(turn_id, id) FROM entered JOIN messages USING (id)),
    undone(id) AS (SELECT value FROM json_each(:undone)),
    lasting(id) AS (
        SELECT message_id FROM operation_members JOIN operations ON operations.id = operation_id
        WHERE (thread_id = :thread OR thread_id IS NULL) AND operation_id NOT IN undone
    )
SELECT
    CASE
        WHEN id IN entered THEN 'AGE'
        WHEN thread_id <> :thread THEN 'BOUNDARY'
        WHEN (introduced_by, id) IN (SELECT operation_id, message_id FROM operation_members)
            AND id NOT IN lasting THEN 'WITHDRAWN'
        WHEN id <= :after OR introduced_by < :boundary THEN 'BOUNDARY'
        WHEN COALESCE(turn_id, id) <= :after AND COALESCE(turn_id, id) NOT IN entered_turns THEN 'BOUNDARY'
        WHEN introduced_by IN undone AND timestamp > :since THEN 'TAKEN_BACK'
        ELSE 'AGE'
    END AS reason,
    COUNT(*),
    COALESCE(SUM(token_count), 0)
FROM messages
WHERE (thread_id = :thread OR id IN brought)
AND (content <> '' OR tool_calls IS NOT NULL OR attachments IS NOT NULL) AND id NOT IN known
    AND (revises IS NULL OR (thread_id <> :thread AND revises NOT IN brought))
GROUP BY reason
"""
"""The rule ``reasons_outside`` of the view in SQL, under the names of ``Reason``."""


def count_outside(connection: sqlite3.Connection, persona: str, thread_id: int, view: View) -> Mapping[Reason, Outside]:
    """Count the messages of a thread that the view does not reach, by reason.

    A message that was reworded is one with its wordings, and counted where it was said.
    """
    in_view = [row.id for row in (*view.messages, *view.taken_back)]
    undone = operation_rows.undone(connection, persona, thread_id)
    boundary = view.boundary
    found = connection.execute(
        _BY_REASON,
        {
            "thread": thread_id,
            "in_view": json.dumps(in_view),
            "undone": json.dumps(list(undone)),
            "brought": json.dumps([*operation_rows.said_elsewhere(connection, persona, thread_id)]),
            "entered": json.dumps(operation_rows.put_in_by(connection, boundary, thread_id) if boundary else ()),
            "boundary": boundary.id if boundary else 0,
            "after": boundary.after_message_id if boundary else 0,
            "since": timestamps.to_text(view.cutoff),
        },
    )
    return {Reason[name]: Outside(messages, tokens) for name, messages, tokens in found}


class WindowFill(NamedTuple):
    """The messages since the boundary: those in the window, those that the widest window reaches, the oldest of them.

    What an edit or a restore put into the context counts as old as that operation; what a later operation keeps there
    counts as young. ``last_spoken`` is ``None`` when nothing was said since the boundary and it put nothing in.
    """

    held: int
    reachable: int
    oldest: datetime | None
    last_spoken: datetime | None


def window_fill(
    connection: sqlite3.Connection, persona: str, thread_id: int, since: datetime, earliest: datetime
) -> WindowFill:
    """Count what is younger than ``since`` and than ``earliest``; the cost follows the latter, never the log."""
    operations = operation_rows.since_boundary(connection, persona, thread_id)
    boundary, within_reach = journal.boundary(operations), put_in(thread_id, operations, earliest)
    values = {
        "thread_id": thread_id,
        "since": timestamps.to_text(since),
        "earliest": timestamps.to_text(earliest),
        "after": boundary.after_message_id if boundary else 0,
        "put_in": json.dumps(list(within_reach)),
        "imports": json.dumps([each.id for each in journal.effective(operations) if isinstance(each.act, Import)]),
    }
    reachable, held, oldest = connection.execute(
        "SELECT COUNT(*), COALESCE(SUM(timestamp > :since), 0), MIN(timestamp) FROM messages "
        "INDEXED BY messages_of_thread WHERE thread_id = :thread_id AND timestamp > :earliest AND id > :after "
        "AND (introduced_by IS NULL OR introduced_by IN (SELECT value FROM json_each(:imports)) AND NOT superseded) "
        "AND (content <> '' OR attachments IS NOT NULL) AND id NOT IN (SELECT value FROM json_each(:put_in))",
        values,
    ).fetchone()
    held += len(put_in(thread_id, operations, since))
    reachable += len(within_reach)
    entered = boundary.created_at if boundary and boundary.members_in(thread_id) else None
    newest = connection.execute(
        "SELECT timestamp FROM (SELECT id, timestamp FROM messages WHERE thread_id = :thread_id "
        "ORDER BY timestamp DESC LIMIT 1) WHERE id > :after",
        values,
    ).fetchone()
    said = counted_moment(newest[0] if newest else None) or entered
    in_reach = entered if entered and entered > earliest else None
    moments = [moment for moment in (counted_moment(oldest), in_reach) if moment is not None]
    return WindowFill(held, reachable, min(moments, default=None), said)


def has_older(connection: sqlite3.Connection, thread_id: int, after: int, since: datetime) -> bool:
    """Return whether a thread has a message with a larger id than ``after`` that is older than ``since``."""
    row = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM messages INDEXED BY messages_of_thread "
        "WHERE thread_id = ? AND timestamp <= ? AND id > ? AND content <> '')",
        (thread_id, timestamps.to_text(since), after),
    ).fetchone()
    return bool(row[0])
