"""Cleans up after killed processes and failed writes: replies still in progress, and retries that brought no reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Subject, Undo
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection


class Mended(NamedTuple):
    """Ids of the rows that were marked ``interrupted``, and of the rows that are still ``in_progress``."""

    interrupted: tuple[int, ...]
    in_progress: tuple[int, ...]


def mark_interrupted(
    connection: Connection, is_alive: Callable[[str], bool], now: datetime, given_up: Collection[int] = ()
) -> Mended:
    """Mark replies and calls of ended processes as interrupted, and undo their retries that brought no reply.

    Do the same for the rows ``given_up``, whose end a live process could not write. Keep the threads of ended processes
    for `take_broken_off`. If nothing is in progress, this only reads an empty index.
    """
    found = connection.execute("SELECT id, run FROM messages WHERE status = 'streaming'").fetchall()
    owners = {run: run is not None and is_alive(run) for run in {run for _, run in found}}
    ended = tuple(id_ for id_, run in found if not owners[run] or id_ in given_up)
    for id_ in ended:
        connection.execute("UPDATE messages SET status = 'interrupted' WHERE id = ?", (id_,))
        take_back_if_empty(connection, id_, now)
    if dead := [id_ for id_, run in found if not owners[run]]:
        kept = connection.execute(
            "SELECT thread_id FROM messages WHERE id IN (SELECT value FROM json_each(?)) "
            "UNION SELECT value FROM json_each(?)",
            (json.dumps(dead), meta_rows.value(connection, meta_rows.BROKEN_OFF_THREADS) or "[]"),
        )
        meta_rows.store(connection, meta_rows.BROKEN_OFF_THREADS, json.dumps([id_ for (id_,) in kept]))
    return Mended(ended, tuple(id_ for id_, _ in found if id_ not in ended))


class Interrupted(NamedTuple):
    """An interrupted reply: its question, and the model that wrote words of it, ``None`` if no word came."""

    question: str
    model: str | None


class BrokenOff(NamedTuple):
    """A reply that broke off because its process ended; ``model`` is ``None`` if no word came."""

    persona: str
    thread_number: int
    question: str
    model: str | None = None


def take_broken_off(connection: Connection, since: datetime) -> tuple[BrokenOff, ...]:
    """Return, once, each thread's last reply if it broke off with its process, after ``since`` and in context."""
    kept = meta_rows.taken(connection, meta_rows.BROKEN_OFF_THREADS)
    if kept is None:
        return ()
    found = connection.execute(
        "SELECT id, persona, number FROM threads "
        # `chorus ask` opens its thread and closes it at the same time.
        "WHERE (closed_at IS NULL OR closed_at = created_at) AND id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (kept,),
    ).fetchall()
    replies = [
        (persona, number, interrupted_reply(connection, persona, thread_id, since))
        for thread_id, persona, number in found
    ]
    return tuple(BrokenOff(persona, number, *reply) for persona, number, reply in replies if reply is not None)


def in_progress(connection: Connection, thread_id: int | None) -> list[tuple[int, str | None]]:
    """Return the ids of the rows in progress in a thread (``None``: any thread), each with the run that writes it."""
    rows = connection.execute("SELECT id, run, thread_id FROM messages WHERE status = 'streaming'")
    return [(id_, run) for id_, run, written_in in rows if thread_id in {None, written_in}]


def interrupted_reply(connection: Connection, persona: str, thread_id: int, since: datetime) -> Interrupted | None:
    """Return the last reply of a thread; ``None`` unless it is interrupted, after ``since`` and in context."""
    row = connection.execute(
        "SELECT reply.id, asked.content, CASE WHEN TRIM(reply.content) <> '' THEN reply.model END "
        "FROM messages AS reply JOIN messages AS asked ON asked.id = reply.turn_id "
        "WHERE reply.thread_id = :thread AND reply.timestamp > :since AND reply.status = 'interrupted' "
        "AND reply.id = (SELECT MAX(id) FROM messages INDEXED BY messages_of_thread "
        "WHERE thread_id = :thread AND timestamp > :since) "
        "AND asked.timestamp > :since",
        {"thread": thread_id, "since": timestamps.to_text(since)},
    ).fetchone()
    if row is None:
        return None
    reply_id, question, model = row
    later = (each for each in operation_rows.all_of(connection, persona, thread_id) if each.act.changes_messages)
    return None if any(each.after_message_id >= reply_id for each in later) else Interrupted(question, model)


def take_back_if_empty(connection: Connection, reply_id: int, now: datetime) -> None:
    """Undo the retry to which a row belongs, unless the retry brought words of a reply; tool calls do not count."""
    persona, thread_id, retry_id = connection.execute(
        "SELECT persona, thread_id, introduced_by FROM messages WHERE id = ?", (reply_id,)
    ).fetchone()
    replies = connection.execute(
        "SELECT content FROM messages WHERE introduced_by = :retry AND role = 'assistant' "
        "AND id > (SELECT after_message_id FROM operations WHERE id = :retry)",
        {"retry": retry_id},
    )
    if retry_id is None or any(content.strip() for (content,) in replies):
        return
    if any(each.id == retry_id for each in journal.effective(operation_rows.all_of(connection, persona, thread_id))):
        new = NewOperation(persona, Undo(Subject(operation_id=retry_id)), now, thread_id, automatic=True)
        operation_rows.introduce(connection, new)
