"""The rows of an import: its operations, a thread for each conversation, and the messages.

A conversation is known by its persona, its program and its id there, a message by its id in the conversation: what is
known is left as it is, and only what is new is added. All rows of a conversation are stored in one transaction.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field, replace
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.json import values
from chorus_cli.core.time import timestamps
from chorus_cli.imports.rows import known_conversations
from chorus_cli.imports.rows.known_conversations import Incoming, Known, KnownRow, Moves
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Redo, Subject
from chorus_cli.log.rules.log_acts import Import
from chorus_cli.log.rules.messages import MessageContent, Role, Status, expanded, runs
from chorus_cli.log.rules.operations import NewOperation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignMessage
    from chorus_cli.log.rules.messages import Runs
    from chorus_cli.log.rules.operations import Operation


_INSTANT = timedelta(microseconds=1)


@dataclass(slots=True)
class Added:
    """Results of an import: new conversations, conversations with something new, new messages, imports put back.

    ``files`` names the files of the import; empty, it goes on with no earlier one. ``acts`` are its operations by
    persona, each with its id; one is stored with the first new message.
    ``switched`` counts conversations without a new message that are on another branch now.
    ``purged`` counts messages that were purged here and stay so.
    ``attachments`` are the SHA-256 of the files of new messages.
    ``refused`` counts conversations that the log cannot hold, such as one with a time before the year 1000.
    """

    files: str = ""
    conversations: int = 0
    continued: int = 0
    switched: int = 0
    messages: int = 0
    redone: int = 0
    redone_messages: int = 0
    refused: int = 0
    purged: int = 0
    attachments: frozenset[str] = frozenset()
    acts: dict[str, tuple[int, Import]] = field(default_factory=dict)


class _Place(NamedTuple):
    """The turn that a message belongs to, and its time."""

    turn_id: int
    timestamp: datetime


def store(connection: sqlite3.Connection, batch: Sequence[Incoming], before: Added, now: datetime) -> Added:
    """Store conversations, all or none of them, and return the results with those ``before``."""
    added = before
    for incoming in batch:
        added = _stored_or_refused(connection, incoming, added, now)
    for operation_id, act in added.acts.values():
        _write(connection, operation_id, act)
    return added


def finish(connection: sqlite3.Connection, files: str) -> None:
    """Mark every unfinished import of these files as finished."""
    for operation_id, act in _unfinished(operation_rows.imports_of(connection), files):
        _write(connection, operation_id, replace(act, unfinished=""))


def _unfinished(operations: Iterable[Operation], files: str) -> list[tuple[int, Import]]:
    """Return the unfinished imports of these files."""
    found = ((each.id, each.act) for each in operations if isinstance(each.act, Import))
    return [(id_, act) for id_, act in found if act.unfinished == files != ""]


def _operation_of(connection: sqlite3.Connection, persona: str, added: Added, now: datetime) -> tuple[int, Import]:
    """Return the operation of a persona: that of an unfinished import of these files, else a new one.

    One that is undone, or lies before a boundary of all threads, is not gone on with.
    """
    if persona in added.acts:
        return added.acts[persona]
    standing = journal.effective(operation_rows.since_boundary(connection, persona, None))
    if unfinished := _unfinished(standing, added.files):
        return max(unfinished, key=itemgetter(0))
    act = Import(unfinished=added.files)
    return operation_rows.introduce(connection, NewOperation(persona, act, now)).id, act


def _write(connection: sqlite3.Connection, operation_id: int, act: Import) -> None:
    connection.execute("UPDATE operations SET detail = ? WHERE id = ?", (json.dumps(act.detail()), operation_id))


def _stored_or_refused(connection: sqlite3.Connection, incoming: Incoming, before: Added, now: datetime) -> Added:
    """Store a conversation as a whole or not at all, and return the results with it."""
    added = replace(before, acts=dict(before.acts))
    connection.execute("SAVEPOINT conversation")
    try:
        _store(connection, incoming, added, now)
    except (ValueError, OverflowError, sqlite3.IntegrityError):
        connection.execute("ROLLBACK TO conversation")
        added = replace(before, refused=before.refused + 1)
    connection.execute("RELEASE conversation")
    return added


def _store(connection: sqlite3.Connection, incoming: Incoming, added: Added, now: datetime) -> None:
    persona, conversation, _ = incoming
    known = known_conversations.known(connection, incoming)
    fresh = [*conversation.messages]
    if known is not None:
        there = known.there(incoming).values()
        added.purged += sum(row.is_purged for row in there)
        redone = _put_back(connection, persona, there, now)
        added.redone += len(redone)
        added.redone_messages += sum(redone)
        fresh = [each for each in fresh if each.key not in known.messages]
    purged = known_conversations.purged(connection, fresh)
    fresh = [each for each in fresh if each.key not in purged]
    added.purged += len(purged)
    moves = known_conversations.moves(connection, incoming, known, is_newer=bool(fresh)) if known else Moves()
    if not fresh and not any(moves):
        return
    operation_id, act = _operation_of(connection, persona, added, now)
    if known is None:
        added.conversations += 1
        known = _opened(connection, incoming, operation_id, now)
    else:
        added.continued += bool(fresh)
        added.switched += not fresh
        if not known.id:
            known = known._replace(id=known_conversations.name(connection, incoming, known.thread_id, operation_id))
        act = replace(_with_moves(act, moves), hidden=(*act.hidden, *_newly_hidden(conversation, known, moves)))
    added.messages += len(fresh)
    added.attachments |= {file.sha256 for each in fresh for file in incoming.attachments.get(each.key, ())}
    act = replace(
        act,
        hidden=(*act.hidden, *_insert(connection, incoming, known, fresh, operation_id)),
        sources=tuple(dict.fromkeys([*act.sources, conversation.source])),
        conversations=act.conversations + 1,
        messages=act.messages + len(fresh),
    )
    added.acts[persona] = operation_id, act


def _newly_hidden(conversation: ForeignConversation, known: Known, moves: Moves) -> Runs:
    """Return the known messages that leave the live branch and are hidden in their program."""
    hidden = {each.key for each in conversation.messages if each.is_hidden}
    ids = {known.messages[key].id for key in hidden if key in known.messages}
    return runs(sorted(ids.intersection(moves.supersedes)))


def _put_back(connection: sqlite3.Connection, persona: str, rows: Iterable[KnownRow], now: datetime) -> list[int]:
    """Redo the undone imports that messages came in with, and return the number of messages of each."""
    concerned = {row.operation_id for row in rows} & operation_rows.undone_imports(connection, persona)
    acts = {each.id: each.act for each in operation_rows.imports_of(connection, persona)} if concerned else {}
    for operation_id in sorted(concerned):
        operation_rows.introduce(connection, NewOperation(persona, Redo(Subject(operation_id=operation_id)), now))
    return [act.messages for id_, act in acts.items() if id_ in concerned and isinstance(act, Import)]


def _opened(connection: sqlite3.Connection, incoming: Incoming, operation_id: int, now: datetime) -> Known:
    """Open the thread of a new conversation, closed at its last message."""
    persona, conversation, _ = incoming
    times = [each.timestamp for each in conversation.messages if each.timestamp is not None]
    created_at = conversation.created_at or min(times, default=now)
    cursor = connection.execute(
        "INSERT INTO threads(persona, title, created_at, closed_at) VALUES (?, ?, ?, ?)",
        (
            persona,
            values.line(conversation.title),
            timestamps.to_text(created_at),
            timestamps.to_text(max(times, default=created_at)),
        ),
    )
    thread_id = int(cursor.lastrowid or 0)
    connection.execute(
        "DELETE FROM imported_messages WHERE conversation_id IN (SELECT id FROM imported_conversations "
        "WHERE persona = ? AND source = ? AND conversation = ?)",
        (persona, conversation.source, conversation.key),
    )
    return Known(known_conversations.name(connection, incoming, thread_id, operation_id), thread_id, {})


def _insert(
    connection: sqlite3.Connection,
    incoming: Incoming,
    known: Known,
    fresh: Sequence[ForeignMessage],
    operation_id: int,
) -> Runs:
    """Store the new messages of a conversation, each in the turn of the one before it; return the hidden ones."""
    persona, conversation, attachments = incoming
    live = frozenset(conversation.live)
    rows = known.messages.items() if fresh else ()
    places = {key: _Place(row.turn_id, timestamps.from_text(row.timestamp)) for key, row in rows}
    first = _Place(0, conversation.created_at or _earliest(fresh) or timestamps.from_text("1970-01-01T00:00:00Z"))
    previous = first
    keys: list[tuple[int, str, int, str | None]] = []
    for each in fresh:
        before = places.get(each.parent or "", first if each.parent is None else previous)
        content = _content_of(each, known.thread_id, before)._replace(
            attachments=attachments.get(each.key, ()),
            superseded=each.key not in live,
        )
        id_ = message_rows.insert_row(
            connection, persona, content, introduced_by=operation_id, origin=known_conversations.origin(each.key)
        )
        previous = places[each.key] = _Place(content.turn_id or id_, content.timestamp)
        keys.append((known.id, each.key, id_, each.parent))
    connection.executemany(
        "INSERT INTO imported_messages(conversation_id, message, message_id, parent) VALUES (?, ?, ?, ?)", keys
    )
    hidden = {each.key for each in fresh if each.is_hidden}
    return runs(id_ for _, key, id_, _ in keys if key in hidden)


def _content_of(message: ForeignMessage, thread_id: int, before: _Place) -> MessageContent:
    """Return a message as the log has it, in the turn of the one before it, and if need be an instant after it."""
    return MessageContent(
        thread_id=thread_id,
        role=message.role,
        content=message.content,
        timestamp=message.timestamp or before.timestamp + _INSTANT,
        turn_id=None if message.role is Role.USER else before.turn_id or None,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        # Nobody is writing it any more.
        status=Status.INTERRUPTED if message.status is Status.STREAMING else message.status or Status.COMPLETE,
        model=message.model,
        reasoning=message.reasoning,
        thought_parts=message.thought_parts,
        thought=message.thought,
    )


def _with_moves(act: Import, moves: Moves) -> Import:
    """Return the act with messages that leave the live branch, or come back to it, as well."""
    return replace(
        act,
        supersedes=runs(sorted({*expanded(act.supersedes), *moves.supersedes} - {*moves.revives})),
        revives=runs(sorted({*expanded(act.revives), *moves.revives} - {*moves.supersedes})),
    )


def _earliest(messages: Sequence[ForeignMessage]) -> datetime | None:
    return min((each.timestamp for each in messages if each.timestamp is not None), default=None)
