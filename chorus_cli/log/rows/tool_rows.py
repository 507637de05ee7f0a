"""Calls of tools and their results, as rows of the turn that they belong to.

From the question to the last reply one row of the turn is always in progress: the reply, or the call whose tool is at
work. So a turn that another process looks at is never taken for ended, and what a killed process leaves is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.log.rows import message_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from chorus_cli.log.rules.messages import Message, MessageContent, Thoughts


def begin_call(
    connection: sqlite3.Connection, reply: Message, thoughts: Thoughts, call: MessageContent
) -> list[Message]:
    """Store the end of a reply and the first of the calls it ends with, in progress; return both rows."""
    message_rows.update_reply(connection, reply, thoughts)
    return message_rows.rows(connection, [reply.id, _follow(connection, reply, call)])


def end_call(connection: sqlite3.Connection, call: Message, following: Sequence[MessageContent]) -> list[Message]:
    """Store the end of a call and the rows that follow it, of which the last is in progress; return all of them."""
    connection.execute(
        "UPDATE messages SET status = 'complete' WHERE id = ? AND run IS ? AND status = 'streaming'",
        (call.id, call.run),
    )
    stored = [_follow(connection, call, content) for content in following]
    return message_rows.rows(connection, [call.id, *stored])


def _follow(connection: sqlite3.Connection, before: Message, content: MessageContent) -> int:
    """Store a row of the same turn, process and retry."""
    return message_rows.insert_row(
        connection, before.persona, content, introduced_by=before.introduced_by, run=before.run
    )
