"""What of a thread is not in its view, counted by reason without reading it: each message once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.time import timestamps
from chorus_cli.storage.sqlite.log import operation_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from chorus_cli.core.context.view import View


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A number of messages, and their tokens as far as they are counted."""

    messages: int = 0
    tokens: int = 0


_BY_REASON = """
WITH RECURSIVE
    known(id) AS (
        SELECT value FROM json_each(:in_view)
        UNION SELECT revises FROM known JOIN messages USING (id) WHERE revises IS NOT NULL
    ),
    entered(id) AS (
        SELECT message_id FROM operation_members WHERE operation_id = :base
        UNION SELECT revises FROM entered JOIN messages USING (id) WHERE revises IS NOT NULL
    ),
    entered_turns(id) AS (SELECT COALESCE(turn_id, id) FROM entered JOIN messages USING (id)),
    undone(id) AS (SELECT value FROM json_each(:undone)),
    lasting(id) AS (SELECT message_id FROM operation_members WHERE operation_id NOT IN undone)
SELECT
    CASE
        WHEN id IN entered THEN 'age'
        WHEN (introduced_by, id) IN (SELECT operation_id, message_id FROM operation_members)
            AND id NOT IN lasting THEN 'withdrawn'
        WHEN id <= :after OR introduced_by < :base THEN 'boundary'
        WHEN COALESCE(turn_id, id) <= :after AND COALESCE(turn_id, id) NOT IN entered_turns THEN 'boundary'
        WHEN introduced_by IN undone AND timestamp > :since THEN 'taken back'
        ELSE 'age'
    END AS reason,
    COUNT(*),
    COALESCE(SUM(token_count), 0)
FROM messages
WHERE thread_id = :thread AND (content <> '' OR tool_calls IS NOT NULL) AND revises IS NULL AND id NOT IN known
GROUP BY reason
"""


def left_out(connection: sqlite3.Connection, persona: str, thread_id: int, view: View) -> Mapping[str, LeftOut]:
    """Count what the view does not reach, by reason; where several hold, by the first of them.

    ``withdrawn`` is what an edit or a restore had put into the log and nothing that counts still does, ``boundary``
    what is before the base, ``taken back`` another reply that was taken back, ``age`` what is before the window.
    What an edit or a restore put into the context is before the base, but it leaves by age. A message that was
    reworded is one with its wordings, and counted where it was said.
    """
    in_view = [row.id for row in (*view.messages, *view.taken_back)]
    undone = operation_rows.undone(connection, persona, thread_id)
    found = connection.execute(
        _BY_REASON,
        {
            "thread": thread_id,
            "in_view": json.dumps(in_view),
            "undone": json.dumps(list(undone)),
            "base": view.base.id if view.base else 0,
            "after": view.base.after_message_id if view.base else 0,
            "since": timestamps.to_text(view.cutoff),
        },
    )
    return {reason: LeftOut(messages, tokens) for reason, messages, tokens in found}
