"""Conversations of other programs that are in the log already, and their branches that a newer export has moved."""

from __future__ import annotations

import json
import re
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.imports.rows import whole_threads
from chorus_cli.imports.rows.whole_threads import OWN_SOURCE, ThreadOfPersona
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.storage import meta_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignMessage
    from chorus_cli.log.rules.attachments import Attachment

_OWN_KEY = re.compile(r"([0-9a-f]{16})-([0-9]{1,18})")


class Incoming(NamedTuple):
    """A conversation for a persona, with the stored attachments of its messages by their keys."""

    persona: str
    conversation: ForeignConversation
    attachments: Mapping[str, tuple[Attachment, ...]]


class KnownRow(NamedTuple):
    """A message that is in the log: its row, its turn, its time as it is stored, and the operation that it came by."""

    id: int
    turn_id: int
    timestamp: str
    operation_id: int
    is_superseded: bool
    is_purged: bool


class Known(NamedTuple):
    """A conversation in the log: its row (0 for a thread of this log), its thread, its messages' rows by their keys."""

    id: int
    thread_id: int
    messages: Mapping[str, KnownRow]

    def there(self, incoming: Incoming) -> dict[str, KnownRow]:
        """Return the rows of the messages of an export that are known, by their keys."""
        keys = (each.key for each in incoming.conversation.messages)
        return {key: self.messages[key] for key in keys if key in self.messages}

    def branches(self, incoming: Incoming) -> dict[int, bool]:
        """Return whether these rows are on the live branch of an export, by their ids."""
        live = frozenset(incoming.conversation.live)
        return {row.id: key in live for key, row in sorted(self.there(incoming).items(), key=itemgetter(1))}


class Numbers(NamedTuple):
    """The messages of a conversation that are in the log and in effect, and those that were purged and stay so."""

    in_effect: int
    purged: int


def numbers(connection: sqlite3.Connection, incoming: Incoming) -> Numbers:
    """Return the numbers of messages of a conversation that an import would not add."""
    found = known(connection, incoming)
    there = found.there(incoming) if found else {}
    withdrawn = operation_rows.undone_imports(connection, incoming.persona)
    in_effect = [row for row in there.values() if not row.is_purged and row.operation_id not in withdrawn]
    fresh = [each for each in incoming.conversation.messages if each.key not in there]
    return Numbers(len(in_effect), sum(row.is_purged for row in there.values()) + len(purged(connection, fresh)))


def known(connection: sqlite3.Connection, incoming: Incoming) -> Known | None:
    """Return the conversation as the log has it, ``None`` also if an earlier persona of that name has it.

    A thread of this very log may come back in an export, and so may what was said here in an imported one.
    """
    persona, conversation, _ = incoming
    row = connection.execute(
        "SELECT id, thread_id FROM imported_conversations WHERE persona = ? AND source = ? AND conversation = ?",
        (persona, conversation.source, conversation.key),
    ).fetchone()
    id_, thread_id = row or (0, _own_thread(connection, persona, conversation))
    if thread_id <= int(meta_rows.value(connection, meta_rows.threads_before_key(persona)) or 0):
        return None
    facts = "id, COALESCE(turn_id, id), timestamp, COALESCE(introduced_by, 0), superseded, purged_by IS NOT NULL"
    found = connection.execute(
        f"SELECT origin || '-' || origin_seq, {facts} FROM messages "
        "WHERE thread_id = :thread AND origin = (SELECT origin FROM installation) UNION ALL "
        f"SELECT message, {facts} FROM imported_messages JOIN messages ON id = message_id "
        "WHERE conversation_id = :conversation",
        {"thread": thread_id, "conversation": id_},
    )
    return Known(id_, thread_id, {key: KnownRow(*each) for key, *each in found})


