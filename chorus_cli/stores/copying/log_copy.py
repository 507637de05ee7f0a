"""Copies the rows of a log into another log, which may have rows of its own.

A log without other rows gets every row under its own id, in short transactions, so a copy that was broken off goes on
where it ended. A log with other rows gets the missing rows with new ids above its own, all in one transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

from chorus_cli.core.errors import StorageError
from chorus_cli.log.rules.log_acts import Purge, PurgedIds
from chorus_cli.memory.rows import item_rows
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection, ConstraintError, Engine, OpenConnection
from chorus_cli.storage.store import committed
from chorus_cli.stores import listing
from chorus_cli.stores.copying.matching import Record, Renewal, Rows, matched, read, same
from chorus_cli.stores.copying.tables import SESSIONS, TABLES, Table, columns
from chorus_cli.stores.listing import AMONG
from chorus_cli.stores.purge import carrying_out, files
from chorus_cli.stores.rules.references import ITEMS, MESSAGES, OPERATIONS, THREADS

Key: TypeAlias = tuple[Any, ...]

_BATCH_ROWS = 500
_CHECKSUM_BYTES = 8
_NUMBERED = (THREADS, OPERATIONS)
_MESSAGES, _SESSIONS = (next(each for each in TABLES if each.name == name) for name in (MESSAGES, SESSIONS))
_UNFINISHED = "status IN ('streaming', 'interrupted')"


class TableCopied(NamedTuple):
    """A table of a copied log: its rows, how many of them the copy has added, and how many differ in the other log.

    Rows differ if they have changed there since an earlier copy. ``checksum`` is of the rows as they are there.
    """

    name: str
    rows: int
    added: int
    differing: int
    checksum: str


def copied(
    source: Engine, target: Engine, tell: Callable[[int, int], None] = lambda _rows, _of: None
) -> list[TableCopied]:
    """Copy the log of an engine into that of another; one of them is on a server, the other a file."""
    file, server = (target, source) if source.server else (source, target)
    try:
        with closing(source.open()) as here, closing(target.open()) as there:
            try:
                return LogCopy(here, there, tell).run()
            except (sqlite3.IntegrityError, ConstraintError):
                # Somebody has given one of the ids to another row meanwhile. Now the rest joins the rows there.
                return LogCopy(here, there, tell).run()
    except (*file.errors, *server.errors) as error:
        raise (file if isinstance(error, file.errors) else server).told(error) from error


class LogCopy:
    """A copy of the log ``source`` into the log ``target``.

    ``tell`` gets the number of rows so far and of all rows before each batch, and may raise an error to end the copy.
    """

    def __init__(
        self, source: OpenConnection, target: OpenConnection, tell: Callable[[int, int], None] = lambda _rows, _of: None
    ) -> None:
        self._source, self._target, self._tell = source, target, tell
        self._here = committed(source, read, to_write=False)
        there = committed(target, read, to_write=False)
        self._renewal = Renewal(same(self._here), keeps_ids=there.are_all_of(self._here), newest_message=0)
        self._before = _keys(there)
        self._sent: dict[tuple[str, Key], int] = {}

    @property
    def ids(self) -> Mapping[str, Mapping[int, int]]:
        """By table, the ids of the rows there by their ids here."""
        return self._renewal.ids.by_table

    def run(self) -> list[TableCopied]:
        """Copy everything, compare both logs, and return the tables."""
        if not self._renewal.keeps_ids:
            return committed(self._target, self._merged)
        self._copy(lambda work: committed(self._target, work))
        return committed(self._target, self._compared, to_write=False)

    def _merged(self, target: Connection) -> list[TableCopied]:
        # Another machine may have added rows until this transaction began.
        there = read(target)
        ids, threads = matched(self._here, there), defaultdict[str, list[int]](list)
        for old, new in ids.by_table[THREADS].items():
            threads[self._here.identities[THREADS][old][0]].append(new)
        newest = max(there.identities[MESSAGES], default=0)
        self._renewal, self._before = (
            Renewal(ids, keeps_ids=False, newest_message=newest, threads=threads),
            _keys(there),
        )
        self._copy(lambda work: work(target))
        return self._compared(target)

    def _copy(self, step: Callable[[Callable[[Connection], None]], None]) -> None:
        done, total = 0, sum(map(len, self.ids.values()))
        for table, records in self._batches():
            self._tell(done, total)
            step(partial(self._store, table, records))
            done += len(records) if table.has_id else 0
        step(self._follow_changes)

    def _batches(self, tables: Sequence[Table] = TABLES) -> Iterator[tuple[Table, list[Record]]]:
        """Yield the rows of tables as the target is to have them."""
        for table in tables:
            stored = self._read(table, ())
            while stored:
                yield table, [found for each in stored if (found := self._renewal.of(table, each))]
                # A writer may add rows as fast as they are read; they are not in this copy.
                stored = self._read(table, _key(table, stored[-1])) if len(stored) == _BATCH_ROWS else []

    def _read(self, table: Table, after: Key) -> list[Record]:
        names, key = columns()[table.name], ", ".join(table.key)
        condition = f"WHERE ({key}) > ({', '.join('?' for _ in after)})" if after else ""
        sql = f"SELECT {', '.join(names)} FROM {table.name} {condition} ORDER BY {key} LIMIT {_BATCH_ROWS}"
        rows = committed(self._source, lambda source: source.execute(sql, after).fetchall(), to_write=False)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _store(self, table: Table, records: Sequence[Record], target: Connection) -> None:
        """Store those rows of a batch that are not there."""
        if not table.has_id:
            self._before.setdefault(table.name, set()).update(_there(target, table, records))
        before = self._before[table.name]
        fresh = [each for each in records if _key(table, each) not in before]
        self._sent |= {(table.name, _key(table, each)): self._digest(table, each) for each in fresh}
        _insert(target, table, fresh)
        if table.name in _NUMBERED and self._renewal.keeps_ids:
            _number(target, table.name, fresh)
        if table.name == THREADS:
            self._renewal.numbers = dict(target.execute("SELECT id, number FROM threads").fetchall())
        if table.name == OPERATIONS:
            self._purge(target, [each for each in fresh if each["kind"] == Purge.kind])
        for each in fresh if table.name == ITEMS else ():
            if each["content_hash"] is not None:
                item_rows.index_words(target, each["id"], each["content"])
        if table.has_id and fresh:
            self._target.continue_ids(table.name)

    def _follow_changes(self, target: Connection) -> None:
        """Finish replies that an earlier copy found unfinished, and hide the threads of deleted personas."""
        if self._finish_replies(target):
            carrying_out.renew_indexes(target)
        for persona, thread in self._here.threads_before.items() if self._renewal.keeps_ids else ():
            key = meta_rows.THREADS_BEFORE + persona
            if thread > int(meta_rows.value(target, key) or 0):
                meta_rows.store(target, key, str(thread))

    def _finish_replies(self, target: Connection) -> int:
        old = {new: id_ for id_, new in self.ids[MESSAGES].items() if (new,) in self._before[MESSAGES]}
        sql = f"SELECT id, status FROM messages WHERE {_UNFINISHED} AND purged_by IS NULL"
        there = {id_: status for id_, status in target.execute(sql).fetchall() if id_ in old}
        unfinished = [{"id": old[id_]} for id_ in there]
        stored = committed(self._source, lambda c: _there(c, _MESSAGES, unfinished), to_write=False).values()
        ended = (self._renewal.of(_MESSAGES, each) for each in stored)
        renewed = [each for each in ended if each and each["status"] not in {"streaming", there[each["id"]]}]
        names = [name for name in columns()[MESSAGES] if name != "id"]
        target.executemany(
            f"UPDATE messages SET {', '.join(f'{name} = ?' for name in names)} WHERE id = ?",
            [[*(each[name] for name in names), each["id"]] for each in renewed],
        )
        return len(renewed)

    def _purge(self, target: Connection, purges: Sequence[Record]) -> None:
        """Overwrite rows of earlier copies that were purged since. New rows come as a purge has left them."""
        for each in purges:
            purged = PurgedIds.from_json(json.loads(each["detail"]))
            held = {store.name: self._present(store.table, getattr(purged, store.name)) for store in listing.ROWS}
            if any(held.values()):
                carrying_out.erase(target, each["persona"], PurgedIds(**held), each["id"])
                self._take_over_sessions(target, each["persona"])
                carrying_out.renew_indexes(target)

    def _take_over_sessions(self, target: Connection, persona: str) -> None:
        """Give the target the rows of a persona's sessions as a purge has left them here."""
        of_all = [each for _, records in self._batches([_SESSIONS]) for each in records]
        kept = [each for each in of_all if each["persona"] == persona]
        names, said = {each["session_id"] for each in kept}, {*self.ids[MESSAGES].values()}
        there = target.execute(
            "SELECT session_id, through_message_id FROM sessions WHERE persona = ?", (persona,)
        ).fetchall()
        gone = [name for name, through in there if name in names or through in said]
        files.forget_sessions(target, [(persona, name) for name in gone])
        target.executemany(
            "UPDATE summaries SET model = NULL WHERE model = ?",
            [(f"session {name}",) for name in gone if name not in names],
        )
        _insert(target, _SESSIONS, kept)

    def _present(self, table: str, ids: Collection[int]) -> frozenset[int]:
        before = self._before.get(table, set())
        return frozenset(id_ for id_ in ids if (id_,) in before)

    def _compared(self, target: Connection) -> list[TableCopied]:
        """Compare the rows of both logs; raise a `StorageError` if one is missing or was stored with other values."""
        found: dict[str, TableCopied] = {}
        for table, records in self._batches():
            there = _there(target, table, records)
            rows, added, differing, checksum = found.get(table.name, _NOTHING)[1:]
            digests = int(checksum, 16)
            for each in records:
                key = _key(table, each)
                # A row may have changed here since it was sent.
                sent = self._sent.get((table.name, key))
                stored = self._digest(table, there[key]) if key in there else None
                is_equal = stored == (self._digest(table, each) if sent is None else sent)
                if stored is None or not (sent is None or is_equal):
                    raise StorageError(
                        f"{table.name} {key[0]} is missing or different in the other log, so the copy is not complete. "
                        "Start it again."
                    )
                rows, added, differing = rows + 1, added + (sent is not None), differing + (not is_equal)
                digests += stored
            checksum = f"{digests % (1 << 8 * _CHECKSUM_BYTES):0{2 * _CHECKSUM_BYTES}x}"
            found[table.name] = TableCopied(table.name, rows, added, differing, checksum)
        return [*found.values()]

    def _digest(self, table: Table, record: Record) -> int:
        """Return a checksum of a row, without its number if the other log gives it one of its own."""
        has_own_number = table.name in _NUMBERED and not self._renewal.keeps_ids
        stored = repr([value for name, value in record.items() if not (has_own_number and name == "number")])
        return int.from_bytes(blake2b(stored.encode(errors="surrogatepass"), digest_size=_CHECKSUM_BYTES).digest())


