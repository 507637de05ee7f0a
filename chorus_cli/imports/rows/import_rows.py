"""The rows of an import: its operations, a thread for each conversation, and the messages.

Persona, program and id identify a conversation, and a message's id identifies the message in its conversation.
Known rows stay as they are, and only new ones are added. All rows of a conversation are stored in one transaction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import NamedTuple

from chorus_cli.core.json import values
from chorus_cli.core.time import timestamps
from chorus_cli.imports.rows.whole_threads import OWN_SOURCE
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignMessage
from chorus_cli.log.rows import message_rows, operation_rows, thread_rows
from chorus_cli.log.rows.message_rows import ImportedRow
from chorus_cli.log.rules.acts import Redo, Subject
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.log.rules.log_acts import Import
from chorus_cli.log.rules.messages import MessageContent, Role, Runs, Status, expanded, runs
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage.port import Connection, OpenConnection, Rows

_NAMED = "imported_conversations WHERE persona = ? AND source = ? AND conversation = ?"
_IN_OWN_THREAD = f"EXISTS (SELECT 1 FROM threads WHERE threads.id = thread_id AND {thread_rows.OWN})"
_OWN_KEY = re.compile(r"([0-9a-f]{16})-([0-9]{1,18})")


class Incoming(NamedTuple):
    """A conversation for a persona, and its stored attachments by the keys of their messages."""

    persona: str
    conversation: ForeignConversation
    attachments: Mapping[str, tuple[Attachment, ...]]

    @property
    def name(self) -> tuple[str, str, str]:
        """The persona, the program and the key, which identify the conversation in the log."""
        return self.persona, self.conversation.source, self.conversation.key

    def begun(self, now: datetime) -> datetime:
        """Return the time when the conversation began: its own, else its earliest message's, else ``now``."""
        times = (each.timestamp for each in self.conversation.messages if each.timestamp is not None)
        return self.conversation.created_at or min(times, default=now)


class KnownRow(NamedTuple):
    """A message in the log: its row, its turn, its time as stored, and the operation that brought it (0: none)."""

    id: int
    turn_id: int
    timestamp: str
    operation_id: int
    is_superseded: bool
    is_purged: bool


class Known(NamedTuple):
    """A conversation in the log: its row (0: not imported), its thread, and the rows of its messages by key."""

    id: int
    thread_id: int
    messages: Mapping[str, KnownRow]

    def there(self, incoming: Incoming) -> dict[str, KnownRow]:
        """Return the known rows of the messages of an incoming conversation, by their keys."""
        keys = (each.key for each in incoming.conversation.messages)
        return {key: self.messages[key] for key in keys if key in self.messages}


class Forecast(NamedTuple):
    """What an import would not add: messages in effect already, messages purged here, and ``refused`` conversations.

    The messages of a refused conversation count as in effect. ``hashes`` has a hash of each message's conversation and
    key, because these themselves would take much memory.
    """

    in_effect: int
    purged: int
    refused: int
    hashes: frozenset[int]


def forecast(connection: Connection, batch: Sequence[Incoming], before: Container[int]) -> Forecast:
    """Return what an import of a batch would not add; messages with hashes in ``before`` count as in effect."""
    in_effect = purged = refused = 0
    hashes = set[int]()
    withdrawn, gone = _withdrawn(connection, batch), _purged(connection, batch)
    for incoming, found in zip(batch, _known(connection, batch), strict=True):
        there, messages = found.there(incoming) if found else {}, incoming.conversation.messages
        if _has_other_messages(incoming, there):
            refused += 1
            in_effect += len(messages)
            continue
        for key in (each.key for each in messages):
            row, hashed = there.get(key), hash((*incoming.name, key))
            is_counting = row is not None and row.operation_id not in withdrawn[incoming.persona]
            is_purged = row.is_purged if row else key in gone
            purged += is_purged
            in_effect += not is_purged and (is_counting or hashed in before or hashed in hashes)
            hashes.add(hashed)
    return Forecast(in_effect, purged, refused, frozenset(hashes))


def _withdrawn(connection: Connection, batch: Sequence[Incoming]) -> dict[str, frozenset[int]]:
    """Return the undone imports of each persona."""
    return {slug: operation_rows.undone_imports(connection, slug) for slug in {each.persona for each in batch}}


