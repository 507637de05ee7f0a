"""The journal's rows: storing and reading operations, and finding the messages that they put in or took out.

The messages that an operation puts into a context are its members. ``introduce`` stores every operation, and those of
its members that are new messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from chorus_cli.core.errors import JournalError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import (
    ACTS,
    Clear,
    Edit,
    Fork,
    Redo,
    Retry,
    Reversal,
    SettingChange,
    Subject,
    Undo,
    Window,
)
from chorus_cli.log.rules.journal import LogMarks
from chorus_cli.log.rules.log_acts import Act, Import, Inclusion, MemoryAct, Unreadable
from chorus_cli.log.rules.messages import Message, Status, is_filled
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.log.rules.wording import turn
from chorus_cli.storage.port import Connection, Row, Rows

_ALONE = ", ".join(f"'{kind}'" for kind, act in ACTS.items() if not issubclass(act, Inclusion))
MEMBERS = (
    f"CASE WHEN kind NOT IN ({_ALONE}) THEN (SELECT json_group_array(message_id) FROM (SELECT message_id "
    "FROM operation_members WHERE operation_id = operations.id ORDER BY position) AS members) END"
)
"""SQL: the ids of an operation's members, as JSON in their order; NULL if its kind has none."""

_COLUMNS = f"id, number, kind, thread_id, after_message_id, detail, {MEMBERS}, created_at"
DETAIL = "CASE WHEN json_valid(operations.detail) THEN operations.detail END"
"""SQL: the detail of an operation, or NULL if it is no JSON."""

SUBJECT = (
    f"CAST(COALESCE(json_extract({DETAIL}, '$.undoes.operation'), json_extract({DETAIL}, '$.redoes.operation')) "
    "AS BIGINT)"
)


def _without(kinds: Iterable[str]) -> str:
    """Return the SQL condition for operations that are not of these kinds, and do not undo or redo one of them."""
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    return (
        f"kind NOT IN ({listed}) AND (kind NOT IN ('{Undo.kind}', '{Redo.kind}') OR NOT EXISTS("
        f"SELECT 1 FROM operations AS subject WHERE subject.id = {SUBJECT} AND subject.kind IN ({listed})))"
    )


_PAGE_ROWS = 200
_AFTER_ALL = (1 << 63) - 1
_NOT_ON_MEMORY = _without(kind for kind, act in ACTS.items() if issubclass(act, MemoryAct))
INSTALLATIONS_HERE = "(SELECT origin FROM installation UNION ALL SELECT origin FROM other_installations)"
_OF_FILES_HERE = f"(origin IN {INSTALLATIONS_HERE} OR {_without((Window.kind, SettingChange.kind))})"
"""SQL: the condition that an operation does not concern a settings file of another machine."""
_MAKES_NO_SENSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_CONCERNING_ANY = f"persona = ? AND (thread_id IS NULL OR thread_id = ? OR ? IS NULL) AND {_OF_FILES_HERE}"


def introduce(connection: Connection, new: NewOperation) -> Operation:
    """Store an operation with its members, and the new messages among the members; return the operation as stored."""
    newest = message_rows.newest_id(connection)
    after = newest if new.after_message_id is None else new.after_message_id
    detail: dict[str, Any] = new.act.detail()
    if after != newest:
        detail["newest"] = newest
    if new.automatic:
        detail["automatic"] = True
    (operation_id,) = connection.execute(
        "INSERT INTO operations(persona, thread_id, kind, after_message_id, detail, created_at) VALUES (?,?,?,?,?,?) "
        "RETURNING id",
        (new.persona, new.thread_id, new.act.kind, after, json.dumps(detail), timestamps.to_text(new.created_at)),
    ).fetchone()
    act = new.act
    members = tuple(message_rows.insert_members(connection, operation_id, new)) if new.members else ()
    if isinstance(act, Inclusion):
        connection.executemany(
            "INSERT INTO operation_members VALUES (?, ?, ?)",
            [(operation_id, position, member) for position, member in enumerate(members)],
        )
        act = replace(act, members=members)
    elif isinstance(act, Retry) and members:
        store_wording(connection, operation_id, members[0])
    at = new.created_at.astimezone(UTC)
    # A trigger sets the number after the insert, so RETURNING would not return it.
    (number,) = connection.execute("SELECT number FROM operations WHERE id = ?", (operation_id,)).fetchone()
    return Operation(operation_id, act, new.thread_id, after, at, new.automatic, detail.get("newest"), number=number)


