"""Lists of threads, and the newest rows of one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows, operation_rows, search_index
from chorus_cli.log.rows.message_rows import counted_moment
from chorus_cli.log.rows.operation_rows import DETAIL
from chorus_cli.log.rows.thread_rows import FIRST_WORDS, OWN, ThreadKey
from chorus_cli.log.rules.acts import ACTS, Fork, Restore
from chorus_cli.log.rules.threads import Thread

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from chorus_cli.log.rows.search_index import Scope
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.log.rules.search_query import SearchQuery

_UNREADABLE = datetime.min.replace(tzinfo=UTC)


def newest_messages(connection: sqlite3.Connection, persona: str, thread_id: int, number: int) -> list[Message]:
    """Return the newest messages of a thread of a persona, in the order of the log."""
    rows = message_rows.rows(connection, newest_ids(connection, thread_id, 0, number))
    return [row for row in rows if row.persona == persona]


def newest_ids(connection: sqlite3.Connection, thread_id: int, after: int, number: int) -> list[int]:
    """Return the newest rows of a thread with larger ids than ``after``, at most ``number``, by time."""
    found = connection.execute(
        "SELECT id FROM messages INDEXED BY messages_of_thread WHERE thread_id = ? AND id > ? "
        f"AND {message_rows.THERE} ORDER BY timestamp DESC, id DESC LIMIT ?",
        (thread_id, after, number),
    )
    return [id_ for (id_,) in found]


def all_threads(connection: sqlite3.Connection, persona: str) -> list[Thread]:
    """Return the threads of a persona, also closed ones, oldest first; not those of an earlier one of its folder."""
    withdrawn = withdrawn_threads(connection, persona, operation_rows.undone_imports(connection, persona))
    found = _threads(connection, persona)
    return [each for each in found if each.id not in withdrawn or each.closed_at is None]


def open_threads(connection: sqlite3.Connection, persona: str) -> list[Thread]:
    """Return the open threads of a persona, oldest first."""
    return _threads(connection, persona, "AND closed_at IS NULL")


class TitledThread(NamedTuple):
    """A thread whose title was found, and the title with the matches marked."""

    id: int
    persona: str
    number: int
    is_closed: bool
    excerpt: str


def titled(connection: sqlite3.Connection, query: SearchQuery, scope: Scope) -> list[TitledThread]:
    """Return the threads whose title contains the query, newest first; with a time only those with a message since."""
    rows = connection.execute(
        "SELECT id, persona, COALESCE(number, id), closed_at IS NOT NULL, title FROM threads "
        "WHERE title <> '' AND (:persona IS NULL OR persona = :persona) AND (:since IS NULL OR EXISTS ("
        "SELECT 1 FROM messages WHERE thread_id = threads.id AND timestamp > :since)) ORDER BY id DESC",
        {"persona": scope.persona, "since": timestamps.to_text(scope.since) if scope.since else None},
    ).fetchall()
    withdrawn = {
        id_
        for persona in {row[1] for row in rows}
        for id_ in withdrawn_threads(connection, persona, operation_rows.undone_imports(connection, persona))
    }
    titles = {id_: title for id_, *_, title in rows if all(literal in title for literal in query.literals)}
    found = search_index.excerpts(titles, query)
    return [
        TitledThread(id_, persona, number, bool(is_closed), found[id_])
        for id_, persona, number, is_closed, _ in rows
        if id_ in found and not (is_closed and id_ in withdrawn)
    ]


def withdrawn_threads(connection: sqlite3.Connection, persona: str, undone: Iterable[int]) -> set[int]:
    """Return the threads in which there is nothing but messages of these undone imports, by their ids."""
    if not undone:
        return set()
    found = connection.execute(
        "SELECT thread_id FROM imported_conversations "
        "WHERE persona = :persona AND operation_id IN (SELECT value FROM json_each(:undone)) "
        "AND NOT EXISTS (SELECT 1 FROM messages INDEXED BY messages_of_thread "
        "WHERE messages.thread_id = imported_conversations.thread_id "
        "AND (introduced_by IS NULL OR introduced_by NOT IN (SELECT value FROM json_each(:undone))))",
        {"persona": persona, "undone": json.dumps([*undone])},
    )
    return {thread_id for (thread_id,) in found}


def titles_in_context(
    connection: sqlite3.Connection, persona: str, active_thread_id: int, since: datetime
) -> dict[ThreadKey, str]:
    """Return the titles of the open threads that may have messages in context, always with the active one.

    The cost grows with the window and the operations, not with the number of threads or messages.
    """
    found = connection.execute(
        "SELECT thread_id, COALESCE(number, thread_id), COALESCE(title, '') FROM ("
        "SELECT :active AS thread_id "
        "UNION SELECT thread_id FROM messages INDEXED BY messages_of_persona "
        "WHERE persona = :persona AND timestamp > :since "
        "UNION SELECT messages.thread_id FROM operations "
        "JOIN operation_members ON operation_id = operations.id JOIN messages ON messages.id = message_id "
        "WHERE operations.persona = :persona "
        "AND (operations.created_at > :since OR kind NOT IN (SELECT value FROM json_each(:boundaries))) "
        # A fork, or a restore of one, puts messages of one thread into another.
        f"UNION SELECT thread_id FROM operations WHERE persona = :persona AND kind = '{Fork.kind}' "
        "AND created_at > :since "
        "UNION SELECT json_extract(threads.value, '$[0]') "
        f"FROM operations, json_each({DETAIL}, '$.threads') AS threads "
        f"WHERE persona = :persona AND kind = '{Restore.kind}' AND created_at > :since"
        ") LEFT JOIN threads ON threads.id = thread_id WHERE closed_at IS NULL OR thread_id = :active "
        "ORDER BY thread_id",
        {
            "persona": persona,
            "active": active_thread_id,
            "since": timestamps.to_text(since),
            "boundaries": json.dumps([kind for kind, act in ACTS.items() if act.is_boundary]),
        },
    ).fetchall()
    return {ThreadKey(thread_id, number): title for thread_id, number, title in found}


def _threads(connection: sqlite3.Connection, persona: str, condition: str = "") -> list[Thread]:
    found = connection.execute(
        "SELECT id, number, title, "
        f"CASE WHEN title = '' THEN {FIRST_WORDS.format(thread='threads.id')} END, "
        "created_at, closed_at, (SELECT COUNT(*) FROM messages WHERE thread_id = threads.id AND purged_by IS NULL), "
        "(SELECT MAX(timestamp) FROM messages WHERE thread_id = threads.id) "
        f"FROM threads WHERE persona = :persona AND {OWN} {condition} "
        "ORDER BY id",
        {"persona": persona},
    ).fetchall()
    left_out = operation_rows.left_out_by_imports(connection, persona) if found else {}
    return [
        Thread(
            id_,
            number,
            title,
            first_words or "",
            created_at=counted_moment(created_at) or _UNREADABLE,
            closed_at=(counted_moment(closed_at) or _UNREADABLE) if closed_at else None,
            messages=messages - left_out.get(id_, 0),
            last_spoken=counted_moment(last_spoken),
        )
        for id_, number, title, first_words, created_at, closed_at, messages, last_spoken in found
    ]