def _known(connection: Connection, batch: Sequence[Incoming]) -> list[Known | None]:
    """Return each conversation as the log has it, ``None`` if it is new or only a deleted persona had it.

    If the batch is an export of this log, it may have threads of this log and imported threads with messages said here.
    """
    # A PostgreSQL server answers all queries of a loop at once, because no result is read before the loop ends.
    asked = f"SELECT id, thread_id FROM {_NAMED} AND {_IN_OWN_THREAD}"
    named = [connection.execute(asked, each.name) for each in batch]
    own = [_own_thread(connection, each) for each in batch]
    places = [row.fetchone() or (0, *(thread.fetchone() or (0,))) for row, thread in zip(named, own, strict=True)]
    facts = "id, COALESCE(turn_id, id), timestamp, COALESCE(introduced_by, 0), superseded, purged_by IS NOT NULL"
    found = [
        connection.execute(
            f"SELECT origin || '-' || origin_seq, {facts} FROM messages "
            "WHERE thread_id = :thread UNION ALL "
            f"SELECT message, {facts} FROM imported_messages JOIN messages ON id = message_id "
            "WHERE conversation_id = :conversation",
            {"thread": thread_id, "conversation": id_},
        )
        if thread_id
        else None
        for id_, thread_id in places
    ]
    return [
        Known(id_, thread_id, {key: KnownRow(*each) for key, *each in rows}) if rows is not None else None
        for (id_, thread_id), rows in zip(places, found, strict=True)
    ]


def _has_other_messages(incoming: Incoming, there: Mapping[str, KnownRow]) -> bool:
    """Return whether a key of an export names another message here, as can happen after a log was copied.

    Messages are compared by time, except interrupted ones: a reply has its question's time until its words begin.
    """
    compared = (each for each in incoming.conversation.messages if each.timestamp and _origin(each.key))
    return any(
        not row.is_purged and message_rows.counted_moment(row.timestamp) != each.timestamp
        for each in compared
        if (row := there.get(each.key)) and each.status is not Status.INTERRUPTED
    )


def _own_thread(connection: Connection, incoming: Incoming) -> Rows:
    """Look for the thread of this log whose first message has the conversation's key."""
    _, conversation, _ = incoming
    named_by = _origin(conversation.key) if conversation.source == OWN_SOURCE else None
    # Rows of other installations keep their ids on a server; a copy of a log may give them new ones.
    return connection.execute(
        "SELECT thread_id FROM messages WHERE id = ? AND origin = ? AND origin_seq = id "
        f"AND persona = ? AND {_IN_OWN_THREAD}",
        (named_by[1] if named_by else 0, named_by[0] if named_by else "", incoming.persona),
    )


def _purged(connection: Connection, batch: Sequence[Incoming]) -> frozenset[str]:
    """Return the keys of the batch's messages that were purged here, whichever persona had them."""
    sought: dict[str, list[int]] = {}
    keys = (_origin(each.key) for incoming in batch for each in incoming.conversation.messages)
    for origin, position in filter(None, keys):
        sought.setdefault(origin, []).append(position)
    return frozenset(
        f"{origin}-{position}"
        for origin, positions in sought.items()
        for (position,) in connection.execute(
            "SELECT origin_seq FROM messages INDEXED BY messages_purged WHERE purged_by IS NOT NULL "
            "AND origin = ? AND origin_seq IN (SELECT value FROM json_each(?))",
            (origin, json.dumps(positions)),
        )
    )


def _origin(key: str) -> tuple[str, int] | None:
    """Return the installation and the position that a message's key names; ``None`` for the key of another program."""
    match = _OWN_KEY.fullmatch(key)
    return (match[1], int(match[2])) if match else None


_INSTANT = timedelta(microseconds=1)
_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class Added:
    """Results of an import: new conversations, continued ones, new messages, and undone imports that were redone.

    ``acts`` has the id and the act of each persona's operation, which is stored with the first new message. ``purged``
    counts messages that were purged here and stay purged. ``attachments`` has the SHA-256 of each file of a new
    message. ``refused`` counts conversations that a copy of this log has continued with other messages.
    """

    conversations: int = 0
    continued: int = 0
    messages: int = 0
    redone: int = 0
    refused: int = 0
    purged: int = 0
    attachments: frozenset[str] = frozenset()
    acts: dict[str, tuple[int, Import]] = field(default_factory=dict)


