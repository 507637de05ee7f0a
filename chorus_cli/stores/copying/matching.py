"""Finds the rows that two logs, source and target, have in common, and converts the other rows for the target."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from chorus_cli.log.rows.message_rows import checksum
from chorus_cli.log.rows.operation_rows import DETAIL
from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.log_acts import Import
from chorus_cli.storage import meta_rows, migrations
from chorus_cli.storage.port import Connection
from chorus_cli.stores.rules.references import (
    CHECKPOINTS,
    ITEMS,
    MESSAGES,
    OPERATIONS,
    SUMMARIES,
    THREADS,
    newest_in_session,
    renewed,
    renewed_checkpoint,
    renewed_session,
)

CONVERSATIONS, SESSIONS = "imported_conversations", "sessions"

_ID = ("id",)


class Table(NamedTuple):
    """A table, and the columns of its primary ``key``.

    Rows of two logs are the same row if their ``identity`` columns are equal; without an identity, the keys decide.
    ``references`` maps columns with ids to the tables of these ids. ``places`` are references that mean a place in the
    log: if their row is missing, the row before it takes its place. Each log computes the ``computed`` columns itself.
    """

    name: str
    key: tuple[str, ...] = _ID
    identity: str = ""
    references: Mapping[str, str] = {}
    places: tuple[str, ...] = ()
    computed: tuple[str, ...] = ("token_count",)

    @property
    def has_id(self) -> bool:
        """Whether each row has an id, which may differ between logs."""
        return self.key == _ID

    @property
    def needed(self) -> list[str]:
        """The references whose rows must be in the target. If it has rows of its own, ``thread_id`` is needed, too."""
        return [each for each in self.references if each in {"operation_id", "conversation_id", "message_id"}]


_ORIGIN = "origin, origin_seq"
TABLES = (
    Table(THREADS, identity="persona, created_at"),
    Table(OPERATIONS, identity=f"persona, {_ORIGIN}, created_at", references={"thread_id": THREADS}),
    Table(
        MESSAGES,
        # Two logs that grew from the same copy may have given the same number to different messages.
        identity=f"{_ORIGIN}, role, (SELECT timestamp FROM messages AS asked "
        "WHERE asked.id = COALESCE(messages.turn_id, messages.id))",
        references={
            "thread_id": THREADS,
            **dict.fromkeys(("turn_id", "revises", "reply_id"), MESSAGES),
            **dict.fromkeys(("introduced_by", "purged_by"), OPERATIONS),
        },
        places=("purged_by",),
    ),
    Table("operation_members", ("operation_id", "position"),
          references={"operation_id": OPERATIONS, "message_id": MESSAGES}),
    Table(
        SUMMARIES,
        identity=_ORIGIN,
        references={
            "thread_id": THREADS,
            **dict.fromkeys(("operation_id", "base_operation_id"), OPERATIONS),
            **dict.fromkeys(("first_message_id", "through_message_id"), MESSAGES),
        },
        places=("first_message_id", "through_message_id"),
    ),
    Table(SESSIONS, ("persona", "session_id"), references={"through_message_id": MESSAGES},
          places=("through_message_id",)),
    Table(
        ITEMS,
        identity=_ORIGIN,
        references={
            "source_message_id": MESSAGES,
            **dict.fromkeys(("forgotten_by", "purged_by"), OPERATIONS),
            **dict.fromkeys(("replaced_by", "may_replace"), ITEMS),
        },
        places=("forgotten_by", "purged_by"),
        computed=("token_count", "importance_score", "tier", "access_count", "last_accessed", "created_at"),
    ),
    Table(CHECKPOINTS, identity="persona, created_at"),
    Table(CONVERSATIONS, identity="persona, source, conversation",
          references={"thread_id": THREADS, "operation_id": OPERATIONS}),
    Table("imported_messages", ("conversation_id", "message"),
          references={"conversation_id": CONVERSATIONS, "message_id": MESSAGES}),
    Table("other_requests", identity="persona, timestamp, purpose, usage", references={"thread_id": THREADS}),
)  # fmt: skip


@cache
def columns() -> Mapping[str, tuple[str, ...]]:
    """Return the columns of each table after all migrations."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        migrations.migrate(memory)
        reading = "SELECT name FROM pragma_table_info(?)"
        return {each.name: tuple(name for (name,) in memory.execute(reading, (each.name,))) for each in TABLES}


