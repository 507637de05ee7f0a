"""Copies the rows of a log, the source, into another log, the target, which may have rows of its own.

The rows come in parts, each in one transaction. After each part, the target has the log as it was at some moment. So
other programs can use it between parts, and a copy that was broken off can go on. In a target without rows of its own,
each row keeps its id. In a target with rows of its own, the missing rows get new ids above all ids there.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

from chorus_cli.core.errors import StorageError
from chorus_cli.log.rules.log_acts import Import, Purge, PurgedIds
from chorus_cli.memory.rows import item_rows
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection, Engine, OpenConnection, Parameters, Row
from chorus_cli.storage.store import committed
from chorus_cli.stores import listing
from chorus_cli.stores.copying.matching import (
    CONVERSATION_THREADS,
    CONVERSATIONS,
    TABLES,
    Deleted,
    Record,
    Renewal,
    Rows,
    Table,
    columns,
    deleted,
    matched,
    read,
    same,
)
from chorus_cli.stores.listing import AMONG
from chorus_cli.stores.purge import carrying_out, files
from chorus_cli.stores.rules.references import ITEMS, MESSAGES, OPERATIONS, SUMMARIES, THREADS, newest_named

Key: TypeAlias = tuple[Any, ...]
Newest: TypeAlias = Mapping[str, int]
"""The id of the newest row of each table up to the end of a part. A table that is left out has no rows up to there."""

_BATCH_ROWS = 500
_MOST_PARTS = 100
_PAUSE_SECONDS = 0.1
PART_MESSAGES = 2_000
"""How many messages a transaction adds. Meanwhile other programs wait to write to the target."""

_CHECKSUM_BYTES = 8
_NUMBERED = (THREADS, OPERATIONS)
_MESSAGES, _OPERATIONS, _ITEMS = (
    next(each for each in TABLES if each.name == name) for name in (MESSAGES, OPERATIONS, ITEMS)
)
_PURGED = "purged_by = :purged_by WHERE id = :id AND purged_by IS NOT NULL"
_FORGOTTEN = (
    "forgotten_by = :forgotten_by, replaced_by = CASE WHEN :replaced_by > 0 THEN :replaced_by ELSE replaced_by END"
)
_HIDING = (
    (_MESSAGES, ("id", "purged_by"), _PURGED),
    (_ITEMS, ("id", "purged_by"), _PURGED),
    (_ITEMS, ("id", "forgotten_by", "replaced_by"), f"{_FORGOTTEN} WHERE id = :id"),
)
_UNFINISHED = "status IN ('streaming', 'interrupted')"
_BEGINNINGS = f"""
    SELECT messages.id FROM messages LEFT JOIN operations ON operations.id = introduced_by
    WHERE role = 'user' AND (introduced_by IS NULL OR kind = '{Import.kind}') ORDER BY messages.id"""
"""The user's messages before which a part may end. Of all operations, only an import is divided among parts."""

_FOLLOWING = {
    OPERATIONS: "SELECT id, after_message_id FROM operations ORDER BY id",
    **{name: f"SELECT id, operation_id FROM {name} ORDER BY id" for name in (SUMMARIES, CONVERSATIONS)},
}


class TableCopied(NamedTuple):
    """The number of rows of a table that both logs now have, how many the copy has added, and how many differ.

    A row differs if it has changed since an earlier copy. ``checksum`` is the checksum of the rows in the target.
    """

    name: str
    rows: int
    added: int
    differing: int
    checksum: str


def copied(
    source: Engine,
    target: Engine,
    tell: Callable[[int, int], None] = lambda _messages, _of: None,
    *,
    part_messages: int = PART_MESSAGES,
) -> list[TableCopied]:
    """Copy the log of ``source`` into the log of ``target``; one log is on a server, the other is a file."""
    file, server = (target, source) if source.server else (source, target)
    try:
        with closing(source.open()) as here, closing(target.open()) as there:
            return LogCopy(here, there, tell, part_messages).run()
    except (*file.errors, *server.errors) as error:
        raise (file if isinstance(error, file.errors) else server).told(error) from error