def _own_thread(connection: sqlite3.Connection, persona: str, conversation: ForeignConversation) -> int:
    """Return the thread of this log whose first message a conversation is named by, 0 if there is none."""
    named_by = origin(conversation.key) if conversation.source == OWN_SOURCE else None
    row = connection.execute(
        "SELECT thread_id FROM messages JOIN installation USING (origin) WHERE id = ? AND origin = ? AND persona = ?",
        (named_by[1] if named_by else 0, named_by[0] if named_by else "", persona),
    ).fetchone()
    return int(row[0]) if row else 0


def purged(connection: sqlite3.Connection, messages: Sequence[ForeignMessage]) -> frozenset[str]:
    """Return the keys of messages that were purged here, of whichever persona they were."""
    found = connection.execute(
        "SELECT origin || '-' || origin_seq FROM json_each(?) CROSS JOIN messages INDEXED BY messages_purged "
        "ON origin = json_extract(value, '$[0]') AND origin_seq = json_extract(value, '$[1]') "
        "WHERE purged_by IS NOT NULL",
        (json.dumps([known_by for each in messages if (known_by := origin(each.key))]),),
    )
    return frozenset(key for (key,) in found)


def name(connection: sqlite3.Connection, incoming: Incoming, thread_id: int, operation_id: int) -> int:
    """Remember which conversation a thread is, and return the row."""
    persona, conversation, _ = incoming
    cursor = connection.execute(
        "INSERT OR REPLACE INTO imported_conversations(persona, source, conversation, thread_id, operation_id) "
        "VALUES (?, ?, ?, ?, ?)",
        (persona, conversation.source, conversation.key, thread_id, operation_id),
    )
    return int(cursor.lastrowid or 0)


def origin(key: str) -> tuple[str, int] | None:
    """Return the installation and the place there that a message of another Chorus is known by."""
    match = _OWN_KEY.fullmatch(key)
    return (match[1], int(match[2])) if match else None


class Moves(NamedTuple):
    """Messages of the log that leave the live branch, and those that come back to it, by their ids."""

    supersedes: tuple[int, ...] = ()
    revives: tuple[int, ...] = ()


def moves(connection: sqlite3.Connection, incoming: Incoming, known: Known, *, is_newer: bool) -> Moves:
    """Return the moves by which the known messages of a conversation are on the branches that the export has.

    An export ``is_newer`` if it has new messages. Another one moves nothing if it lacks an imported message or has
    the branches that a newer import has left; nor if the log itself would export the same branches, which commands
    such as a retry may have changed here.
    """
    moved = journal.moved_off(operation_rows.imports_of(connection, incoming.persona))
    there = known.there(incoming).values()
    off = {row.id for row in there if moved.get(row.id, row.is_superseded)}
    branches = known.branches(incoming).items()
    moves = Moves(
        tuple(id_ for id_, is_live in branches if id_ not in off and not is_live),
        tuple(id_ for id_, is_live in branches if id_ in off and is_live),
    )
    return moves if is_newer or (any(moves) and _has_other_branches(connection, incoming, known)) else Moves()


def _has_other_branches(connection: sqlite3.Connection, incoming: Incoming, known: Known) -> bool:
    imported = connection.execute("SELECT message FROM imported_messages WHERE conversation_id = ?", (known.id,))
    keys = {each.key for each in incoming.conversation.messages}
    if not known.id or not keys.issuperset(key for (key,) in imported) or _was_left(connection, incoming, known):
        return False
    here = whole_threads.conversation(connection, ThreadOfPersona(incoming.persona, known.thread_id))
    return set(incoming.conversation.live) != keys.intersection(here.live)


def _was_left(connection: sqlite3.Connection, incoming: Incoming, known: Known) -> bool:
    """Return whether an import that counts left all messages of an export so; they are otherwise now."""
    there, wanted = known.there(incoming).values(), known.branches(incoming)
    is_live = {row.id: not row.is_superseded for row in there}
    complete_since = max((row.operation_id for row in there), default=0)
    for each in journal.effective(operation_rows.imports_of(connection, incoming.persona)):
        is_live |= {id_: not is_off for id_, is_off in journal.moved_off([each]).items() if id_ in is_live}
        if each.id >= complete_since and is_live == wanted:
            return True
    return False