Identity: TypeAlias = tuple[Any, ...]
Record: TypeAlias = dict[str, Any]

_CHECKED = ("role", "thread_id", "persona", "timestamp", "content")

_IMPORTED, _CONTENT = "imported messages", "contents of items"
_MESSAGE_THREADS, CONVERSATION_THREADS, _OPERATION_THREADS = (
    f"threads of {table}" for table in (MESSAGES, CONVERSATIONS, OPERATIONS)
)
_WITH_CONVERSATIONS = f"JOIN {CONVERSATIONS} ON id = conversation_id WHERE message_id"
_READ = {
    **{each.name: (each.name, f"id, {each.identity} FROM {each.name} WHERE id > ?") for each in TABLES if each.has_id},
    _IMPORTED: (
        MESSAGES,
        f"message_id, persona, source, conversation, message FROM imported_messages {_WITH_CONVERSATIONS} > ?",
    ),
    _CONTENT: (
        ITEMS,
        f"id, persona, content_hash FROM {ITEMS} WHERE id > ? AND content_hash IS NOT NULL AND replaced_by = 0",
    ),
    _MESSAGE_THREADS: (MESSAGES, f"id, thread_id FROM {MESSAGES} WHERE id > ?"),
    CONVERSATION_THREADS: (CONVERSATIONS, f"id, thread_id FROM {CONVERSATIONS} WHERE id > ?"),
    _OPERATION_THREADS: (OPERATIONS, f"id, thread_id FROM {OPERATIONS} WHERE id > ? AND thread_id IS NOT NULL"),
}
"""For each fact, the table of the rows that have it, and the SQL that reads it with the ids of these rows."""


@dataclass(frozen=True)
class Rows:
    """Facts about the rows of a log, by fact and row id. The fact named like a table is the identity of its rows."""

    facts: Mapping[str, dict[int, Identity]]

    @property
    def identities(self) -> Mapping[str, Mapping[int, Identity]]:
        """By table, the identities of the rows by id."""
        return {each.name: self.facts[each.name] for each in TABLES if each.has_id}

    def threads(self, fact: str = _MESSAGE_THREADS) -> dict[int, int]:
        """Return the threads of messages, or of the rows that another fact is about."""
        return {id_: thread for id_, (thread,) in self.facts[fact].items()}

    def are_all_of(self, other: Rows) -> bool:
        """Return whether the other log has all these rows under the same ids."""
        return all(rows.items() <= other.facts[table].items() for table, rows in self.identities.items())

    def newest(self) -> dict[str, int]:
        """Return the id of the newest row of each table."""
        return {table: max(rows, default=0) for table, rows in self.identities.items()}

    def up_to(self, newest: Mapping[str, int]) -> Rows:
        """Return the facts about the rows up to ``newest``, with the threads of all rows."""
        kept = {_MESSAGE_THREADS, CONVERSATION_THREADS, _OPERATION_THREADS}
        return Rows(
            {
                name: rows if name in kept else {id_: row for id_, row in rows.items() if id_ <= newest.get(table, 0)}
                for (name, rows), (table, _) in zip(self.facts.items(), _READ.values(), strict=True)
            }
        )

    def add(self, newer: Rows) -> None:
        """Add the facts about newer rows."""
        for name, rows in newer.facts.items():
            self.facts[name].update(rows)


def read(connection: Connection, after: Mapping[str, int] | None = None) -> Rows:
    """Read the facts about the rows of a log. ``after`` has for each table the id after which rows are read."""
    newest = after or {}
    asked = {name: connection.execute(f"SELECT {sql}", (newest.get(table, 0),)) for name, (table, sql) in _READ.items()}
    return Rows({name: {id_: tuple(rest) for id_, *rest in found.fetchall()} for name, found in asked.items()})


