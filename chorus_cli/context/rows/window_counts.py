"""Counts of the messages that windows of a thread hold, made without reading them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.rules.view import put_in
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rows.counting_rows import LIVE, live_values
from chorus_cli.log.rows.message_columns import counted_moment
from chorus_cli.log.rules.acts import Retry
from chorus_cli.log.rules.imports import Import
from chorus_cli.log.rules.journal import thread_journal, undone
from chorus_cli.log.rules.marks import LogMarks

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

    from chorus_cli.log.rules.journal import ThreadJournal

_WRITTEN = "(content <> '' OR tool_calls IS NOT NULL OR attachments IS NOT NULL)"
# Text decides by the index and may let a row of the same second through: times may have fewer digits than six.
_EXACT = "substr(timestamp, 1, 19) || '.' || substr(rtrim(substr(timestamp, 21), 'Z') || '000000', 1, 6) || 'Z'"
_SPOKEN = f"""
    thread_id = :thread AND id > :after
    AND (introduced_by IS NULL OR introduced_by IN (SELECT value FROM json_each(:spoken_by)))
    AND (COALESCE(turn_id, id) > :after OR COALESCE(turn_id, id) IN (
        SELECT COALESCE(turn_id, id) FROM messages WHERE id IN (SELECT value FROM json_each(:members))
        AND (thread_id = :thread OR id IN (SELECT value FROM json_each(:brought)))
    ))
    AND {_WRITTEN} AND {LIVE} AND id NOT IN (SELECT value FROM json_each(:put_in))
"""
_PUT_IN = f"""
    id IN (SELECT value FROM json_each(:put_in))
    AND (thread_id = :thread OR id IN (SELECT value FROM json_each(:brought)))
    AND {_WRITTEN} AND id NOT IN (SELECT value FROM json_each(:replaced))
    AND COALESCE(turn_id, id) NOT IN (SELECT value FROM json_each(:undone_turns))
"""
"""The rules of the view in SQL: what was said since the boundary, and what operations have put in."""


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
    journal = thread_journal(thread_id, operation_rows.since_boundary(connection, persona, thread_id))
    boundary = journal.boundary
    held, _ = _held(connection, journal, since)
    reachable, oldest = _held(connection, journal, earliest)
    entered = boundary.created_at if boundary and boundary.members_in(thread_id) else None
    newest = connection.execute(
        f"SELECT timestamp FROM (SELECT id, timestamp FROM messages WHERE thread_id = :thread AND {LIVE} "
        "ORDER BY timestamp DESC LIMIT 1) WHERE id > :after",
        _values(journal, earliest) | {"undone": json.dumps(_undone(journal))},
    ).fetchone()
    said = counted_moment(newest[0] if newest else None) or entered
    in_reach = entered if entered and entered > earliest else None
    moments = [moment for moment in (counted_moment(oldest), in_reach) if moment is not None]
    return WindowFill(held, reachable, min(moments, default=None), said)


def has_older(connection: sqlite3.Connection, persona: str, thread_id: int, since: datetime) -> bool:
    """Return whether something was said in a thread since its boundary that is older than ``since``."""
    journal = thread_journal(thread_id, operation_rows.since_boundary(connection, persona, thread_id))
    row = connection.execute(
        f"SELECT EXISTS(SELECT 1 FROM messages INDEXED BY messages_of_thread WHERE timestamp <= :since AND {_SPOKEN})",
        _values(journal, since),
    ).fetchone()
    return bool(row[0])


def _held(connection: sqlite3.Connection, journal: ThreadJournal, since: datetime) -> tuple[int, str | None]:
    """Return the number of messages in a window, and the oldest time of those that were said."""
    values = _values(journal, since)
    said, oldest = connection.execute(
        "SELECT COUNT(*), MIN(timestamp) FROM messages INDEXED BY messages_of_thread "
        f"WHERE timestamp > :since AND {_EXACT} > :since AND {_SPOKEN}",
        values,
    ).fetchone()
    (entered,) = connection.execute(f"SELECT COUNT(*) FROM messages WHERE {_PUT_IN}", values).fetchone()
    return said + entered, oldest


def _values(journal: ThreadJournal, since: datetime) -> dict[str, object]:
    """Return the parameters of the rules for a window that begins at ``since``."""
    boundary = journal.boundary
    members = boundary.members_in(journal.thread_id) if boundary and boundary.created_at > since else ()
    marks = LogMarks(undone_turns=journal.undone_turns, replaced=journal.replaced, moved_off=journal.moved_off)
    return {
        **live_values(marks),
        "thread": journal.thread_id,
        "since": timestamps.to_text(since),
        "after": boundary.after_message_id if boundary else 0,
        "put_in": json.dumps([*put_in(journal, since)]),
        "members": json.dumps([*members]),
        "brought": json.dumps([*journal.brought]),
        "replaced": json.dumps([*journal.replaced]),
        "spoken_by": json.dumps([each.id for each in journal.later if isinstance(each.act, Retry | Import)]),
    }


def _undone(journal: ThreadJournal) -> list[int]:
    return [each.operation_id for each in undone(journal.operations) if each.operation_id is not None]