_NOTHING = TableCopied("", 0, 0, 0, "0")


def _insert(target: Connection, table: Table, records: Sequence[Record]) -> None:
    # A trigger gives the numbers.
    names = [name for name in columns()[table.name] if table.name not in _NUMBERED or name != "number"]
    if not records:
        return
    marks = f"({', '.join('?' for _ in names)})"
    target.execute(
        f"INSERT INTO {table.name}({', '.join(names)}) VALUES {', '.join(marks for _ in records)}",
        [each[name] for each in records for name in names],
    )


def _keys(rows: Rows) -> dict[str, set[Key]]:
    return {name: {(id_,) for id_ in found} for name, found in rows.identities.items()}


def _key(table: Table, record: Record) -> Key:
    return tuple(record[name] for name in table.key)


def _there(connection: Connection, table: Table, records: Sequence[Record]) -> Mapping[Key, Record]:
    """Return those rows of a batch that a log has."""
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
    """Give rows the numbers that they have in the source, and later rows newer ones."""
    target.executemany(f"UPDATE {table} SET number = NULL WHERE id = ?", [(each["id"],) for each in records])
    given = [(each["number"], each["id"]) for each in records]
    target.executemany(f"UPDATE {table} SET number = ? WHERE id = ?", given)
    newest = {each["persona"]: each["number"] for each in sorted(records, key=lambda each: each["number"] or 0)}
    target.executemany(
        "INSERT INTO numbers VALUES (?, ?, ?) ON CONFLICT (persona, counted) DO UPDATE SET newest = "
        "CASE WHEN excluded.newest > numbers.newest THEN excluded.newest ELSE numbers.newest END",
        [(persona, table, number) for persona, number in newest.items() if number],
    )