class Deleted(NamedTuple):
    """Where the rows of deleted personas end, by slug. New personas have these slugs now.

    ``threads`` are the newest threads of the deleted personas, ``operations`` the operations that begin the new ones.
    ``hidden`` has for each hidden memory item its persona and the operation that hides it.
    """

    threads: Mapping[str, int]
    operations: dict[str, int]
    hidden: dict[int, tuple[str, int]]

    def has(self, source: Rows, table: str, id_: int) -> bool:
        """Return whether a row belongs to a deleted persona."""
        if table == OPERATIONS:
            persona: str = source.facts[table][id_][0]
            return id_ <= self.operations.get(persona, 0)
        if table == ITEMS:
            persona, operation = self.hidden.get(id_, ("", 0))
            return 0 < operation <= self.operations.get(persona, 0)
        fact = {MESSAGES: _MESSAGE_THREADS, CONVERSATIONS: CONVERSATION_THREADS}.get(table)
        thread = int(source.facts[fact][id_][0]) if fact else id_ if table == THREADS else 0
        persona, _ = source.facts[THREADS].get(thread, ("", ""))
        return 0 < thread <= self.threads.get(persona, 0)


def deleted(connection: Connection) -> Deleted:
    """Read where the rows of deleted personas end."""
    begun = dict(
        connection.execute(
            f"SELECT persona, MAX(id) FROM operations WHERE kind = '{Clear.kind}' "
            f"AND json_extract({DETAIL}, '$.begins') IS NOT NULL GROUP BY persona"
        ).fetchall()
    )
    hidden = connection.execute(f"SELECT id, persona, forgotten_by FROM {ITEMS} WHERE forgotten_by IS NOT NULL")
    return Deleted(
        {persona: int(meta_rows.value(connection, meta_rows.THREADS_BEFORE + persona) or 0) for persona in begun},
        begun,
        {id_: (persona, operation) for id_, persona, operation in hidden.fetchall()},
    )


class Ids:
    """By table, the ids in the target of rows of the source. A row without such an id is not copied."""

    def __init__(self, by_table: Mapping[str, Mapping[int, int]]) -> None:
        self.by_table = by_table
        self._sorted: dict[str, list[int]] = {}

    def __call__(self, table: str, id_: int) -> int | None:
        """Return the id of a row in the target, ``None`` if the row is not copied."""
        return self.by_table[table].get(id_)

    def place(self, table: str, id_: int) -> int:
        """Return the id in the target of a row, or of the nearest copied row before it, 0 if there is none."""
        known = self._in_order(table)
        position = bisect_right(known, id_)
        return self.by_table[table][known[position - 1]] if position else 0

    def newest(self, table: str) -> int:
        """Return the newest row that is copied, 0 if there is none."""
        return max(self._in_order(table)[-1:], default=0)

    def _in_order(self, table: str) -> list[int]:
        if table not in self._sorted:
            self._sorted[table] = sorted(self.by_table[table])
        return self._sorted[table]


def same(source: Rows) -> Ids:
    """Return the ids for a target in which every row keeps its id."""
    return Ids({table: dict(zip(rows, rows, strict=True)) for table, rows in source.identities.items()})


def matched(source: Rows, target: Rows, of_deleted: Deleted, threads: Mapping[int, int]) -> Ids:
    """Return the ids for a target with rows of its own: rows in common have the ids there, others get new, higher ids.

    Rows of deleted personas get no new id. ``threads`` are the ids of threads that earlier parts have copied.
    """
    found: dict[str, dict[int, int | None]] = {}
    for table, rows in source.identities.items():
        there = _by_identity(target, table)
        found[table] = {id_: there.get(identity) for id_, identity in rows.items()}
    for table, fact in ((MESSAGES, _IMPORTED), (ITEMS, _CONTENT)):
        there = _by_identity(target, fact)
        for id_, identity in source.facts[fact].items():
            found[table][id_] = found[table][id_] or there.get(identity)
    found[THREADS] = _threads(source, target, found, threads)
    for table, newest in target.newest().items():
        fresh = sorted(id_ for id_, new in found[table].items() if new is None)
        kept = (id_ for id_ in fresh if not of_deleted.has(source, table, id_))
        found[table] |= {id_: newest + place for place, id_ in enumerate(kept, 1)}
    return Ids({table: {id_: new for id_, new in ids.items() if new} for table, ids in found.items()})


