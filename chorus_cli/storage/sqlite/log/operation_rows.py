"""The journal's rows: every operation on a context, and every undo and redo of one.

``introduce`` is the second of the two doors into the log (the first is a turn): an operation that puts messages into
a context names them as members.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chorus_cli.core.errors import DatabaseDamagedError
from chorus_cli.core.log import operations as journal
from chorus_cli.core.log.operations import Kind, Operation, Subject, WindowChange
from chorus_cli.core.time import timestamps
from chorus_cli.storage.sqlite.log import introduced_rows, message_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.core.log.messages import NewMessage
    from chorus_cli.core.log.runs import Runs

_COLUMNS = "id, kind, thread_id, after_message_id, detail, created_at"
_CONCERNING = "persona = ? AND (thread_id IS NULL OR thread_id = ?)"


@dataclass(frozen=True, slots=True)
class NewOperation:
    """An operation about to be stored; ``thread_id`` is ``None`` when it concerns every thread of the persona.

    ``after_message_id`` is left out for the newest message at the moment of storing. ``members`` are rows of the log,
    or messages that the operation puts there.
    """

    persona: str
    kind: Kind
    created_at: datetime
    thread_id: int | None = None
    after_message_id: int | None = None
    members: tuple[int | NewMessage, ...] = ()
    replaced: frozenset[int] = field(default_factory=frozenset)
    subject: Subject | None = None
    window: WindowChange | None = None
    begins: bool = False
    automatic: bool = False
    folds: Runs = ()
    rewords: bool = False


def introduce(connection: sqlite3.Connection, new: NewOperation) -> Operation:
    """Store an operation with its members, and those messages of it that are new, and return it as stored."""
    newest = message_rows.newest_id(connection)
    after = newest if new.after_message_id is None else new.after_message_id
    cursor = connection.execute(
        "INSERT INTO operations(persona, thread_id, kind, after_message_id, detail, created_at) VALUES (?,?,?,?,?,?)",
        (new.persona, new.thread_id, new.kind, after, _detail(new, newest), timestamps.to_text(new.created_at)),
    )
    operation_id = int(cursor.lastrowid or 0)
    ids = introduced_rows.store_members(connection, new.persona, operation_id, new.members)
    connection.executemany(
        "INSERT INTO operation_members VALUES (?, ?, ?)",
        [(operation_id, position, member) for position, member in enumerate(ids)],
    )
    row = connection.execute(f"SELECT {_COLUMNS} FROM operations WHERE id = ?", (operation_id,)).fetchone()
    return _operation(connection, row)


def introduce_unless_spoken(connection: sqlite3.Connection, new: NewOperation, after: int) -> Operation | None:
    """Store an operation unless the user said something to its persona after message ``after`` or is answered now."""
    (spoken,) = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM messages WHERE persona = :persona AND "
        "(id > :after AND role = 'user' AND introduced_by IS NULL OR status = 'streaming'))",
        {"after": after, "persona": new.persona},
    ).fetchone()
    return None if spoken else introduce(connection, new)


def newest_id(connection: sqlite3.Connection, persona: str, thread_id: int) -> int:
    """Return the newest operation that concerns a thread, 0 when there is none.

    A fold is none: it changes the words of a request, not what is in context.
    """
    row = connection.execute(
        f"SELECT id FROM operations WHERE {_CONCERNING} AND kind <> ? ORDER BY id DESC LIMIT 1",
        (persona, thread_id, Kind.COMPACT),
    ).fetchone()
    return int(row[0]) if row else 0


def newest_id_of_all(connection: sqlite3.Connection) -> int:
    """Return the newest operation of all, 0 when there is none."""
    (newest,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM operations").fetchone()
    return int(newest)


def since_base(connection: sqlite3.Connection, persona: str, thread_id: int) -> list[Operation]:
    """Return the operations that concern a thread, oldest first, from its base on: all of them if it has none.

    An undo is always younger than what it takes back, so reading from the newest back, each operation's fate is known
    when it is met and the reading can stop at the first boundary that counts.
    """
    cursor = connection.execute(
        f"SELECT {_COLUMNS} FROM operations WHERE {_CONCERNING} ORDER BY id DESC",
        (persona, thread_id),
    )
    read: list[Operation] = []
    undone: dict[Subject, Kind] = {}
    for row in cursor:
        operation = _operation(connection, row)
        read.append(operation)
        if operation.subject is not None:
            undone.setdefault(operation.subject, operation.kind)
        elif operation.kind in journal.BOUNDARIES and undone.get(Subject(operation_id=operation.id)) is not Kind.UNDO:
            break
    cursor.close()
    return read[::-1]


def all_of(connection: sqlite3.Connection, persona: str, thread_id: int | None) -> list[Operation]:
    """Return every operation that concerns a thread, with ``None`` those of all threads, oldest first."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM operations "
        "WHERE persona = ? AND (thread_id IS NULL OR thread_id = ? OR ? IS NULL) ORDER BY id",
        (persona, thread_id, thread_id),
    ).fetchall()
    return [_operation(connection, row) for row in found]


