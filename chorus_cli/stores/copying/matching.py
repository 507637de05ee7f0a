"""Finds the rows that two logs have in common, and makes of each other row the row that the other log is to have."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from chorus_cli.log.rows.message_rows import checksum
from chorus_cli.log.rows.operation_rows import DETAIL
from chorus_cli.log.rules.acts import Clear
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection
from chorus_cli.stores.copying.tables import CONVERSATIONS, TABLES, Table
from chorus_cli.stores.rules.references import (
    CHECKPOINTS,
    ITEMS,
    MESSAGES,
    OPERATIONS,
    THREADS,
    renewed,
    renewed_checkpoint,
)

Identity: TypeAlias = tuple[Any, ...]
Record: TypeAlias = dict[str, Any]

_CHECKED = ("role", "thread_id", "persona", "timestamp", "content")
_NEEDED = {"operation_id", "conversation_id", "message_id"}
_NEEDED_ELSEWHERE = _NEEDED | {"thread_id"}
"""References without which a row has no use among the rows of another log."""


class Rows(NamedTuple):
    """The rows of a log: by table, what identifies the row of each id.

    ``imported`` identifies imported messages, ``worded`` the memory items with a hash. ``threads`` has the threads of
    messages and ``conversations`` those of imported conversations. ``threads_before`` and ``operations_before`` are by
    persona the newest ones of earlier personas of its folder; ``forgotten`` are the ids of their items.
    """

    identities: Mapping[str, Mapping[int, Identity]]
    imported: Mapping[int, Identity]
    worded: Mapping[int, Identity]
    threads: Mapping[int, int]
    conversations: Mapping[int, int]
    threads_before: Mapping[str, int]
    operations_before: Mapping[str, int]
    forgotten: frozenset[int]
    personas: tuple[Mapping[int, str], Mapping[int, str]]

    def are_all_of(self, other: Rows) -> bool:
        """Return whether the other log has all these rows under the same ids."""
        return all(rows.items() <= other.identities[table].items() for table, rows in self.identities.items())


def read(connection: Connection) -> Rows:
    """Read what identifies the rows of a log."""

    def found(columns: str, source: str) -> dict[int, Identity]:
        return {id_: tuple(rest) for id_, *rest in connection.execute(f"SELECT {columns} FROM {source}").fetchall()}

    def numbers(columns: str, source: str) -> dict[Any, Any]:
        return dict(connection.execute(f"SELECT {columns} FROM {source}").fetchall())

    own = f"operations WHERE kind = '{Clear.kind}' AND json_extract({DETAIL}, '$.begins') IS NOT NULL GROUP BY persona"
    begun = numbers("persona, MAX(id)", own)
    before = {persona: int(meta_rows.value(connection, meta_rows.THREADS_BEFORE + persona) or 0) for persona in begun}
    hidden = found("id, persona, forgotten_by", f"{ITEMS} WHERE forgotten_by IS NOT NULL")
    return Rows(
        {each.name: found(f"id, {each.identity}", each.name) for each in TABLES if each.has_id},
        found(
            "message_id, persona, source, conversation, message",
            f"imported_messages JOIN {CONVERSATIONS} ON id = conversation_id",
        ),
        found("id, persona, content_hash", f"{ITEMS} WHERE content_hash IS NOT NULL AND replaced_by = 0"),
        numbers("id, thread_id", MESSAGES),
        numbers("id, thread_id", CONVERSATIONS),
        before,
        begun,
        frozenset(id_ for id_, (persona, operation) in hidden.items() if 0 < operation <= begun.get(persona, 0)),
        (numbers("id, persona", THREADS), numbers("id, persona", OPERATIONS)),
    )


class Ids:
    """By table, the ids that the rows of a log have in another one. Rows that are missing here are not copied."""

    def __init__(self, by_table: Mapping[str, Mapping[int, int]]) -> None:
        self.by_table = by_table
        self._sorted: dict[str, list[int]] = {}

    def __call__(self, table: str, id_: int) -> int | None:
        """Return the id of a row in the other log, ``None`` if it is not copied."""
        return self.by_table[table].get(id_)

    def place(self, table: str, id_: int) -> int:
        """Return the id of a row in the other log, or of the row before it that is copied, 0 if there is none."""
        if table not in self._sorted:
            self._sorted[table] = sorted(self.by_table[table])
        known = self._sorted[table]
        position = bisect_right(known, id_)
        return self.by_table[table][known[position - 1]] if position else 0


def same(source: Rows) -> Ids:
    """Return the ids for a log that gets every row under its own id."""
    return Ids({table: dict(zip(rows, rows, strict=True)) for table, rows in source.identities.items()})


def matched(source: Rows, target: Rows) -> Ids:
    """Return the ids for a log with rows of its own: those of the rows in common, and new ones above all of its ids.

    Rows of deleted personas get none.
    """
    found: dict[str, dict[int, int | None]] = {}
    for table, rows in source.identities.items():
        there = {identity: id_ for id_, identity in target.identities[table].items()}
        found[table] = {id_: there.get(identity) for id_, identity in rows.items()}
    for table, here, others in ((MESSAGES, source.imported, target.imported), (ITEMS, source.worded, target.worded)):
        there = {identity: id_ for id_, identity in others.items()}
        for id_, identity in here.items():
            found[table][id_] = found[table][id_] or there.get(identity)
    found[THREADS] = _threads(source, target, found)
    for table, ids in found.items():
        newest = max(target.identities[table], default=0)
        for id_ in sorted(id_ for id_, new in ids.items() if new is None):
            if _is_of_deleted(source, table, id_):
                del ids[id_]
            else:
                newest += 1
                ids[id_] = newest
    return Ids({table: {id_: new for id_, new in ids.items() if new} for table, ids in found.items()})


def _threads(source: Rows, target: Rows, found: Mapping[str, Mapping[int, int | None]]) -> dict[int, int | None]:
    """Return the threads that have rows of the same threads there; a thread without a message is known by its time."""
    threads: dict[int, int | None] = dict.fromkeys(source.identities[THREADS])
    used = {*target.threads.values(), *target.conversations.values()}
    there = {identity: id_ for id_, identity in target.identities[THREADS].items() if id_ not in used}
    said = {*source.threads.values()}
    for id_, identity in source.identities[THREADS].items():
        if id_ not in said:
            threads[id_] = there.get(identity)
    for table, here, others in (
        (CONVERSATIONS, source.conversations, target.conversations),
        (MESSAGES, source.threads, target.threads),
    ):
        for id_, thread in here.items():
            if new := found[table][id_]:
                threads[thread] = others[new]
    return threads


def _is_of_deleted(source: Rows, table: str, id_: int) -> bool:
    of_threads, of_operations = source.personas
    if table == OPERATIONS:
        return id_ <= source.operations_before.get(of_operations[id_], 0)
    if table == ITEMS:
        return id_ in source.forgotten
    threads: Mapping[int, int] = {MESSAGES: source.threads, CONVERSATIONS: source.conversations}.get(table, {})
    thread = id_ if table == THREADS else threads.get(id_, 0)
    return 0 < thread <= source.threads_before.get(of_threads.get(thread, ""), 0)


@dataclass
class Renewal:
    """The ids of rows in the other log, and the ``newest_message`` there before the copy.

    If the copy ``keeps_ids``, rows change only where a server cannot store a character. ``threads`` are by persona the
    threads there that are in both logs afterwards, ``numbers`` the numbers of all threads there.
    """

    ids: Ids
    keeps_ids: bool
    newest_message: int
    threads: Mapping[str, Sequence[int]] = field(default_factory=dict)
    numbers: Mapping[int, int] = field(default_factory=dict)

    def of(self, table: Table, stored: Record) -> Record | None:
        """Return the row for the other log, ``None`` if it is not copied."""
        record: Record = {name: _storable(value) for name, value in stored.items()}
        if table.has_id:
            record["id"] = self.ids(table.name, stored["id"])
            if record["id"] is None:
                return None
        if not self._refer(table, record):
            return None
        if table.name == OPERATIONS and not self.keeps_ids:
            self._renew_operation(record, stored["after_message_id"])
        if table.name == CHECKPOINTS and not self.keeps_ids:
            record["checkpoint_data"] = renewed_checkpoint(record["checkpoint_data"], self.ids)
        if table.name == MESSAGES and stored["checksum"] == _checksum(stored):
            record["checksum"] = _checksum(record)
        return record

    def _refer(self, table: Table, record: Record) -> bool:
        """Give a row the new ids of the rows to which it refers; return false if it cannot be copied without one."""
        needed = _NEEDED if self.keeps_ids else _NEEDED_ELSEWHERE
        for column, referred in table.references.items():
            # Numbers below 1 are no ids: 0 as the operation that hides an item means a proposal.
            if (id_ := record[column]) is None or id_ < 1:
                continue
            new = self.ids.place(referred, id_) if column in table.places else self.ids(referred, id_)
            if new is None and column in needed:
                return False
            if not self.keeps_ids:
                record[column] = 0 if new is None and referred == ITEMS else new
        return True

    def _renew_operation(self, record: Record, after: int) -> None:
        record["after_message_id"] = self._place(after)
        threads = self.threads.get(record["persona"], ())
        detail = renewed(record["kind"], record["detail"], self.ids, self._place, threads, self.numbers)
        record["detail"] = detail

    def _place(self, after: int) -> int:
        """Return where an operation is in the other log: after all that was said there before the copy."""
        return max(self.ids.place(MESSAGES, after), self.newest_message)


def _storable(value: object) -> object:
    """Replace the character that no text on a server can have."""
    return value.replace("\0", "\u2400") if isinstance(value, str) and "\0" in value else value


def _checksum(record: Record) -> str:
    return checksum(*(record[name] for name in _CHECKED))