def store_wording(connection: Connection, operation_id: int, message_id: int) -> None:
    """Store in a retry the id of the message that has the other wording."""
    (text,) = connection.execute("SELECT detail FROM operations WHERE id = ?", (operation_id,)).fetchone()
    detail = json.dumps({**json.loads(text), "wording": message_id})
    connection.execute("UPDATE operations SET detail = ? WHERE id = ?", (detail, operation_id))


def introduce_unless_spoken(connection: Connection, new: NewOperation, after: int) -> Operation | None:
    """Store an operation; return ``None`` instead if its persona has a user message after ``after`` or is replying."""
    (spoken,) = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM messages WHERE persona = :persona AND "
        "(id > :after AND role = 'user' AND introduced_by IS NULL OR status = 'streaming'))",
        {"after": after, "persona": new.persona},
    ).fetchone()
    return None if spoken else introduce(connection, new)


def introduce_reversal(connection: Connection, new: NewOperation) -> Operation:
    """Store an undo or a redo; raise `JournalError` if another process has done the same meanwhile."""
    # Only undos and redos are read, because the journal may be long.
    act, undone = new.act, journal.undone(_of_kinds(connection, new.persona, new.thread_id, (Undo, Redo)))
    if isinstance(act, Undo | Redo) and (act.subject in undone) == isinstance(act, Undo):
        raise JournalError("Another Chorus has undone or redone this meanwhile. Nothing was changed.")
    return introduce(connection, new)


def run_of(connection: Connection, id_: int) -> str:
    """Return the run that made an operation, empty if the log does not know it."""
    found = connection.execute("SELECT run FROM operations WHERE id = ?", (id_,)).fetchone()
    return found[0] or "" if found else ""