class _Place(NamedTuple):
    """The turn that a message belongs to, and its time."""

    turn_id: int
    timestamp: datetime


def store(connection: OpenConnection, batch: Sequence[Incoming], before: Added, now: datetime) -> Added:
    """Store conversations, except those that the log has with other messages; return ``before`` plus the results."""
    storing = _Storing(connection, replace(before, acts=dict(before.acts)), now)
    storing.store(batch)
    return storing.added


class _Storing:
    """Stores conversations and counts them in ``added``.

    Rows get their ids here and not from the database, so that storing a row never waits for the id of another row.
    """

    def __init__(self, connection: OpenConnection, added: Added, now: datetime) -> None:
        self.added = added
        self._connection = connection
        self._now = now

    def store(self, batch: Sequence[Incoming]) -> None:
        newest = "SELECT (SELECT COALESCE(MAX(id), 0) FROM threads), (SELECT COALESCE(MAX(id), 0) FROM messages)"
        asked = self._connection.execute(newest)
        known, seen = _known(self._connection, batch), set[tuple[str, str, str]]()
        self._threads, self._messages = (count(id_ + 1) for id_ in asked.fetchone())
        self._withdrawn, self._purged = _withdrawn(self._connection, batch), _purged(self._connection, batch)
        for incoming, found in zip(batch, known, strict=True):
            is_again = incoming.name in seen
            self._store(incoming, _known(self._connection, [incoming])[0] if is_again else found)
            seen.add(incoming.name)
        self._connection.continue_ids("messages")
        for operation_id, act in self.added.acts.values():
            detail = json.dumps(act.detail())
            self._connection.execute("UPDATE operations SET detail = ? WHERE id = ?", (detail, operation_id))

    def _store(self, incoming: Incoming, known: Known | None) -> None:
        persona, conversation, attachments = incoming
        added, fresh = self.added, [*conversation.messages]
        if known is not None:
            there = known.there(incoming)
            if _has_other_messages(incoming, there):
                added.refused += 1
                return
            added.purged += sum(row.is_purged for row in there.values())
            added.redone += self._put_back(persona, there.values())
            fresh = [each for each in fresh if each.key not in known.messages]
        added.purged += len({each.key for each in fresh} & self._purged)
        fresh = [each for each in fresh if each.key not in self._purged]
        if not fresh:
            return
        if persona not in added.acts:
            new = NewOperation(persona, Import(), self._now)
            added.acts[persona] = operation_rows.introduce(self._connection, new).id, Import()
        operation_id, act = added.acts[persona]
        if known is None:
            added.conversations += 1
            known = self._opened(incoming, operation_id)
        else:
            added.continued += 1
            if not known.id:
                self._name(incoming, known.thread_id, operation_id)
            act = _with_moves(self._connection, act, incoming, known)
        added.messages += len(fresh)
        added.attachments |= {file.sha256 for each in fresh for file in attachments.get(each.key, ())}
        act = replace(
            act,
            hidden=(*act.hidden, *self._insert(incoming, known, fresh, operation_id)),
            sources=tuple(dict.fromkeys([*act.sources, conversation.source])),
            conversations=act.conversations + 1,
            messages=act.messages + len(fresh),
        )
        added.acts[persona] = operation_id, act

    def _put_back(self, persona: str, rows: Iterable[KnownRow]) -> int:
        """Redo the undone imports that brought these rows, and return the number of imports."""
        concerned = {row.operation_id for row in rows} & self._withdrawn[persona]
        for operation_id in sorted(concerned):
            redo = Redo(Subject(operation_id=operation_id))
            operation_rows.introduce(self._connection, NewOperation(persona, redo, self._now))
        self._withdrawn[persona] -= concerned
        return len(concerned)

    def _opened(self, incoming: Incoming, operation_id: int) -> Known:
        """Make a closed thread for a new conversation; its closing time is the time of the newest message."""
        persona, conversation, _ = incoming
        times = (each.timestamp for each in conversation.messages if each.timestamp is not None)
        created_at, thread_id = incoming.begun(self._now), next(self._threads)
        closed_at = timestamps.to_text(max(times, default=created_at))
        self._connection.execute(
            "INSERT INTO threads(id, persona, title, created_at, closed_at) VALUES (?, ?, ?, ?, ?)",
            (thread_id, persona, values.line(conversation.title), timestamps.to_text(created_at), closed_at),
        )
        self._connection.execute(
            f"DELETE FROM imported_messages WHERE conversation_id IN (SELECT id FROM {_NAMED})", incoming.name
        )
        self._name(incoming, thread_id, operation_id)
        return Known(0, thread_id, {})

    def _name(self, incoming: Incoming, thread_id: int, operation_id: int) -> None:
        self._connection.execute(
            "INSERT INTO imported_conversations(persona, source, conversation, thread_id, operation_id) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT (persona, source, conversation) "
            "DO UPDATE SET thread_id = excluded.thread_id, operation_id = excluded.operation_id",
            (*incoming.name, thread_id, operation_id),
        )

    def _insert(self, incoming: Incoming, known: Known, fresh: Sequence[ForeignMessage], operation_id: int) -> Runs:
        """Store the new messages of a conversation, and return the ids of the hidden ones, as runs."""
        persona, conversation, attachments = incoming
        live = frozenset(conversation.live)
        places = {key: _Place(row.turn_id, timestamps.from_text(row.timestamp)) for key, row in known.messages.items()}
        previous = first = _Place(0, incoming.begun(self._now))
        rows: list[ImportedRow] = []
        for each, id_ in zip(fresh, self._messages, strict=False):
            before = places.get(each.parent or "", first if each.parent is None else previous)
            content = _content_of(each, known.thread_id, before)._replace(
                attachments=attachments.get(each.key, ()), superseded=each.key not in live
            )
            rows.append(ImportedRow(id_, content, _origin(each.key)))
            previous = places[each.key] = _Place(content.turn_id or id_, content.timestamp)
        message_rows.insert_imported(self._connection, persona, rows, operation_id)
        ids = [row.id for row in rows]
        self._connection.executemany(
            "INSERT INTO imported_messages(conversation_id, message, message_id, parent) "
            f"SELECT id, ?, ?, ? FROM {_NAMED}",
            [(each.key, id_, each.parent, *incoming.name) for each, id_ in zip(fresh, ids, strict=True)],
        )
        return runs(id_ for each, id_ in zip(fresh, ids, strict=True) if each.is_hidden)


