"""Branches of an imported conversation that a newer export has left, or has come back to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.imports.rows import whole_threads
from chorus_cli.imports.rows.whole_threads import ThreadOfPersona
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules import journal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from chorus_cli.imports.rows.known_conversations import Incoming, Known


class Moves(NamedTuple):
    """Messages of the log that leave the live branch, and those that come back to it, by their ids."""

    supersedes: tuple[int, ...] = ()
    revives: tuple[int, ...] = ()


def moves(connection: sqlite3.Connection, incoming: Incoming, known: Known) -> Moves:
    """Return the moves by which the known messages of a conversation are on the branches that the export has."""
    present = _present(incoming, known)
    moved = journal.moved_off(operation_rows.imports_of(connection, incoming.persona))
    found = connection.execute(
        "SELECT id, superseded FROM messages WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps([*present]),),
    ).fetchall()
    off = {id_: moved.get(id_, bool(superseded)) for id_, superseded in found}
    return Moves(
        tuple(id_ for id_, is_off in off.items() if not is_off and not present[id_]),
        tuple(id_ for id_, is_off in off.items() if is_off and present[id_]),
    )


def moves_of_same_messages(connection: sqlite3.Connection, incoming: Incoming, known: Known) -> Moves:
    """Return the moves if the export has nothing new to say.

    There are none if it is older than the log, that is, lacks an imported message or has the branches that a newer
    import has left; nor if the log itself would export the same branches, which commands such as a retry may have
    changed here.
    """
    found = moves(connection, incoming, known)
    if not any(found):
        return found
    conversation = incoming.conversation
    imported = connection.execute("SELECT message FROM imported_messages WHERE conversation_id = ?", (known.id,))
    keys = {each.key for each in conversation.messages}
    if not known.id or not keys.issuperset(key for (key,) in imported):
        return Moves()
    if _was_left(connection, incoming.persona, _present(incoming, known)):
        return Moves()
    here = whole_threads.conversation(connection, ThreadOfPersona(incoming.persona, known.thread_id))
    return found if set(conversation.live) != keys.intersection(here.live) else Moves()


def _present(incoming: Incoming, known: Known) -> dict[int, bool]:
    """Return whether messages of the log are on the live branch of an export, by their ids."""
    live = frozenset(incoming.conversation.live)
    keys = (each.key for each in incoming.conversation.messages if each.key in known.messages)
    return {known.messages[key]: key in live for key in keys}


def _was_left(connection: sqlite3.Connection, persona: str, present: Mapping[int, bool]) -> bool:
    """Return whether an import that counts left all these messages so; they are otherwise now."""
    rows = connection.execute(
        "SELECT id, NOT superseded, COALESCE(introduced_by, 0) FROM messages "
        "WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps([*present]),),
    ).fetchall()
    is_live = {id_: bool(live) for id_, live, _ in rows}
    complete_since = max((operation_id for *_, operation_id in rows), default=0)
    for each in journal.effective(operation_rows.imports_of(connection, persona)):
        is_live |= {id_: not is_off for id_, is_off in journal.moved_off([each]).items() if id_ in is_live}
        if each.id >= complete_since and is_live == present:
            return True
    return False