class LogCopy:
    """A copy of the log ``source`` into the log ``target``.

    ``tell`` gets the number of messages copied so far and the number to copy, before each part and while the logs are
    compared. ``tell`` may raise an error to end the copy.
    """

    def __init__(
        self,
        source: OpenConnection,
        target: OpenConnection,
        tell: Callable[[int, int], None] = lambda _messages, _of: None,
        part_messages: int = PART_MESSAGES,
    ) -> None:
        self._source, self._target, self._tell, self._part_messages = source, target, tell, part_messages
        self._here, self._deleted = committed(source, lambda here: (read(here), deleted(here)), to_write=False)
        self._there = committed(target, read, to_write=False)
        self._renewal = Renewal(same(self._here.up_to({})), keeps_ids=True, newest_message=0)
        self._sent: dict[tuple[str, Key], int] = {}

    @property
    def ids(self) -> Mapping[str, Mapping[int, int]]:
        """For each table, the ids of rows in the target by their ids in the source."""
        return self._renewal.ids.by_table

    def run(self) -> list[TableCopied]:
        """Copy everything, compare both logs, and return the tables."""
        there = {*self._there.facts[MESSAGES].values()}
        missing = [id_ for id_, identity in self._here.facts[MESSAGES].items() if identity not in there]
        most = max(self._part_messages, len(missing) // _MOST_PARTS)
        divided = committed(self._source, lambda here: [*ends(here, self._here, missing, most)], to_write=False)
        for done, end in enumerate([*divided, None]):
            self._tell(min(done * most, len(missing)), len(missing))
            began = time.monotonic()
            committed(self._target, partial(self._store_part, end))
            # Let others write: a program that waits for the lock of a file tries only every tenth of a second.
            time.sleep(min(time.monotonic() - began, _PAUSE_SECONDS))
        committed(self._target, self._finish_replies)
        return self._compared(len(missing))

    def _store_part(self, end: Newest | None, target: Connection) -> None:
        """Store the rows up to ``end``, or all rows if it is ``None``."""
        # Another machine may have added rows before this transaction began.
        self._there.add(read(target, self._there.newest()))
        self._renewal = self._renewed(self._here if end is None else self._here.up_to(end), target)
        for table in TABLES:
            if table.name == OPERATIONS:
                self._renewal.numbers = dict(target.execute("SELECT id, number FROM threads").fetchall())
            for records in self._batches(table, self._missing(table, is_last=end is None)):
                self._store(table, records, target)
        if self._renewal.keeps_ids:
            self._hide_deleted(target)

    def _renewed(self, here: Rows, target: Connection) -> Renewal:
        if self._there.are_all_of(self._here):
            return Renewal(same(here), keeps_ids=True, newest_message=0)
        left_out = self._left_out(target)
        ids, threads = matched(here, self._there, left_out, self.ids[THREADS]), defaultdict[str, list[int]](list)
        for old, new in ids.by_table[THREADS].items():
            threads[self._here.facts[THREADS][old][0]].append(new)
        newest = self._there.newest()[MESSAGES]
        return Renewal(ids, keeps_ids=False, newest_message=newest, threads=threads)

    def _left_out(self, target: Connection) -> Deleted:
        """Return the ends of deleted personas. A target that hides one also needs the new persona's first operation."""
        begun = deleted(target).operations if self._deleted.operations else {}
        hidden = {each for each in self._deleted.operations.keys() - begun.keys() if _hidden_there(target, each)}
        operations = {each: id_ - (each in hidden) for each, id_ in self._deleted.operations.items()}
        return self._deleted._replace(operations=operations)

    def _hide_deleted(self, target: Connection) -> None:
        """Hide those threads of deleted personas that the target has by now."""
        for persona, newest in self._deleted.threads.items():
            threads = (
                id_ for id_ in self.ids[THREADS] if id_ <= newest and self._here.facts[THREADS][id_][0] == persona
            )
            before = max(threads, default=0)
            if before > _hidden_there(target, persona):
                meta_rows.store(target, meta_rows.THREADS_BEFORE + persona, str(before))

    def _missing(self, table: Table, *, is_last: bool) -> str:
        """Return the SQL condition of the rows that the target may lack: new rows, or rows that need a new row."""
        followed = {"id": table.name} if table.has_id else {each: table.references[each] for each in table.needed}
        ends = []
        for column, name in followed.items():
            there = self._there.facts[name]
            fresh = [old for old, new in self.ids[name].items() if new not in there]
            ends.append(f"{column} BETWEEN {min(fresh, default=1)} AND {max(fresh, default=0)}")
        # Sessions need no other rows; they come with the last part.
        return f"({' OR '.join(ends)})" if ends else f"1 = {int(is_last)}"

    def _batches(self, table: Table, condition: str = "1 = 1") -> Iterator[list[Record]]:
        """Yield in batches the rows of a table that meet a condition, in the form for the target."""
        names, key, last = columns()[table.name], ", ".join(table.key), tuple[Any, ...]()
        reading = f"SELECT {', '.join(names)} FROM {table.name} WHERE {condition}"
        while True:
            after = f"AND ({key}) > ({', '.join('?' for _ in last)})" if last else ""
            rows = self._asked(f"{reading} {after} ORDER BY {key} LIMIT {_BATCH_ROWS}", last)
            stored = [dict(zip(names, row, strict=True)) for row in rows]
            if stored:
                yield [found for each in stored if (found := self._renewal.of(table, each))]
            # A short batch is the last one: while others write, reading until no row is left might never end.
            if len(stored) < _BATCH_ROWS:
                return
            last = _key(table, stored[-1])

    def _asked(self, sql: str, values: Parameters) -> list[Row]:
        return committed(self._source, lambda source: source.execute(sql, values).fetchall(), to_write=False)

    def _store(self, table: Table, records: Sequence[Record], target: Connection) -> None:
        """Store the rows of a batch that the target lacks."""
        if table.has_id:
            fresh = [each for each in records if each["id"] not in self._there.facts[table.name]]
        else:
            there = _there(target, table, records)
            fresh = [each for each in records if _key(table, each) not in there]
        self._sent |= {(table.name, _key(table, each)): self._digest(table, each) for each in fresh}
        _insert(target, table, fresh)
        if table.name in _NUMBERED and self._renewal.keeps_ids:
            _number(target, table.name, fresh)
        if table.name == OPERATIONS:
            self._hide(target, fresh)
            self._purge(target, [each for each in fresh if each["kind"] == Purge.kind])
        if table.name == MESSAGES:
            self._continue_imports(target, fresh)
        for each in fresh if table.name == ITEMS else ():
            if each["content_hash"] is not None:
                item_rows.index_words(target, each["id"], each["content"])
        if table.has_id and fresh:
            self._target.continue_ids(table.name)

    def _finish_replies(self, target: Connection) -> None:
        """Complete the replies that were unfinished at an earlier copy."""
        old = {new: id_ for id_, new in self.ids[MESSAGES].items() if new in self._there.facts[MESSAGES]}
        sql = f"SELECT id, status FROM messages WHERE {_UNFINISHED} AND purged_by IS NULL"
        there = {id_: status for id_, status in target.execute(sql).fetchall() if id_ in old}
        ended = self._renewed_rows(_MESSAGES, [old[id_] for id_ in there])
        renewed = [each for each in ended if each["status"] not in {"streaming", there[each["id"]]}]
        names = [name for name in columns()[MESSAGES] if name != "id"]
        target.executemany(
            f"UPDATE messages SET {', '.join(f'{name} = ?' for name in names)} WHERE id = ?",
            [[*(each[name] for name in names), each["id"]] for each in renewed],
        )
        if renewed:
            carrying_out.renew_indexes(target)

    def _hide(self, target: Connection, acts: Sequence[Record]) -> None:
        """Hide rows of earlier parts and copies, if one of the new operations ``acts`` hides them in the source."""
        stored = {each["id"] for each in acts}
        new = json.dumps([old for old, new in self.ids[OPERATIONS].items() if new in stored])
        for table, names, change in _HIDING if stored else ():
            found = self._asked(f"SELECT id FROM {table.name} WHERE {names[1]} {AMONG}", {"ids": new})
            hidden = self._renewed_rows(table, [id_ for (id_,) in found if self._is_there(table.name, id_)])
            target.executemany(
                f"UPDATE {table.name} SET {change}", [{name: each[name] for name in names} for each in hidden]
            )

    def _is_there(self, table: str, id_: int) -> bool:
        """Return whether the target has the same row, and not just a row with the same words."""
        new = self.ids[table].get(id_, 0)
        return new in self._there.facts[table] and self._there.facts[table][new] == self._here.facts[table][id_]

    def _continue_imports(self, target: Connection, messages: Sequence[Record]) -> None:
        """Add the new messages of an import to its operation, if the operation came in an earlier part."""
        by = {each["introduced_by"] for each in messages if each["introduced_by"] in self._there.facts[OPERATIONS]}
        renewed = self._renewed_rows(_OPERATIONS, [id_ for id_, new in self.ids[OPERATIONS].items() if new in by])
        target.executemany(
            f"UPDATE operations SET detail = ? WHERE id = ? AND kind = '{Import.kind}'",
            [(each["detail"], each["id"]) for each in renewed],
        )

    def _renewed_rows(self, table: Table, ids: Sequence[int]) -> list[Record]:
        """Return rows of the source in their present form for the target."""
        among = ", ".join(map(str, ids))
        return [each for records in self._batches(table, f"id IN ({among})") for each in records] if ids else []

    def _purge(self, target: Connection, purges: Sequence[Record]) -> None:
        """Overwrite the rows of earlier copies that were purged since. New rows come in their purged form."""
        for each in purges:
            purged = PurgedIds.from_json(json.loads(each["detail"]))
            held = {store.name: self._present(store.table, getattr(purged, store.name)) for store in listing.ROWS}
            if any(held.values()):
                carrying_out.erase(target, each["persona"], PurgedIds(**held), each["id"])
                self._forget_sessions(target, each["persona"])
                carrying_out.renew_indexes(target)

    def _forget_sessions(self, target: Connection, persona: str) -> None:
        """Delete the copied sessions of a persona in the target: they come again in their purged form."""
        reading = "SELECT session_id, through_message_id FROM sessions WHERE persona = ?"
        names = {name for name, _ in self._asked(reading, (persona,))}
        said = {*self.ids[MESSAGES].values()}
        there = target.execute(reading, (persona,)).fetchall()
        gone = [name for name, through in there if name in names or through in said]
        files.forget_sessions(target, [(persona, name) for name in gone])
        target.executemany(
            "UPDATE summaries SET model = NULL WHERE model = ?",
            [(f"session {name}",) for name in gone if name not in names],
        )

    def _present(self, table: str, ids: Collection[int]) -> frozenset[int]:
        there = self._there.facts.get(table, {})
        return frozenset(id_ for id_ in ids if id_ in there)

    def _compared(self, messages: int) -> list[TableCopied]:
        """Compare the rows of both logs; raise `StorageError` if a row is missing or was stored with other values."""
        found: dict[str, TableCopied] = {}
        for table, records in ((each, records) for each in TABLES for records in self._batches(each)):
            self._tell(messages, messages)
            # The next rows may come over a network; a transaction for all batches would make others wait for them.
            there = committed(self._target, partial(_there, table=table, records=records), to_write=False)
            rows, added, differing, checksum = found.get(table.name, _NOTHING)[1:]
            digests = int(checksum, 16)
            for each in records:
                key = _key(table, each)
                # A row may have changed since it was sent: in the source, or in a target that others use.
                sent = self._sent.get((table.name, key))
                stored = self._digest(table, there[key]) if key in there else None
                is_equal = stored in {sent, self._digest(table, each)}
                if stored is None or (self._renewal.keeps_ids and sent is not None and not is_equal):
                    raise StorageError(
                        f"Row {key[0]} of {table.name} is missing or different in the other log, so the copy is not "
                        "complete. Start the copy again."
                    )
                rows, added, differing = rows + 1, added + (sent is not None), differing + (not is_equal)
                digests += stored
            checksum = f"{digests % (1 << 8 * _CHECKSUM_BYTES):0{2 * _CHECKSUM_BYTES}x}"
            found[table.name] = TableCopied(table.name, rows, added, differing, checksum)
        return [*found.values()]

    def _digest(self, table: Table, record: Record) -> int:
        """Return a checksum of a row, without values and numbers that the target computes for itself."""
        has_own_number = table.name in _NUMBERED and not self._renewal.keeps_ids
        own = {*table.computed, *(["number"] if has_own_number else [])}
        stored = repr([value for name, value in record.items() if name not in own])
        return int.from_bytes(blake2b(stored.encode(errors="surrogatepass"), digest_size=_CHECKSUM_BYTES).digest())


_NOTHING = TableCopied("", 0, 0, 0, "0")


def _hidden_there(target: Connection, persona: str) -> int:
    return int(meta_rows.value(target, meta_rows.THREADS_BEFORE + persona) or 0)


def _insert(target: Connection, table: Table, records: Sequence[Record]) -> None:
    # A trigger sets the numbers of threads and operations.
    names = [name for name in columns()[table.name] if table.name not in _NUMBERED or name != "number"]
    if not records:
        return
    marks = f"({', '.join('?' for _ in names)})"
    target.execute(
        f"INSERT INTO {table.name}({', '.join(names)}) VALUES {', '.join(marks for _ in records)}",
        [each[name] for each in records for name in names],
    )


def _key(table: Table, record: Record) -> Key:
    return tuple(record[name] for name in table.key)


def _there(connection: Connection, table: Table, records: Sequence[Record]) -> Mapping[Key, Record]:
    """Return the rows of a batch that a log has, by key."""
    if not records:
        return {}
    names, last, keys = columns()[table.name], table.key[-1], {_key(table, each) for each in records}
    ends = [key[-1] for key in keys]
    condition, values = f"{last} BETWEEN :first AND :last", {"first": min(ends), "last": max(ends)}
    if isinstance(records[0][table.key[0]], int):
        condition += f" AND {table.key[0]} {AMONG}"
        values["ids"] = json.dumps(sorted({key[0] for key in keys}))
    rows = connection.execute(f"SELECT {', '.join(names)} FROM {table.name} WHERE {condition}", values).fetchall()
    found = (dict(zip(names, row, strict=True)) for row in rows)
    return {key: record for record in found if (key := _key(table, record)) in keys}


def _number(target: Connection, table: str, records: Sequence[Record]) -> None:
    """Give rows the numbers that they have in the source, and make sure that later rows get higher numbers."""
    target.executemany(f"UPDATE {table} SET number = NULL WHERE id = ?", [(each["id"],) for each in records])
    given = [(each["number"], each["id"]) for each in records]
    target.executemany(f"UPDATE {table} SET number = ? WHERE id = ?", given)
    newest = {each["persona"]: each["number"] for each in sorted(records, key=lambda each: each["number"] or 0)}
    target.executemany(
        "INSERT INTO numbers VALUES (?, ?, ?) ON CONFLICT (persona, counted) DO UPDATE SET newest = "
        "CASE WHEN excluded.newest > numbers.newest THEN excluded.newest ELSE numbers.newest END",
        [(persona, table, number) for persona, number in newest.items() if number],
    )


def ends(source: Connection, here: Rows, missing: Collection[int], most: int) -> Iterator[Newest]:
    """Yield the end of each part except the last. Each part has about ``most`` of the missing messages.

    Other rows come in the part of the message or the operation that they belong to, or that first names them.
    """
    beginnings = [id_ for (id_,) in source.execute(_BEGINNINGS).fetchall()]
    places = (bisect_left(beginnings, id_) for id_ in sorted(missing)[most::most])
    acts = {
        id_: found for id_, *found in source.execute("SELECT id, thread_id, kind, detail FROM operations").fetchall()
    }
    replaced = source.execute(f"SELECT id, replaced_by FROM {ITEMS} WHERE replaced_by > 0 ORDER BY id").fetchall()
    following = {name: deque(source.execute(sql).fetchall()) for name, sql in _FOLLOWING.items()}
    brought = here.threads(CONVERSATION_THREADS)
    said, newest = deque(sorted(here.threads().items())), defaultdict[str, int](int)
    for place in sorted({each for each in places if each < len(beginnings)}):
        newest[MESSAGES] = beginnings[place] - 1
        for _, thread in _up_to(newest[MESSAGES], said, 0):
            newest[THREADS] = max(newest[THREADS], thread)
        for id_, _ in _up_to(newest[MESSAGES], following[OPERATIONS], 1):
            newest[OPERATIONS] = id_
            thread, kind, detail = acts[id_]
            for table, named in {**newest_named(kind, detail), THREADS: thread or 0}.items():
                if table not in {MESSAGES, OPERATIONS}:
                    newest[table] = max(newest[table], named)
        for name in (SUMMARIES, CONVERSATIONS):
            for id_, _ in _up_to(newest[OPERATIONS], following[name], 1):
                newest[name] = id_
                newest[THREADS] = max(newest[THREADS], brought.get(id_, 0) if name == CONVERSATIONS else 0)
        for id_, successor in replaced:
            if id_ <= newest[ITEMS]:
                newest[ITEMS] = max(newest[ITEMS], successor)
        yield dict(newest)


def _up_to(newest: int, rows: deque[tuple[int, int]], column: int) -> Iterator[tuple[int, int]]:
    """Take rows from the beginning of ``rows`` as long as the number in their ``column`` is at most ``newest``."""
    while rows and rows[0][column] <= newest:
        yield rows.popleft()
