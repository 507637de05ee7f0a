"""The journal's rows: every operation on a context, and every undo and redo of one.

``introduce`` is the second of the two doors into the log (the first is a turn): an operation that puts messages into
a context names them as members.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

from chorus_cli.core.errors import JournalError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.act import Inclusion
from chorus_cli.log.rules.acts import ACTS, Clear, Fork, Redo, Reversal, Subject, Undo
from chorus_cli.log.rules.log_acts import Import, MemoryAct, Unreadable
from chorus_cli.log.rules.operations import NewOperation, Operation

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

    from chorus_cli.log.rules.act import Act

_COLUMNS = "id, number, kind, thread_id, after_message_id, detail, created_at"
DETAIL = "CASE WHEN json_valid(operations.detail) THEN operations.detail END"
"""The detail of an operation as SQL reads it, which is none if it is no JSON."""

_ON_MEMORY = ", ".join(f"'{kind}'" for kind, act in ACTS.items() if issubclass(act, MemoryAct))
SUBJECT = f"COALESCE(json_extract({DETAIL}, '$.undoes.operation'), json_extract({DETAIL}, '$.redoes.operation'))"
_NOT_ON_MEMORY = (
    f"kind NOT IN ({_ON_MEMORY}) AND (kind NOT IN ('{Undo.kind}', '{Redo.kind}') OR NOT EXISTS("
    f"SELECT 1 FROM operations AS subject WHERE subject.id = {SUBJECT} "
    f"AND subject.kind IN ({_ON_MEMORY})))"
)
_MAKES_NO_SENSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_CONCERNING_ANY = "persona = ? AND (thread_id IS NULL OR thread_id = ? OR ? IS NULL)"


def introduce(connection: sqlite3.Connection, new: NewOperation) -> Operation:
    """Store an operation with its members, and those messages of it that are new, and return it as stored."""
    (newest,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()
    after = newest if new.after_message_id is None else new.after_message_id
    detail: dict[str, Any] = new.act.detail()
    if after != newest:
        detail["newest"] = newest
    if new.automatic:
        detail["automatic"] = True
    cursor = connection.execute(
        "INSERT INTO operations(persona, thread_id, kind, after_message_id, detail, created_at) VALUES (?,?,?,?,?,?)",
        (new.persona, new.thread_id, new.act.kind, after, json.dumps(detail), timestamps.to_text(new.created_at)),
    )
    operation_id = int(cursor.lastrowid or 0)
    act = new.act
    if isinstance(act, Inclusion):
        members = tuple(message_rows.insert_members(connection, operation_id, new))
        connection.executemany(
            "INSERT INTO operation_members VALUES (?, ?, ?)",
            [(operation_id, position, member) for position, member in enumerate(members)],
        )
        act = replace(act, members=members)
    at = new.created_at.astimezone(UTC)
    # A trigger gives the number, which RETURNING would not know yet.
    (number,) = connection.execute("SELECT number FROM operations WHERE id = ?", (operation_id,)).fetchone()
    return Operation(operation_id, act, new.thread_id, after, at, new.automatic, detail.get("newest"), number)


def introduce_unless_spoken(connection: sqlite3.Connection, new: NewOperation, after: int) -> Operation | None:
    """Store an operation unless the user said something to its persona after message ``after`` or is answered now."""
    (spoken,) = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM messages WHERE persona = :persona AND "
        "(id > :after AND role = 'user' AND introduced_by IS NULL OR status = 'streaming'))",
        {"after": after, "persona": new.persona},
    ).fetchone()
    return None if spoken else introduce(connection, new)


def introduce_reversal(connection: sqlite3.Connection, new: NewOperation) -> Operation:
    """Store an undo or a redo, unless another program has done the same meanwhile.

    Raises:
        JournalError: its subject is undone already, or no longer undone.
    """
    # Of a long journal only the undos and redos are read.
    act, undone = new.act, journal.undone(_reversals(connection, new.persona, new.thread_id))
    if isinstance(act, Undo | Redo) and (act.subject in undone) == isinstance(act, Undo):
        raise JournalError("Another Chorus has undone or redone the same meanwhile. Nothing was changed.")
    return introduce(connection, new)


def newest_id_of_all(connection: sqlite3.Connection) -> int:
    """Return the newest operation of all, 0 when there is none."""
    (newest,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM operations").fetchone()
    return int(newest)


def beginning(connection: sqlite3.Connection, persona: str) -> int:
    """Return the newest message before a persona was made, 0 if no earlier one had its folder.

    The messages up to that one are of earlier personas (compare ``journal.own``).
    """
    row = connection.execute(
        f"SELECT after_message_id FROM operations WHERE persona = ? AND kind = '{Clear.kind}' "
        f"AND json_extract({DETAIL}, '$.begins') ORDER BY id DESC LIMIT 1",
        (persona,),
    ).fetchone()
    return int(row[0]) if row else 0


def since_boundary(connection: sqlite3.Connection, persona: str, thread_id: int | None) -> list[Operation]:
    """Return the operations that concern a thread, oldest first, from its boundary on: all of them if it has none.

    With ``None`` those of all threads are returned, from the newest boundary that concerns them all. Those on the
    memory are left out, which may be many and change no view.
    An undo is always younger than its subject, so reading from the newest back, the fate of each operation is known
    when it is met and the reading can stop at the first boundary that counts.
    """
    cursor = connection.execute(
        f"SELECT {_COLUMNS} FROM operations WHERE {_CONCERNING_ANY} AND {_NOT_ON_MEMORY} ORDER BY id DESC",
        (persona, thread_id, thread_id),
    )
    read: list[Operation] = []
    latest: dict[Subject, Operation] = {}
    for row in cursor:
        operation = _operation(connection, row)
        read.append(operation)
        if isinstance(operation.act, Reversal):
            latest.setdefault(operation.act.subject, operation)
        elif (
            operation.act.is_boundary
            and (thread_id is not None or operation.thread_id is None)
            and not _is_undone(latest.get(Subject(operation_id=operation.id)))
        ):
            break
    cursor.close()
    return read[::-1]


def boundary(connection: sqlite3.Connection, persona: str, thread_id: int) -> Operation | None:
    """Return the boundary of a thread, ``None`` if it has none; only boundaries and their undos and redos are read."""
    kinds = (*(kind for kind, act in ACTS.items() if act.is_boundary), Undo.kind, Redo.kind)
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM operations WHERE {_CONCERNING_ANY} AND kind IN (SELECT value FROM json_each(?))",
        (persona, thread_id, thread_id, json.dumps(kinds)),
    ).fetchall()
    return journal.boundary([_operation(connection, row) for row in found]) if found else None


def _is_undone(reversal: Operation | None) -> bool:
    return reversal is not None and isinstance(reversal.act, Undo)


def all_of(connection: sqlite3.Connection, persona: str, thread_id: int | None) -> list[Operation]:
    """Return every operation that concerns a thread, with ``None`` those of all threads, oldest first."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM operations WHERE {_CONCERNING_ANY} ORDER BY id",
        (persona, thread_id, thread_id),
    ).fetchall()
    return [_operation(connection, row) for row in found]


