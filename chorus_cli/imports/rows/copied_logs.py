"""Messages of copies of one log that went on apart: they have the same keys, and are told apart by their content.

A copied home keeps the origin of the first one, so both give the same keys to different messages. The key of such a
message, and of a conversation that begins with it, gets a suffix made of its role and time.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.time import timestamps
from chorus_cli.imports.rows.known_conversations import Incoming
from chorus_cli.imports.rows.whole_threads import OWN_SOURCE
from chorus_cli.log.rows.message_rows import counted_moment
from chorus_cli.log.rules.messages import Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from chorus_cli.imports.rules.conversation import ForeignMessage

_KEY = re.compile(r"([0-9a-f]{16})-([0-9]{1,18})(?:-[0-9a-f]{12})?")
_SUFFIX_BYTES = 6


class _Logged(NamedTuple):
    role: str
    timestamp: str
    content: str


def told_apart(connection: sqlite3.Connection, incoming: Incoming) -> Incoming:
    """Return a conversation in which no message has the key of a different message of this log."""
    if not any(_KEY.fullmatch(each.key) for each in incoming.conversation.messages):
        return incoming
    (own,) = connection.execute("SELECT origin FROM installation").fetchone()
    named = _named_apart(connection, incoming, own)
    logged = _logged(connection, named, named.conversation.messages)
    keys = {each.key: _key_of(each, logged, own) for each in named.conversation.messages}
    return named if all(key == new for key, new in keys.items()) else _with_keys(named, keys)


def _named_apart(connection: sqlite3.Connection, incoming: Incoming, own: str) -> Incoming:
    """Return the conversation with the key that its first message gets, which it is named by."""
    conversation = incoming.conversation
    first = next((each for each in conversation.messages if each.key == conversation.key), None)
    if conversation.source != OWN_SOURCE or first is None:
        return incoming
    without_suffix = incoming._replace(conversation=replace(conversation, key=_base(first.key)))
    key = _key_of(first, _logged(connection, without_suffix, [first]), own)
    return incoming._replace(conversation=replace(conversation, key=key))


def _logged(
    connection: sqlite3.Connection, incoming: Incoming, messages: Sequence[ForeignMessage]
) -> dict[str, _Logged]:
    """Return the messages of this log, and those imported into this conversation, that have keys of ``messages``."""
    matches = [match for each in messages if (match := _KEY.fullmatch(each.key))]
    persona, conversation, _ = incoming
    said_here = connection.execute(
        "SELECT origin || '-' || origin_seq, role, timestamp, content FROM messages JOIN installation USING (origin) "
        "WHERE id IN (SELECT value FROM json_each(?)) AND origin_seq = id",
        (json.dumps([int(match[2]) for match in matches]),),
    ).fetchall()
    imported = connection.execute(
        "SELECT message, role, timestamp, content FROM imported_conversations AS known "
        "JOIN imported_messages ON conversation_id = known.id JOIN messages ON messages.id = message_id "
        "WHERE known.persona = ? AND source = ? AND conversation = ? "
        "AND message IN (SELECT value FROM json_each(?)) AND instr(message, (SELECT origin FROM installation)) = 0",
        (persona, conversation.source, conversation.key, json.dumps([_base(match[0]) for match in matches])),
    ).fetchall()
    return {key: _Logged(*row) for key, *row in (*said_here, *imported)}


def _key_of(message: ForeignMessage, logged: Mapping[str, _Logged], own: str) -> str:
    if not _KEY.fullmatch(message.key):
        return message.key
    base = _base(message.key)
    known = logged.get(base)
    # A key of this log without a row: a later message here will have it.
    is_free = known is None and not base.startswith(own)
    if is_free:
        return message.key
    return base if known is not None and _is_same(known, message) else f"{base}-{_suffix(message)}"


def _is_same(known: _Logged, message: ForeignMessage) -> bool:
    """Return whether a message is the known one, maybe while that was being written, or with lost files named."""
    begins = known.content.startswith(message.content) or message.content.startswith(known.content)
    if known.role != message.role or not begins:
        return False
    is_unfinished = message.status is Status.INTERRUPTED
    return is_unfinished or message.timestamp in {None, counted_moment(known.timestamp)}


def _base(key: str) -> str:
    match = _KEY.fullmatch(key)
    return f"{match[1]}-{match[2]}" if match else key


def _suffix(message: ForeignMessage) -> str:
    moment = timestamps.to_text(message.timestamp) if message.timestamp else ""
    return blake2b(f"{message.role}|{moment}".encode(), digest_size=_SUFFIX_BYTES).hexdigest()


def _with_keys(incoming: Incoming, keys: Mapping[str, str]) -> Incoming:
    conversation = incoming.conversation
    messages = tuple(
        replace(each, key=keys[each.key], parent=keys.get(each.parent or "", each.parent))
        for each in conversation.messages
    )
    return Incoming(
        incoming.persona,
        replace(conversation, messages=messages, live=tuple(keys.get(key, key) for key in conversation.live)),
        {keys.get(key, key): files for key, files in incoming.attachments.items()},
    )