def newest_id_of_all(connection: Connection) -> int:
    """Return the id of the newest operation of all, 0 when there is none."""
    (newest,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM operations").fetchone()
    return int(newest)


def beginning(connection: Connection, persona: str) -> int:
    """Return the id of the newest message when the persona was made, 0 if unknown (see ``journal.own``)."""
    row = connection.execute(
        f"SELECT after_message_id FROM operations WHERE persona = ? AND kind = '{Clear.kind}' "
        f"AND json_extract({DETAIL}, '$.begins') IS NOT NULL ORDER BY id DESC LIMIT 1",
        (persona,),
    ).fetchone()
    return int(row[0]) if row else 0


def since_boundary(connection: Connection, persona: str, thread_id: int | None) -> list[Operation]:
    """Return the operations that concern a thread, oldest first, from its boundary on; without a boundary, return all.

    For ``None``, begin at the newest boundary that concerns all threads, and return operations on any thread.
    Operations on the memory are left out, because they may be many and change no view. Rows are read from newest to
    oldest, so an undo is known before its subject is read, and reading ends at the first boundary that is not undone.
    Older imports that were undone since the boundary are returned too.
    """
    read: list[Operation] = []
    latest: dict[Subject, Operation] = {}
    for row in _newest_first(connection, persona, thread_id):
        operation = _operation(row)
        if thread_id is not None and not operation.concerns(thread_id):
            continue
        read.append(operation)
        if isinstance(operation.act, Reversal):
            latest.setdefault(operation.act.subject, operation)
        elif (
            operation.act.is_boundary
            and (thread_id is not None or (operation.thread_id is None and operation.concerns(None)))
            and not isinstance(latest.get(Subject(operation_id=operation.id), operation).act, Undo)
        ):
            break
    older = {subject.operation_id for subject in latest} - {each.id for each in read} - {None}
    if not older:
        return read[::-1]
    are_older = f"kind = '{Import.kind}' AND id IN (SELECT value FROM json_each(?))"
    return [*_selected(connection, are_older, (json.dumps([*older]),)), *read[::-1]]


def _newest_first(connection: Connection, persona: str, thread_id: int | None) -> Iterator[Row]:
    """Yield the rows of operations that may concern a context, in pages, because a server sends all rows at once."""
    before = _AFTER_ALL
    while True:
        page = connection.execute(
            f"SELECT {_COLUMNS} FROM operations WHERE {_CONCERNING_ANY} AND {_NOT_ON_MEMORY} AND id < ? "
            "ORDER BY id DESC LIMIT ?",
            (persona, thread_id, thread_id, before, _PAGE_ROWS),
        ).fetchall()
        yield from page
        if len(page) < _PAGE_ROWS:
            return
        before = page[-1][0]


def boundary(connection: Connection, persona: str, thread_id: int) -> Operation | None:
    """Return the boundary of a thread, ``None`` if it has none."""
    found = since_boundary(connection, persona, thread_id)
    return journal.boundary(found) if any(each.act.is_boundary for each in found) else None


def all_of(connection: Connection, persona: str, thread_id: int | None) -> list[Operation]:
    """Return every operation that concerns a thread (``None``: any), but no change of settings on another machine."""
    return _concerning(thread_id, _selected(connection, _CONCERNING_ANY, (persona, thread_id, thread_id)))


def newer(connection: Connection, persona: str, thread_id: int, after: int, but_of: str) -> list[tuple[Operation, str]]:
    """Return a thread's operations after ``after``, each with its run, except those on the memory or of ``but_of``."""
    found = connection.execute(
        f"SELECT id, COALESCE(run, '') FROM operations WHERE {_CONCERNING_ANY} AND {_NOT_ON_MEMORY} AND id > ?",
        (persona, thread_id, thread_id, after),
    ).fetchall()
    runs = {id_: str(run) for id_, run in found if run != but_of}
    return [(each, runs[each.id]) for each in of_ids(connection, runs) if each.concerns(thread_id)]


def of_ids(connection: Connection, ids: Iterable[int]) -> list[Operation]:
    """Return the operations of these ids, oldest first."""
    known = json.dumps([*ids])
    return _selected(connection, "id IN (SELECT value FROM json_each(?))", (known,)) if known != "[]" else []


def unreadable(connection: Connection) -> list[Operation]:
    """Return the operations of all personas that cannot be read, oldest first."""
    return [each for each in _selected(connection, "TRUE") if each.act == Unreadable()]


def set_aside(connection: Connection) -> None:
    """Give each operation that cannot be read the kind of `Unreadable`; its detail keeps the old kind and detail."""
    among = json.dumps([each.id for each in unreadable(connection)])
    found = connection.execute(
        "SELECT id, kind, detail FROM operations WHERE id IN (SELECT value FROM json_each(?))", (among,)
    ).fetchall()
    connection.executemany(
        "UPDATE operations SET detail = ?, kind = ? WHERE id = ?",
        [(json.dumps({"kind": kind, "detail": detail}), Unreadable.kind, id_) for id_, kind, detail in found],
    )


def numbers(connection: Connection, persona: str) -> dict[int, int]:
    """Return the numbers of all operations of a persona by their ids."""
    return dict(connection.execute("SELECT id, number FROM operations WHERE persona = ?", (persona,)).fetchall())


def forks_of(connection: Connection, persona: str, thread_id: int) -> list[Operation]:
    """Return the forks of a thread, with every undo and redo of these forks, oldest first."""
    forks = f"kind = '{Fork.kind}' AND CAST(json_extract({DETAIL}, '$.thread') AS BIGINT) = :thread"
    return _with_reversals(connection, persona, forks, thread_id)


def imports_of(connection: Connection, persona: str | None = None) -> list[Operation]:
    """Return the imports of a persona (``None``: of all), with every undo and redo of these imports, oldest first."""
    return _with_reversals(connection, persona, f"kind = '{Import.kind}'")


def _with_reversals(connection: Connection, persona: str | None, condition: str, thread_id: int = 0) -> list[Operation]:
    """Return the operations, of a persona or of all, that meet a condition, with every undo and redo of them."""
    of_persona = "persona = :persona" if persona is not None else "TRUE"
    return _selected(
        connection,
        f"{of_persona} AND ({condition} OR kind IN ('{Undo.kind}', '{Redo.kind}') "
        f"AND {SUBJECT} IN (SELECT id FROM operations WHERE {of_persona} AND {condition}))",
        {"persona": persona, "thread": thread_id},
    )


def undone_imports(connection: Connection, persona: str | None = None) -> frozenset[int]:
    """Return the ids of the undone imports of a persona (``None``: of all)."""
    return frozenset(subject.operation_id or 0 for subject in journal.undone(imports_of(connection, persona)))


def said_elsewhere(connection: Connection, persona: str, thread_id: int) -> set[int]:
    """Return the ids of messages, said in other threads, that effective operations put into the context of a thread."""
    # An edit may keep the messages of another thread after the restore that put them in was undone.
    including = [act for act in ACTS.values() if issubclass(act, Inclusion)]
    counting = journal.effective(_of_kinds(connection, persona, thread_id, (*including, Undo, Redo)))
    brought = {member for each in counting for member in each.brought_into(thread_id)}
    return {id_ for id_, (said_in, _) in message_rows.turns_of(connection, brought).items() if said_in != thread_id}


def forks_with(connection: Connection, message_ids: Iterable[int]) -> dict[int, frozenset[int]]:
    """Return, by the id of each message, the threads whose fork has this message as a member."""
    found = connection.execute(
        "SELECT message_id, json_group_array(thread_id) FROM operations JOIN operation_members ON operation_id = id "
        f"WHERE kind = '{Fork.kind}' AND message_id IN (SELECT value FROM json_each(?)) GROUP BY message_id",
        (json.dumps(list(message_ids)),),
    )
    return {message_id: frozenset(json.loads(threads)) for message_id, threads in found}


def _of_kinds(
    connection: Connection, persona: str, thread_id: int | None, acts: Iterable[type[Act]]
) -> list[Operation]:
    """Return the operations with acts of these classes that concern a thread (``None``: any thread)."""
    condition = f"{_CONCERNING_ANY} AND kind IN (SELECT atom FROM json_each(?))"
    kinds = json.dumps([act.kind for act in acts])
    return _concerning(thread_id, _selected(connection, condition, (persona, thread_id, thread_id, kinds)))


def _concerning(thread_id: int | None, operations: list[Operation]) -> list[Operation]:
    """Leave out the operations on all threads that do not concern a thread, with their undos and redos."""
    others = {each.id for each in operations if thread_id is not None and not each.concerns(thread_id)}
    subjects = {Subject(operation_id=id_) for id_ in others}
    return [each for each in operations if each.id not in others and each.subject not in subjects]


def _selected(
    connection: Connection, condition: str, parameters: Sequence[object] | Mapping[str, object] = ()
) -> list[Operation]:
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM operations WHERE {condition} ORDER BY id", parameters
    ).fetchall()
    return [_operation(row) for row in found]


