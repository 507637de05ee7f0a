"""Any messages of any log can be purged: all others, the views and the journal are as before without them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rules.view import Summary
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Clear, Edit, Fold, Fork, Redo, Subject, Undo
from chorus_cli.log.rules.log_acts import Act, Pin
from chorus_cli.log.rules.messages import MessageContent, Role, runs
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.stores.purge.carrying_out import overwrite
from chorus_cli.stores.purge.concerned import concerned
from chorus_cli.stores.rules.purging import WantedPurge
from chorus_cli.stores.salvage import examination
from tests.amount import examples
from tests.fakes import START
from tests.log.rows.views import view_in
from tests.storage.database import database

PERSONA = "frodo"
THREADS = (1, 2)


class Step(NamedTuple):
    """A message, or an operation on some of the messages so far: those whose position a bit of ``chosen`` names."""

    kind: str
    thread: int
    chosen: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["say"] * 6 + ["clear", "edit", "reword", "pin", "fold", "undo", "redo"]),
        st.sampled_from(THREADS),
        st.integers(0, 2**12),
    ),
    min_size=1,
    max_size=25,
)


class Log:
    """A log that grows step by step, a minute each."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.now = START
        self.done: list[int] = []

    def do(self, step: Step) -> None:
        self.now += timedelta(minutes=1)
        if step.kind == "say":
            self._say(step)
        elif step.kind in {"undo", "redo"}:
            if self.done:
                subject = Subject(operation_id=self.done[step.chosen % len(self.done)])
                self._introduce(
                    NewOperation(PERSONA, (Undo if step.kind == "undo" else Redo)(subject), self.now, step.thread)
                )
        else:
            self._operate(step)

    def _say(self, step: Step) -> None:
        asked = message_rows.insert_row(self.connection, PERSONA, self._content(step.thread, Role.USER))
        self.connection.execute("UPDATE messages SET turn_id = id WHERE id = ?", (asked,))
        answer = self._content(step.thread, Role.ASSISTANT)._replace(turn_id=asked)
        message_rows.insert_row(self.connection, PERSONA, answer)

    def _content(self, thread: int, role: Role) -> MessageContent:
        (number,) = self.connection.execute("SELECT COUNT(*) FROM messages").fetchone()
        return MessageContent(thread, role, f"word{number}x word{number}y word{number}z", self.now, token_count=3)

    def _operate(self, step: Step) -> None:
        seen = view_in(self.connection, PERSONA, step.thread, START).messages
        chosen = [row for place, row in enumerate(seen) if step.chosen >> (place % 12) & 1]
        new = NewOperation(PERSONA, Clear(), self.now, step.thread)
        match step.kind:
            case "clear":
                self.done.append(self._introduce(new))
            case "edit" | "reword" if chosen:
                kept = [row.id for row in chosen]
                reworded = MessageContent(
                    step.thread, chosen[0].role, f"{chosen[0].content} anew", chosen[0].timestamp, revises=chosen[0].id
                )
                members: tuple[int | MessageContent, ...] = tuple(kept)
                members = (reworded, *members[1:]) if step.kind == "reword" else members
                self.done.append(self._introduce(new._replace(act=Edit(), members=members)))
            case "pin" if chosen:
                self.done.append(self._introduce(new._replace(act=Pin(), members=(chosen[0].id,))))
            case "fold" if seen:
                self._fold(step, [row.id for row in seen[: 1 + step.chosen % len(seen)]])

    def _fold(self, step: Step, ids: list[int]) -> None:
        boundary = view_in(self.connection, PERSONA, step.thread, START).boundary_id
        folded = runs(ids)
        operation = self._introduce(NewOperation(PERSONA, Fold(folded), self.now, step.thread))
        summary = Summary(operation, boundary, folded, f"summary of {ids}", 3, "m", self.now)
        snapshot_rows.store(self.connection, PERSONA, step.thread, summary)

    def _introduce(self, new: NewOperation) -> int:
        return operation_rows.introduce(self.connection, new).id


