"""Views of threads without all of their rows: the number of messages in one, the newest ones, and their thoughts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from chorus_cli.context.rows import thought_rows
from chorus_cli.context.rules.view import put_in, view
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import input_rows, message_rows, operation_rows, thread_rows
from chorus_cli.log.rules.journal import thread_journal
from chorus_cli.log.rules.messages import UNMEASURED, Message, Role, Thought
from chorus_cli.log.rules.threads import last_exchange

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

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
        newest = thread_rows.newest_ids(connection, thread_id, after, number)
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
    if not thought_rows.has_any(connection, thread_id, after, members):
        return []
    for seen in _ends_of_view(connection, journal):
        read = thought_rows.of_replies(connection, (row.id for row in seen if row.thought is not None))
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