def act_of(kind: str, detail: Mapping[str, Any], members: str | None = None) -> Act:
    """Return the act of an operation, by its kind, detail and `MEMBERS`; `Unreadable` if they make no sense."""
    try:
        return ACTS[kind].from_detail(detail, tuple(json.loads(members)) if members else ())
    except _MAKES_NO_SENSE:
        return Unreadable()


def _operation(row: Sequence[Any]) -> Operation:
    id_, number, kind, thread_id, after, text, members, created_at = row
    try:
        detail = json.loads(text)
        return Operation(
            id=id_,
            act=act_of(kind, detail, members),
            thread_id=thread_id,
            after_message_id=after,
            created_at=timestamps.from_text(created_at),
            automatic=bool(detail.get("automatic")),
            newest_message_id=detail.get("newest"),
            only=tuple((first, last) for first, last in detail.get("only", ())),
            number=number,
        )
    except _MAKES_NO_SENSE:
        return Operation(id_, Unreadable(), thread_id, after, timestamps.EARLIEST, number=number)


def import_marks(connection: Connection, persona: str | None = None) -> LogMarks:
    """Return the marks that the imports of a persona (``None``: of all) leave on messages."""
    return journal.log_marks(imports_of(connection, persona), 0)


NOT_OFF = (
    "COALESCE(introduced_by, 0) NOT IN (SELECT value FROM json_each(:undone)) "
    "AND id NOT IN (SELECT value FROM json_each(:off)) "
    "AND (superseded = 0 OR id IN (SELECT value FROM json_each(:back)))"
)
"""SQL: a message's import is not undone, and the message is on the live branch; `moves` returns the parameters."""


