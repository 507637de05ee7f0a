"""Views of threads without all of their rows: the number of messages in one, the newest ones, and their thoughts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rules.view import Reason, put_in, reasons_outside, view
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import input_rows, message_rows, operation_rows, thread_lists
from chorus_cli.log.rows.message_rows import counted_moment
from chorus_cli.log.rows.operation_rows import LIVE, live_values
from chorus_cli.log.rules.journal import LogMarks, thread_journal, undone
from chorus_cli.log.rules.messages import UNMEASURED, Message, Role, Thought, is_written
from chorus_cli.log.rules.threads import last_exchange

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from chorus_cli.context.rules.view import View
    from chorus_cli.log.rules.journal import ThreadJournal
    from chorus_cli.log.rules.threads import Exchange

_AT_FIRST = 8
_EVER = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)
_LIGHT = (
    "id, thread_id, COALESCE(turn_id, id), "
    "content <> '' OR tool_calls IS NOT NULL OR attachments IS NOT NULL AS is_written, "
    "timestamp, token_count, introduced_by, revises, superseded"
)
"""The columns that the rules of the view depend on."""


def _light(row: tuple[Any, ...]) -> Message:
    """Return a row as far as the rules depend on it: one that has anything in it has one character."""
    id_, thread_id, turn_id, is_written, timestamp, tokens, introduced_by, revises, superseded = row
    return Message(
        id_,
        "",
        thread_id,
        turn_id,
        Role.USER,
        "x" if is_written else "",
        counted_moment(timestamp) or _LATEST,
        token_count=tokens,
        introduced_by=introduced_by,
        revises=revises,
        superseded=bool(superseded),
    )


def _light_rows(connection: sqlite3.Connection, journal: ThreadJournal, since: datetime) -> list[Message]:
    """Return the rows that the view of a window from ``since`` is computed of, without their words."""
    cursor = connection.execute(
        f"SELECT {_LIGHT} FROM messages INDEXED BY messages_of_thread "
        f"WHERE thread_id = :thread AND timestamp > :since AND id > :after AND {message_rows.THERE} "
        f"UNION SELECT {_LIGHT} FROM messages WHERE id IN (SELECT value FROM json_each(:put_in)) "
        f"AND {message_rows.THERE}",
        {
            "thread": journal.thread_id,
            "since": timestamps.to_text(since),
            "after": journal.boundary.after_message_id if journal.boundary else 0,
            "put_in": json.dumps([*put_in(journal, since)]),
        },
    )
    return [_light(row) for row in cursor.fetchall()]


def number_in_view(connection: sqlite3.Connection, journal: ThreadJournal, since: datetime) -> int:
    """Count the messages in view of a thread whose window begins at ``since``; the cost follows the window."""
    return len(view(_light_rows(connection, journal, since), journal, since).messages)


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
    rows, boundary = _light_rows(connection, journal, earliest), journal.boundary
    said = [row.timestamp for row in _seen(rows, journal, earliest) if row.id not in put_in(journal, earliest)]
    entered = boundary.created_at if boundary and boundary.members_in(thread_id) else None
    reached = [*said, *([entered] if entered and entered > earliest else [])]
    marks = LogMarks(
        undone_turns=journal.undone_turns,
        replaced=journal.replaced,
        undone_operations=frozenset(each.operation_id for each in undone(journal.operations) if each.operation_id),
        moved_off=journal.moved_off,
    )
    newest = connection.execute(
        f"SELECT timestamp FROM (SELECT id, timestamp FROM messages WHERE thread_id = :thread AND {LIVE} "
        "ORDER BY timestamp DESC LIMIT 1) WHERE id > :after",
        {"thread": thread_id, "after": boundary.after_message_id if boundary else 0, **live_values(marks)},
    ).fetchone()
    return WindowFill(
        held=len(_seen(rows, journal, since)),
        reachable=len(_seen(rows, journal, earliest)),
        oldest=min(reached, default=None),
        last_spoken=counted_moment(newest[0] if newest else None) or entered,
    )


def _seen(rows: Sequence[Message], journal: ThreadJournal, since: datetime) -> list[Message]:
    return [row for row in view(rows, journal, since).messages if is_written(row)]


def has_older(connection: sqlite3.Connection, persona: str, thread_id: int, since: datetime) -> bool:
    """Return whether something was said in a thread since its boundary that is older than ``since``."""
    journal = thread_journal(thread_id, operation_rows.since_boundary(connection, persona, thread_id))
    given = put_in(journal, since)
    said = (row for row in _seen(_light_rows(connection, journal, _EVER), journal, _EVER) if row.id not in given)
    return any(row.timestamp <= since for row in said)


class Outside(NamedTuple):
    """A number of messages, and their tokens as far as they are counted."""

    messages: int = 0
    tokens: int = 0


def count_outside(connection: sqlite3.Connection, persona: str, thread_id: int, view: View) -> Mapping[Reason, Outside]:
    """Count the messages of a thread that the view does not reach, by reason.

    A message that was reworded is one with its wordings, and counted where it was said.
    """
    operations = operation_rows.all_of(connection, persona, thread_id)
    brought = operation_rows.said_elsewhere(connection, persona, thread_id)
    cursor = connection.execute(
        f"SELECT {_LIGHT} FROM messages WHERE thread_id = ? OR id IN (SELECT value FROM json_each(?))",
        (thread_id, json.dumps([*brought])),
    )
    rows = {row.id: row for row in map(_light, cursor.fetchall())}
    found: dict[Reason, Outside] = {}
    for id_, reason in reasons_outside(thread_id, rows.values(), operations, view).items():
        messages, tokens = found.get(reason, Outside())
        found[reason] = Outside(messages + 1, tokens + (rows[id_].token_count or 0))
    return found