def unreadable(connection: sqlite3.Connection) -> list[Operation]:
    """Return the operations of all personas that cannot be read, oldest first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM operations ORDER BY id")
    return [each for row in rows if (each := _operation(connection, row)).act == Unreadable()]


def set_aside(connection: sqlite3.Connection) -> None:
    """Keep each operation that cannot be read as one that changes nothing."""
    connection.executemany(
        "UPDATE operations SET detail = json_object('kind', kind, 'detail', detail), kind = ? WHERE id = ?",
        [(Unreadable.kind, each.id) for each in unreadable(connection)],
    )


def numbers(connection: sqlite3.Connection, persona: str) -> dict[int, int]:
    """Return the numbers of all operations of a persona by their ids."""
    return dict(connection.execute("SELECT id, number FROM operations WHERE persona = ?", (persona,)).fetchall())


def forks_of(connection: sqlite3.Connection, persona: str, thread_id: int) -> list[Operation]:
    """Return the forks that were made of a thread, with every undo and redo of them, oldest first."""
    forks = f"persona = :persona AND kind = '{Fork.kind}' AND json_extract({DETAIL}, '$.thread') = :thread"
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM operations WHERE {forks} OR (persona = :persona "
        f"AND kind IN ('{Undo.kind}', '{Redo.kind}') AND {SUBJECT} IN (SELECT id FROM operations WHERE {forks})) "
        "ORDER BY id",
        {"persona": persona, "thread": thread_id},
    ).fetchall()
    return [_operation(connection, row) for row in found]


def imports_of(connection: sqlite3.Connection, persona: str | None = None) -> list[Operation]:
    """Return the imports of a persona or of all, with every undo and redo of them, oldest first."""
    of_persona = "persona = :persona" if persona is not None else "TRUE"
    imports = f"{of_persona} AND kind = '{Import.kind}'"
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM operations WHERE {imports} OR ({of_persona} "
        f"AND kind IN ('{Undo.kind}', '{Redo.kind}') AND {SUBJECT} IN (SELECT id FROM operations WHERE {imports})) "
        "ORDER BY id",
        {"persona": persona},
    ).fetchall()
    return [_operation(connection, row) for row in found]


def undone_imports(connection: sqlite3.Connection, persona: str | None = None) -> frozenset[int]:
    """Return the imports of a persona or of all that are undone, by their ids."""
    return frozenset(subject.operation_id or 0 for subject in journal.undone(imports_of(connection, persona)))


def undone(connection: sqlite3.Connection, persona: str, thread_id: int) -> list[int]:
    """Return the operations that concern a thread and were taken back, by their ids."""
    subjects = journal.undone(_reversals(connection, persona, thread_id))
    return [subject.operation_id for subject in subjects if subject.operation_id is not None]


def put_in_by(connection: sqlite3.Connection, operation: Operation, thread_id: int) -> list[int]:
    """Return the members that an operation puts into the context of a thread."""
    brought, members = set(operation.brought_into(thread_id)), operation.members_in(thread_id)
    said_in = message_rows.turns_of(connection, members)
    return [member for member in members if member in brought or said_in[member][0] == thread_id]


def said_elsewhere(connection: sqlite3.Connection, persona: str, thread_id: int) -> set[int]:
    """Return the messages of other threads that operations which count have put into the context of a thread."""
    # An edit may keep the messages of another thread after the restore that put them in was undone.
    including = json.dumps([kind for kind, act in ACTS.items() if issubclass(act, Inclusion)])
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM operations WHERE {_CONCERNING_ANY} AND kind IN (SELECT value FROM json_each(?))",
        (persona, thread_id, thread_id, including),
    ).fetchall()
    if not found:
        return set()
    out = set(undone(connection, persona, thread_id))
    counting = [each for each in (_operation(connection, row) for row in found) if each.id not in out]
    brought = {member for each in counting for member in each.brought_into(thread_id)}
    return {id_ for id_, (said_in, _) in message_rows.turns_of(connection, brought).items() if said_in != thread_id}


def forks_with(connection: sqlite3.Connection, message_ids: Iterable[int]) -> dict[int, frozenset[int]]:
    """Return the threads that were opened as forks with each of these messages, by its id."""
    found = connection.execute(
        "SELECT message_id, json_group_array(thread_id) FROM operations JOIN operation_members ON operation_id = id "
        f"WHERE kind = '{Fork.kind}' AND message_id IN (SELECT value FROM json_each(?)) GROUP BY message_id",
        (json.dumps(list(message_ids)),),
    )
    return {message_id: frozenset(json.loads(threads)) for message_id, threads in found}


def _reversals(connection: sqlite3.Connection, persona: str, thread_id: int | None) -> list[Operation]:
    """Return every undo and redo that concerns a thread, with ``None`` those of all threads."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM operations WHERE {_CONCERNING_ANY} AND kind IN (?, ?)",
        (persona, thread_id, thread_id, Undo.kind, Redo.kind),
    ).fetchall()
    return [_operation(connection, row) for row in found]