def _by_identity(rows: Rows, fact: str) -> dict[Identity, int]:
    return {identity: id_ for id_, identity in rows.facts[fact].items()}


def _threads(
    source: Rows, target: Rows, found: Mapping[str, Mapping[int, int | None]], copied: Mapping[int, int]
) -> dict[int, int | None]:
    """Return each thread's id in the target, found by rows in common; an unused thread there is found by identity."""
    used = {*target.threads().values(), *target.threads(CONVERSATION_THREADS).values()}
    unused = {identity: id_ for id_, identity in target.facts[THREADS].items() if id_ not in used}
    threads = {id_: copied.get(id_) or unused.get(identity) for id_, identity in source.facts[THREADS].items()}
    for fact in (_OPERATION_THREADS, CONVERSATION_THREADS, _MESSAGE_THREADS):
        (table, _), others = _READ[fact], target.threads(fact)
        for id_, thread in source.threads(fact).items():
            if (new := found[table].get(id_) or 0) in others:
                threads[thread] = others[new]
    return threads


@dataclass
class Renewal:
    """Converts rows for the target, whose newest message before this part of the copy is ``newest_message``.

    If the copy ``keeps_ids``, a row changes only if it names rows newer than the copy, or has a character that a server
    cannot store. ``threads`` are the ids in the target, by persona, of the threads that will be in both logs.
    ``numbers`` are the numbers of all threads in the target.
    """

    ids: Ids
    keeps_ids: bool
    newest_message: int
    threads: Mapping[str, Sequence[int]] = field(default_factory=dict)
    numbers: Mapping[int, int] = field(default_factory=dict)

    def of(self, table: Table, stored: Record) -> Record | None:
        """Return the row for the target, ``None`` if it is not copied."""
        record: Record = {name: _storable(value) for name, value in stored.items()}
        if table.has_id:
            record["id"] = self.ids(table.name, stored["id"])
            if record["id"] is None:
                return None
        if not self._refer(table, record) or (table.name == SESSIONS and self._is_later(stored["contents"])):
            return None
        if table.name == OPERATIONS and (not self.keeps_ids or stored["kind"] == Import.kind):
            self._renew_operation(record, stored["after_message_id"])
        if table.name == CHECKPOINTS and not self.keeps_ids:
            record["checkpoint_data"] = renewed_checkpoint(record["checkpoint_data"], self.ids)
        if table.name == SESSIONS:
            record["contents"] = renewed_session(record["contents"], self.ids)
        if table.name == MESSAGES and stored["checksum"] == _checksum(stored):
            record["checksum"] = _checksum(record)
        return record

    def _refer(self, table: Table, record: Record) -> bool:
        """Replace the ids in the references of a row; return false if a row that it needs is not copied."""
        needed = table.needed if self.keeps_ids else {*table.needed, "thread_id"}
        for column, referred in table.references.items():
            # Numbers below 1 are no ids: 0 in ``forgotten_by`` marks a proposed item.
            if (id_ := record[column]) is None or id_ < 1:
                continue
            new = self.ids.place(referred, id_) if column in table.places else self.ids(referred, id_)
            if new is None and column in needed:
                return False
            record[column] = 0 if new is None and referred == ITEMS else new
        return True

    def _is_later(self, contents: str) -> bool:
        """Return whether a session was saved after the copy began; the next copy will have it."""
        return any(id_ > self.ids.newest(table) for table, id_ in newest_in_session(contents).items())

    def _renew_operation(self, record: Record, after: int) -> None:
        record["after_message_id"] = self._place(after)
        threads = self.threads.get(record["persona"], ())
        detail = renewed(record["kind"], record["detail"], self.ids, self._place, threads, self.numbers)
        record["detail"] = detail

    def _place(self, after: int) -> int:
        """Return the message that an operation follows in the target, at least the newest from before this part."""
        return max(self.ids.place(MESSAGES, after), self.newest_message)


def _storable(value: object) -> object:
    """Replace the null character, because a server cannot store it."""
    return value.replace("\0", "\u2400") if isinstance(value, str) and "\0" in value else value


def _checksum(record: Record) -> str:
    return checksum(*(record[name] for name in _CHECKED))