@cache
def empty() -> bytes:
    """An empty database: making one takes longer than filling it."""
    with closing(database()) as connection:
        return connection.serialize()


def rows(connection: sqlite3.Connection) -> dict[int, tuple[object, ...]]:
    return {row[0]: row for row in connection.execute("SELECT * FROM messages ORDER BY id")}


@examples(120)
@given(STEPS, st.sets(st.integers(1, 50)))
def test_all_else_is_as_before_and_ids_and_order_hold(steps: list[Step], chosen: set[int]) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(empty())
        log = Log(connection)
        for step in steps:
            log.do(step)
        before = rows(connection)
        views = {thread: view_in(connection, PERSONA, thread, START).messages for thread in THREADS}
        operations = operation_rows.all_of(connection, PERSONA, None)
        found = concerned(connection, WantedPurge(frozenset(chosen & before.keys())))
        overwrite(connection, found.ids, log.now)
        purged = found.ids.messages
        after = rows(connection)
        assert chosen & before.keys() <= purged
        assert [*after] == [*before]
        assert {id_: row for id_, row in after.items() if id_ not in purged} == {
            id_: row for id_, row in before.items() if id_ not in purged
        }
        for thread in THREADS:
            seen = view_in(connection, PERSONA, thread, START)
            assert list(seen.messages) == [row for row in views[thread] if row.id not in purged]
            assert seen.summary is None or purged.isdisjoint(row.id for row in seen.folded)
        assert operation_rows.all_of(connection, PERSONA, None)[: len(operations)] == operations
        assert_nothing_is_left(connection, before, purged)


def assert_nothing_is_left(
    connection: sqlite3.Connection, before: dict[int, tuple[object, ...]], purged: frozenset[int]
) -> None:
    """No text of a purged message is in a dump of the database, and the doctor finds nothing wrong with it."""
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(messages)")]
    texts = [str(before[id_][columns.index("content")]) for id_ in purged]
    dump = "\n".join(connection.iterdump())
    assert not [text for text in texts if text in dump]
    assert examination.checked(connection).changed == ()
    rows = [*examination.unreadable(connection), *examination.dangling_references(connection)]
    assert [*examination.faults(connection), *rows] == []


def summarise(connection: sqlite3.Connection, act: Act, thread: int, base: int | None, text: str) -> None:
    """Store an operation with its summary; the first of them have the ids 1, 2 and so on."""
    operation = operation_rows.introduce(connection, NewOperation("frodo", act, START, thread))
    snapshot_rows.store(connection, "frodo", thread, Summary(operation.id, base, runs([1]), text, 3, "m", START))


@pytest.mark.parametrize(
    ("wanted", "gone"),
    [
        (WantedPurge(frozenset({1})), {1, 2, 4}),
        (WantedPurge(frozenset({2})), {2}),
        (WantedPurge(words="mill"), {1, 2, 4}),
        (WantedPurge(words="wind"), {2}),
        (WantedPurge(frozenset({3})), {3}),
        (WantedPurge(frozenset({4})), set()),
    ],
)
def test_a_purged_summary_takes_later_ones_and_copies_with_it(wanted: WantedPurge, gone: set[int]) -> None:
    with closing(database()) as connection:
        for number, thread in enumerate((1, 1, 2, 2)):
            said = MessageContent(thread, Role.USER, f"said {number}", START + timedelta(minutes=number), token_count=3)
            message_rows.insert_row(connection, "frodo", said)
        summarise(connection, Fold(runs([1])), 1, None, "About a mill.")
        summarise(connection, Fold(runs([2])), 1, None, "About the wind.")
        summarise(connection, Fold(runs([3])), 2, None, "About the sea.")
        summarise(connection, Fork((), 1, 1, 0), 3, 4, "About a mill.")
        assert concerned(connection, wanted).ids.summaries == gone
