"""Views of threads without all of their rows: the number of messages in one, the newest ones, and their thoughts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rules.view import Reason, put_in, view
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import input_rows, message_rows, operation_rows, thread_lists
from chorus_cli.log.rows.message_rows import counted_moment
from chorus_cli.log.rows.message_times import LIVE, live_values
from chorus_cli.log.rules.acts import Retry
from chorus_cli.log.rules.journal import LogMarks, thread_journal, undone
from chorus_cli.log.rules.log_acts import Import
from chorus_cli.log.rules.messages import UNMEASURED, Message, Role, Thought
from chorus_cli.log.rules.threads import last_exchange

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping

    from chorus_cli.context.rules.view import View
    from chorus_cli.log.rules.journal import ThreadJournal
    from chorus_cli.log.rules.threads import Exchange

_AT_FIRST = 8
_EVER = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)
_SHAPE = "id, thread_id, COALESCE(turn_id, id), introduced_by, superseded"


def number_in_view(connection: sqlite3.Connection, journal: ThreadJournal, since: datetime) -> int:
    """Count the messages in view of a thread whose window begins at ``since``; the cost follows the window.

    No content is read.
    """
    thread_id, boundary = journal.thread_id, journal.boundary
    cursor = connection.execute(
        f"SELECT {_SHAPE} FROM messages INDEXED BY messages_of_thread WHERE thread_id = ? AND timestamp > ? AND id > ? "
        f"AND {message_rows.THERE}",
        (thread_id, timestamps.to_text(since), boundary.after_message_id if boundary else 0),
    )
    rows = [_shape(*row) for row in cursor]
    if by_operations := put_in(journal, since):
        ids = json.dumps(list(by_operations))
        cursor = connection.execute(
            f"SELECT {_SHAPE} FROM messages WHERE id IN (SELECT value FROM json_each(?)) AND {message_rows.THERE}",
            (ids,),
        )
        rows += [_shape(*row) for row in cursor]
    return len(view(rows, journal, since).messages)


def _shape(id_: int, thread_id: int, turn_id: int, introduced_by: int | None, superseded: int) -> Message:
    """Return a row as far as the view depends on it; it is younger than the window, or its age does not matter."""
    return Message(
        id_, "", thread_id, turn_id, Role.USER, "", _LATEST, introduced_by=introduced_by, superseded=bool(superseded)
    )


def newest_in_context(connection: sqlite3.Connection, journal: ThreadJournal) -> tuple[Message, ...]:
    """Return the last messages of a thread that an operation has not taken out, whatever their age.

    They are the end of the view of a window without limits, with the whole of its last turn.
    """
    for seen in _ends_of_view(connection, journal):
        if seen and seen[0].turn_id != seen[-1].turn_id:
            break
    return seen


def _ends_of_view(connection: sqlite3.Connection, journal: ThreadJournal) -> Iterator[tuple[Message, ...]]:
    """Yield ends of the view of a window without limits, made of four times as many rows each; the last is all of it.

    The first message of the others may be in the middle of its turn.
    """
    thread_id, after = journal.thread_id, journal.boundary.after_message_id if journal.boundary else 0
    number = _AT_FIRST
    while True:
        newest = thread_lists.newest_ids(connection, thread_id, after, number)
        members = [id_ for each in journal.operations for id_ in each.members_in(thread_id)[-number:]]
        rows = message_rows.rows(connection, {*newest, *members})
        yield view(rows, journal, _EVER).messages
        if len(newest) < number:
            return
        number *= 4


def newest_thoughts_of(connection: sqlite3.Connection, persona: str, thread_id: int) -> list[tuple[Thought, str]]:
    """Return the thoughts of the newest turn that has any and counts, whatever its age, reply by reply.

    The text is empty where the provider does not show them.
    """
    found: list[tuple[Message, str]] = []
    journal = thread_journal(thread_id, operation_rows.since_boundary(connection, persona, thread_id))
    after = journal.boundary.after_message_id if journal.boundary else 0
    members = {id_ for each in journal.operations for id_ in each.members_in(thread_id)}
    # A view of all of a long thread takes a second.
    if not snapshot_rows.has_any(connection, thread_id, after, members):
        return []
    for seen in _ends_of_view(connection, journal):
        read = snapshot_rows.of_replies(connection, (row.id for row in seen if row.thought is not None))
        found = [(row, read[row.id].text if row.id in read else "") for row in seen if row.thought is not None]
        if found and found[-1][0].turn_id != seen[0].turn_id:
            break
    return [(row.thought or UNMEASURED, text) for row, text in found if row.turn_id == found[-1][0].turn_id]


def last_exchange_of(connection: sqlite3.Connection, persona: str, thread_id: int) -> Exchange | None:
    """Return the last turn of a thread that counts, whatever its age; ``None`` if there is none."""
    operations = operation_rows.since_boundary(connection, persona, thread_id)
    return last_exchange(newest_in_context(connection, thread_journal(thread_id, operations)))


def read_on_arrival(connection: sqlite3.Connection, persona: str, thread_id: int) -> None:
    """Read what a chat shows without being asked and does without if it is damaged."""
    last_exchange_of(connection, persona, thread_id)
    input_rows.newest(connection, persona)
    # Imports may have brought thousands of closed ones.
    connection.execute("SELECT title FROM threads WHERE persona = ? AND closed_at IS NULL", (persona,)).fetchall()


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