def undone(connection: sqlite3.Connection, persona: str, thread_id: int) -> list[int]:
    """Return the operations that concern a thread and were taken back, by their ids."""
    words = connection.execute(
        f"SELECT {_COLUMNS} FROM operations WHERE {_CONCERNING} AND kind IN (?, ?)",
        (persona, thread_id, *sorted(journal.REVERSALS)),
    ).fetchall()
    newest = journal.last_words(_operation(connection, row) for row in words)
    return [
        subject.operation_id
        for subject, word in newest.items()
        if word.kind is Kind.UNDO and subject.operation_id is not None
    ]


def _detail(new: NewOperation, newest_message_id: int) -> str:
    detail: dict[str, Any] = {}
    if new.after_message_id not in {None, newest_message_id}:
        detail["newest"] = newest_message_id
    if new.subject is not None:
        detail["undoes" if new.kind is Kind.UNDO else "redoes"] = (
            {"operation": new.subject.operation_id}
            if new.subject.operation_id is not None
            else {"turn": new.subject.turn_id}
        )
    if new.window is not None:
        detail["context_hours"] = {"before": new.window.before, "after": new.window.after}
    if new.begins:
        detail["begins"] = True
    if new.automatic:
        detail["automatic"] = True
    if new.folds:
        detail["folds"] = new.folds
    if new.rewords:
        detail["rewords"] = True
    if new.replaced:
        detail["replaced"] = sorted(new.replaced)
    return json.dumps(detail)


def _operation(connection: sqlite3.Connection, row: Sequence[Any]) -> Operation:
    id_, kind, thread_id, after, text, created_at = row
    try:
        detail = json.loads(text)
        subject = detail.get("undoes") or detail.get("redoes")
        window = detail.get("context_hours")
        return Operation(
            id=id_,
            kind=Kind(kind),
            thread_id=thread_id,
            after_message_id=after,
            created_at=timestamps.from_text(created_at),
            members=_members(connection, id_) if kind in journal.BOUNDARIES else (),
            replaced=frozenset(detail.get("replaced", ())),
            subject=Subject(subject.get("operation"), subject.get("turn")) if subject else None,
            window=WindowChange(window["before"], window["after"]) if window else None,
            begins=bool(detail.get("begins")),
            automatic=bool(detail.get("automatic")),
            newest_message_id=detail.get("newest"),
            folds=tuple((int(first), int(last)) for first, last in detail.get("folds", ())),
            rewords=bool(detail.get("rewords")),
        )
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise DatabaseDamagedError(f"Operation {id_} of the journal cannot be read ({error}).") from error


def _members(connection: sqlite3.Connection, operation_id: int) -> tuple[int, ...]:
    found = connection.execute(
        "SELECT message_id FROM operation_members WHERE operation_id = ? ORDER BY position", (operation_id,)
    ).fetchall()
    return tuple(member for (member,) in found)
