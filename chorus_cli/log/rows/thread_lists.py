"""Lists of threads, and the newest rows of a thread."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import found_messages, message_rows, operation_rows
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rows.message_rows import counted_moment
from chorus_cli.log.rows.thread_rows import FIRST_WORDS, OWN
from chorus_cli.log.rules.search_query import SearchQuery
from chorus_cli.log.rules.threads import Thread, TitledThread
from chorus_cli.storage.port import Connection

_UNREADABLE = datetime.min.replace(tzinfo=UTC)


def newest_ids(connection: Connection, thread_id: int, after: int, number: int) -> list[int]:
    """Return the ids of at most ``number`` rows of a thread, newest time first; only ids above ``after`` count."""
    found = connection.execute(
        "SELECT id FROM messages INDEXED BY messages_of_thread WHERE thread_id = ? AND id > ? "
        f"AND {message_rows.THERE} ORDER BY timestamp DESC, id DESC LIMIT ?",
        (thread_id, after, number),
    )
    return [id_ for (id_,) in found]


def all_threads(connection: Connection, persona: str) -> list[Thread]:
    """Return a persona's threads, oldest first, without closed threads that have only messages of undone imports."""
    withdrawn = withdrawn_threads(connection, persona)
    found = _threads(connection, persona)
    return [each for each in found if each.id not in withdrawn or each.closed_at is None]


def open_threads(connection: Connection, persona: str) -> list[Thread]:
    """Return the open threads of a persona, oldest first."""
    return _threads(connection, persona, "AND closed_at IS NULL")


def titled(connection: Connection, query: SearchQuery, scope: Scope) -> list[TitledThread]:
    """Return the threads whose title has all terms, newest first; if ``scope`` has times, a message must be in them."""
    if query.roles:
        return []
    since, until = (timestamps.to_text(each) if each else "" for each in (scope.since, scope.until))
    rows = connection.execute(
        "SELECT id, persona, COALESCE(number, id), closed_at IS NOT NULL, title FROM threads "
        "WHERE title <> '' AND (:persona IS NULL OR persona = :persona) AND (:since || :until = '' OR EXISTS ("
        "SELECT 1 FROM messages WHERE thread_id = threads.id AND timestamp > :since "
        "AND (:until = '' OR timestamp <= :until))) ORDER BY id DESC",
        {"persona": scope.persona, "since": since, "until": until},
    ).fetchall()
    withdrawn = {id_ for persona in {row[1] for row in rows} for id_ in withdrawn_threads(connection, persona)}
    with_all = query._replace(words=(), required=query.terms)
    found = found_messages.found_in({id_: title for id_, *_, title in rows}, with_all)
    return [
        TitledThread(id_, persona, number, bool(is_closed), found[id_])
        for id_, persona, number, is_closed, _ in rows
        if id_ in found and not (is_closed and id_ in withdrawn)
    ]


def withdrawn_threads(connection: Connection, persona: str) -> set[int]:
    """Return the ids of the threads that have only messages of undone imports."""
    undone = operation_rows.undone_imports(connection, persona)
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


def open_titles(connection: Connection, persona: str, active_thread_id: int) -> dict[int, str]:
    """Return, by id, the titles of a persona's open threads and of the active thread, oldest first."""
    found = "SELECT id, title FROM threads WHERE (persona = ? AND closed_at IS NULL) OR id = ? ORDER BY id"
    return dict(connection.execute(found, (persona, active_thread_id)).fetchall())


def _threads(connection: Connection, persona: str, condition: str = "") -> list[Thread]:
    found = connection.execute(
        "SELECT id, number, title, "
        f"CASE WHEN title = '' THEN {FIRST_WORDS.format(thread='threads.id')} END, "
        "created_at, closed_at, "
        "(SELECT COUNT(*) FROM messages WHERE thread_id = threads.id AND purged_by IS NULL "
        f"AND {operation_rows.NOT_OFF}), "
        "(SELECT MAX(timestamp) FROM messages WHERE thread_id = threads.id) "
        f"FROM threads WHERE persona = :persona AND {OWN} {condition} "
        "ORDER BY id",
        {"persona": persona, **operation_rows.moves(connection, persona)},
    ).fetchall()
    return [
        Thread(
            id_,
            number,
            title,
            first_words or "",
            created_at=counted_moment(created_at) or _UNREADABLE,
            closed_at=(counted_moment(closed_at) or _UNREADABLE) if closed_at else None,
            messages=messages,
            last_spoken=counted_moment(last_spoken),
        )
        for id_, number, title, first_words, created_at, closed_at, messages, last_spoken in found
    ]