def act_of(connection: sqlite3.Connection, operation_id: int, kind: str, detail: Mapping[str, Any]) -> Act:
    """Return the act of an operation, by its kind and the JSON of its row; `Unreadable` if these make no sense."""
    try:
        found = ACTS[kind]
        return found.from_detail(detail, _members(connection, operation_id) if issubclass(found, Inclusion) else ())
    except _MAKES_NO_SENSE:
        return Unreadable()


def _operation(connection: sqlite3.Connection, row: Sequence[Any]) -> Operation:
    id_, number, kind, thread_id, after, text, created_at = row
    try:
        detail = json.loads(text)
        return Operation(
            id=id_,
            act=act_of(connection, id_, kind, detail),
            thread_id=thread_id,
            after_message_id=after,
            created_at=timestamps.from_text(created_at),
            automatic=bool(detail.get("automatic")),
            newest_message_id=detail.get("newest"),
            number=number,
        )
    except _MAKES_NO_SENSE:
        return Operation(id_, Unreadable(), thread_id, after, timestamps.EARLIEST, number=number)


def _members(connection: sqlite3.Connection, operation_id: int) -> tuple[int, ...]:
    found = connection.execute(
        "SELECT message_id FROM operation_members WHERE operation_id = ? ORDER BY position", (operation_id,)
    ).fetchall()
    return tuple(member for (member,) in found)