def moves(connection: Connection, persona: str | None = None) -> dict[str, str]:
    """Return the parameters of ``NOT_OFF`` for the imports of a persona (``None``: of all)."""
    marks = import_marks(connection, persona)
    return {
        "undone": json.dumps([*marks.undone_operations]),
        "off": json.dumps([id_ for id_, is_off in marks.moved_off.items() if is_off]),
        "back": json.dumps([id_ for id_, is_off in marks.moved_off.items() if not is_off]),
    }


def is_spoken_after(connection: Connection, persona: str, after: int) -> bool:
    """Return whether the user or a persona said anything after a message; a retry without words does not count."""
    cursor = connection.execute(
        "SELECT introduced_by, run, status, content FROM messages WHERE id > ? AND persona = ? ORDER BY id",
        (after, persona),
    )
    return any(
        introduced_by is None or (run is not None and (status == Status.STREAMING or content.strip()))
        for introduced_by, run, status, content in cursor
    )


def newest_of_thread(connection: Connection, thread_id: int) -> Rows:
    """Return a row with the time of the newest message of a thread, and the operation that put it in."""
    return connection.execute(
        "SELECT timestamp, introduced_by FROM messages WHERE thread_id = ? ORDER BY timestamp DESC LIMIT 1",
        (thread_id,),
    )


def last_spoken_at(connection: Connection, thread_id: int, newest_row: Rows | None = None) -> datetime | None:
    """Return when something was last said in a thread; ``None`` if nothing was said or the time cannot be read.

    Messages that an operation put in were not said, except replies of retries and imported messages that count.
    ``newest_row`` is the result of `newest_of_thread`, if the caller has asked for it before.
    """
    newest = (newest_row or newest_of_thread(connection, thread_id)).fetchone()
    if newest is not None and newest[1] is not None:
        newest = connection.execute(
            "SELECT timestamp FROM messages WHERE thread_id = :thread "
            "AND (introduced_by IS NULL OR run IS NOT NULL "
            "OR introduced_by IN (SELECT id FROM operations WHERE kind = 'import')) "
            f"AND {NOT_OFF} ORDER BY timestamp DESC LIMIT 1",
            {"thread": thread_id, **moves(connection)},
        ).fetchone()
    return message_rows.counted_moment(newest[0]) if newest else None


def name_of(connection: Connection, done: Message | Operation) -> str:
    """Name a turn, or an operation with the message that it edits."""
    if isinstance(done, Message):
        replies = message_rows.replies(connection, done)
        has_reply = (is_filled(row) or row.tool_calls or row.status is Status.STREAMING for row in replies)
        return turn(done, is_answered=any(has_reply))
    if isinstance(done.act, Edit | Retry) and done.act.message:
        words = "".join(row.content for row in message_rows.rows(connection, [done.act.message]))
        return done.describe() + (f' "{shortened(words)}"' if words else "")
    return done.describe()
