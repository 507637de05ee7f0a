"""Counts of a thread's messages, made without reading them: those outside the view by reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.rules.view import Reason
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import operation_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from chorus_cli.context.rules.view import View


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