def _content_of(message: ForeignMessage, thread_id: int, before: _Place) -> MessageContent:
    """Return a message for the log. A reply joins the turn of ``before``; a missing time is 1 µs after ``before``."""
    return MessageContent(
        thread_id=thread_id,
        role=message.role,
        content=message.content,
        timestamp=message.timestamp or min(before.timestamp, _LATEST - _INSTANT) + _INSTANT,
        turn_id=None if message.role is Role.USER else before.turn_id or None,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        # No process writes this reply any more.
        status=Status.INTERRUPTED if message.status is Status.STREAMING else message.status or Status.COMPLETE,
        model=message.model,
        reasoning=message.reasoning,
        thought_parts=message.thought_parts,
        thought=message.thought,
    )


def _with_moves(connection: Connection, act: Import, incoming: Incoming, known: Known) -> Import:
    """Return the act plus the known messages that leave the live branch or return to it."""
    live = frozenset(incoming.conversation.live)
    moved = operation_rows.import_marks(connection, incoming.persona).moved_off
    moves = [
        (row.id, each.key in live, each.is_hidden)
        for each in incoming.conversation.messages
        if (row := known.messages.get(each.key)) and moved.get(row.id, row.is_superseded) == (each.key in live)
    ]
    off = {id_ for id_, is_live, _ in moves if not is_live}
    back = {id_ for id_, is_live, _ in moves if is_live}
    hidden = sorted(id_ for id_, _, is_hidden in moves if is_hidden and id_ in off)
    return replace(
        act,
        supersedes=runs(sorted({*expanded(act.supersedes), *off} - back)),
        revives=runs(sorted({*expanded(act.revives), *back} - off)),
        hidden=(*act.hidden, *runs(hidden)),
    )
