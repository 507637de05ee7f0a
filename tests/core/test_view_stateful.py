"""The view against a naive model: whatever is said, done and taken back, in whatever order, both see the same.

The model keeps a plain list of everything that happened and works each view out from scratch, by the definitions alone.
What it is compared with goes the whole way: real rows, read back from the database, and only those within reach.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from chorus_cli.core import operations as journal
from chorus_cli.core.messages import Message, Status
from chorus_cli.core.operations import Kind, Operation, Target, WindowChange
from chorus_cli.core.view import cutoff, view
from chorus_cli.storage import message_log, operation_log, orphans
from chorus_cli.storage.context_rows import context_rows, view_of
from chorus_cli.storage.left_out_rows import left_out
from chorus_cli.storage.message_log import Question, ReplyState
from chorus_cli.storage.operation_log import NewOperation
from tests.storage.database import database

START = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
RUN = "this-run"


@dataclass(frozen=True)
class Place:
    """A thread of a persona."""

    persona: str
    thread: int


PLACES = (Place("chorus", 1), Place("chorus", 2), Place("frodo", 3))
PERSONAS = ("chorus", "frodo")
# Stories become intricate only where most of what happens happens.
SOMEWHERE = st.sampled_from((PLACES[0],) * 4 + PLACES[1:])
SOMEBODY = st.sampled_from(("chorus", "chorus", "frodo"))


@dataclass(frozen=True)
class Said:
    """A message, as the model knows it."""

    id: int
    thread: int
    turn: int
    at: datetime
    introduced_by: int | None = None


@dataclass(frozen=True)
class Deed:
    """An operation, as the model knows it; ``target`` is ("operation" or "turn", id), ``hours`` before and after."""

    id: int
    kind: str
    persona: str
    thread: int | None
    after: int
    at: datetime
    members: tuple[int, ...] = ()
    replaced: frozenset[int] = frozenset()
    target: tuple[str, int] | None = None
    hours: tuple[int, int] | None = None


Past = list[Said | Deed]


def said_in(past: Past, thread: int) -> list[Said]:
    return [event for event in past if isinstance(event, Said) and event.thread == thread]


def concerns(event: Deed, place: Place) -> bool:
    return event.persona == place.persona and event.thread in {None, place.thread}


def deeds_of(past: Past, place: Place) -> list[Deed]:
    return [event for event in past if isinstance(event, Deed) and concerns(event, place)]


def taken_back(target: tuple[str, int], deeds: list[Deed]) -> bool:
    words = [deed.kind for deed in deeds if deed.target == target]
    return bool(words) and words[-1] == "undo"


def standing(deeds: list[Deed]) -> list[Deed]:
    return [deed for deed in deeds if deed.target is None and not taken_back(("operation", deed.id), deeds)]


def in_order(rows: list[Said]) -> list[int]:
    return [row.id for row in sorted(rows, key=lambda row: (row.turn, row.id))]


def naive_view(past: Past, place: Place, now: datetime, hours: int) -> list[int]:
    since = now - timedelta(hours=hours)
    rows, deeds = said_in(past, place.thread), deeds_of(past, place)
    bases = [deed for deed in standing(deeds) if deed.kind in {"clear", "edit", "restore"}]
    boundary, members = 0, list[Said]()
    if bases:
        boundary = bases[-1].after
        listed = [row for member in bases[-1].members for row in rows if row.id == member]
        members = listed if bases[-1].at > since else []
    newer = deeds[deeds.index(bases[-1]) + 1 :] if bases else deeds
    retries = [deed for deed in standing(deeds) if deed.kind == "retry" and deed in newer]
    allowed = {None, *(deed.id for deed in retries)}
    spoken = [
        row
        for row in rows
        if row not in members
        and row.id > boundary
        and row.at > since
        and row.introduced_by in allowed
        and (row.turn > boundary or row.turn in {member.turn for member in members})
    ]
    gone = {row for deed in retries for row in deed.replaced}
    return [
        row
        for row in [member.id for member in members] + in_order(spoken)
        if row not in gone and not any(taken_back(("turn", known.turn), newer) for known in rows if known.id == row)
    ]


def naive_reason(row: Said, past: Past, place: Place, since: datetime) -> str:
    """Return why a row that is not in view is not, by the first reason that holds."""
    deeds = deeds_of(past, place)
    counting = standing(deeds)
    boundaries = [deed for deed in counting if deed.kind in {"clear", "edit", "restore"}]
    base = boundaries[-1] if boundaries else None
    maker = next((deed for deed in deeds if deed.id == row.introduced_by), None)
    if base and row.id in base.members:
        return "age" if base.at <= since else "none: it was just put in"
    if maker and row.id in maker.members and not any(row.id in deed.members for deed in counting):
        return "withdrawn"
    turns = {known.turn for known in said_in(past, place.thread) if base and known.id in base.members}
    if base and (row.id <= base.after or (maker and maker.id < base.id)):
        return "boundary"
    if base and row.turn <= base.after and row.turn not in turns:
        return "boundary"
    if maker and maker not in counting and row.at > since:
        return "taken back"
    has_left = base is not None and base.at <= since and row.turn in turns
    return "age" if row.at <= since or has_left else "none: it is young enough"


def untouched_view(past: Past, place: Place, now: datetime, hours: int) -> list[int]:
    """Return what would be in view if no operation had ever been made."""
    since = now - timedelta(hours=hours)
    return in_order([row for row in said_in(past, place.thread) if row.introduced_by is None and row.at > since])


def naive_undoable(past: Past, place: Place) -> Deed | None:
    by_hand = [deed for deed in standing(deeds_of(past, place)) if deed.kind not in {"compact", "flash"}]
    return by_hand[-1] if by_hand else None


def naive_redoable(past: Past, place: Place) -> Deed | None:
    """Walk through everything that happened: an undo opens, its redo closes, and anything else closes all."""
    undos: list[Deed] = []
    for event in past:
        if isinstance(event, Said):
            if event.thread == place.thread and event.turn == event.id and event.introduced_by is None:
                undos = []
        elif not concerns(event, place) or event.kind in {"compact", "flash"}:
            continue
        elif event.kind == "undo":
            undos.append(event)
        elif event.kind == "redo":
            undos = [undo for undo in undos if undo.target != event.target]
        else:
            undos = []
    return undos[-1] if undos else None


def written(moment: datetime, digits: int) -> str:
    """Return a moment as a person or a program may put it into a row: with 0, 3 or 6 digits of the second."""
    whole = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{moment.microsecond:06d}"[: len(whole) + (1 + digits if digits else 0)] + "Z"


class ViewMachine(RuleBasedStateMachine):
    """Does the same to the database and to the model, and compares them after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.connection = database()
        self.past: Past = []
        self.now = START
        self.hours = dict.fromkeys(PERSONAS, 8)
        self.streaming: list[Message] = []
        self.rows_seen: dict[int, tuple[object, ...]] = {}
        self.operations_seen: list[tuple[object, ...]] = []

    def teardown(self) -> None:
        self.connection.close()

    # What is said

    @rule(place=SOMEWHERE, at_once=st.booleans())
    def say(self, place: Place, at_once: bool) -> None:  # noqa: FBT001 - hypothesis draws it by name
        question = Question(place.persona, place.thread, "question", self.now, "", 1)
        opened = message_log.open_turn(self.connection, question, "model", RUN)
        turn = opened.question.id
        self.past += [Said(row.id, place.thread, turn, self.now) for row in (opened.question, opened.reply)]
        self.streaming.append(opened.reply)
        if at_once:
            self._land(opened.reply)

    @precondition(lambda self: self.streaming)
    @rule(data=st.data())
    def land_a_reply(self, data: st.DataObject) -> None:
        self._land(data.draw(st.sampled_from(self.streaming)))

    @precondition(lambda self: self.streaming)
    @rule(data=st.data())
    def use_a_tool_in_a_running_turn(self, data: st.DataObject) -> None:
        reply = data.draw(st.sampled_from(self.streaming))
        self._insert(Place(reply.persona, reply.thread_id), self.now, role="tool_result", turn=reply.turn_id)

    @rule(
        place=SOMEWHERE,
        age=st.timedeltas(timedelta(days=-2), timedelta(days=9)),
        digits=st.sampled_from((0, 3, 6)),
    )
    def put_a_row_in_by_plain_sql(self, place: Place, age: timedelta, digits: int) -> None:
        text = written(self.now - age, digits)
        cursor = self.connection.execute(
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES (?, ?, 'user', 'by hand', ?)",
            (place.persona, place.thread, text),
        )
        row = int(cursor.lastrowid or 0)
        self.past.append(Said(row, place.thread, row, datetime.fromisoformat(text)))

    @rule()
    def die_and_start_again(self) -> None:
        waiting = len(self.streaming)
        assert orphans.mend(self.connection, lambda _run: False, self.now) == waiting
        self.streaming.clear()

    # What is done

    @rule(persona=SOMEBODY)
    def clear(self, persona: str) -> None:
        self._do(NewOperation(persona, Kind.CLEAR, self.now))

    @rule(place=SOMEWHERE, data=st.data())
    def edit(self, place: Place, data: st.DataObject) -> None:
        kept = self._draw_members(data, [place])
        reworded = [self._introduced(place) for _ in range(data.draw(st.integers(0, 2)))]
        members = tuple(data.draw(st.permutations(kept + reworded)))
        after = data.draw(st.just(self._newest_row()) | st.integers(0, self._newest_row()))
        self._do(NewOperation(place.persona, Kind.EDIT, self.now, place.thread, after, members))

    @rule(persona=SOMEBODY, data=st.data())
    def restore(self, persona: str, data: st.DataObject) -> None:
        places = [place for place in PLACES if place.persona == persona]
        kept = self._draw_members(data, places)
        missing = [self._introduced(place) for place in places if data.draw(st.booleans())]
        self._do(NewOperation(persona, Kind.RESTORE, self.now, members=(*kept, *missing)))

    @rule(place=SOMEWHERE, data=st.data())
    def retry(self, place: Place, data: st.DataObject) -> None:
        visible = [row for row in said_in(self.past, place.thread) if row.id in self._expected(place)]
        answered = sorted({row.turn for row in visible if row.id != row.turn})
        if not answered:
            return
        turn = data.draw(st.sampled_from(answered))
        old = frozenset(row.id for row in visible if row.turn == turn and row.id != turn)
        deed = self._do(NewOperation(place.persona, Kind.RETRY, self.now, place.thread, replaced=old))
        self._insert(place, self.now, turn=turn, introduced_by=deed.id)

    @rule(place=SOMEWHERE, kind=st.sampled_from((Kind.COMPACT, Kind.FLASH)))
    def let_something_happen_by_itself(self, place: Place, kind: Kind) -> None:
        thread = place.thread if kind is Kind.COMPACT else None
        self._do(NewOperation(place.persona, kind, self.now, thread, automatic=True))

    @rule(persona=SOMEBODY, hours=st.sampled_from((1, 2, 8, 24, 168)))
    def set_the_window(self, persona: str, hours: int) -> None:
        change = WindowChange(self.hours[persona], hours)
        self._do(NewOperation(persona, Kind.WINDOW, self.now, window=change))
        self.hours[persona] = hours

    # What is taken back

    @rule(place=SOMEWHERE)
    def undo_the_newest(self, place: Place) -> None:
        deed = naive_undoable(self.past, place)
        if deed is not None:
            self._reverse(Kind.UNDO, deed)

    @rule(place=SOMEWHERE, data=st.data())
    def undo_by_number(self, place: Place, data: st.DataObject) -> None:
        deeds = standing(deeds_of(self.past, place))
        if deeds:
            self._reverse(Kind.UNDO, data.draw(st.sampled_from(deeds)))

    @rule(place=SOMEWHERE, data=st.data())
    def undo_a_turn(self, place: Place, data: st.DataObject) -> None:
        rows = {row.turn for row in said_in(self.past, place.thread) if row.id in self._expected(place)}
        if rows:
            turn = data.draw(st.sampled_from(sorted(rows)))
            target = Target(turn_id=turn)
            self._do(NewOperation(place.persona, Kind.UNDO, self.now, place.thread, target=target))

    @rule(place=SOMEWHERE)
    def redo(self, place: Place) -> None:
        undo = naive_redoable(self.past, place)
        if undo is None or undo.target is None:
            return
        what, number = undo.target
        if what == "turn":
            target = Target(turn_id=number)
            self._do(NewOperation(place.persona, Kind.REDO, self.now, undo.thread, target=target))
        else:
            self._reverse(Kind.REDO, next(deed for deed in deeds_of(self.past, place) if deed.id == number))

    # What time does

    @rule(
        elapsed=st.sampled_from(
            (
                timedelta(microseconds=1),
                timedelta(minutes=1),
                timedelta(minutes=10),
                timedelta(hours=1),
                timedelta(hours=7, minutes=59, seconds=59, microseconds=999_999),
                timedelta(hours=8),
                timedelta(days=1),
                timedelta(days=7),
            )
        )
    )
    def let_time_pass(self, elapsed: timedelta) -> None:
        self.now += elapsed

    @rule(elapsed=st.timedeltas(timedelta(0), timedelta(days=2)))
    def set_the_clock_back(self, elapsed: timedelta) -> None:
        self.now -= elapsed

    # What always holds

    @invariant()
    def the_view_is_what_the_definitions_say(self) -> None:
        for place in PLACES:
            seen = self._seen(place)
            assert seen == self._expected(place)
            assert len(seen) == len(set(seen))

    @invariant()
    def the_rows_within_reach_are_enough(self) -> None:
        everything = message_log.rows(self.connection, range(1, self._newest_row() + 1))
        for place in PLACES:
            operations = operation_log.all_of(self.connection, place.persona, place.thread)
            whole = view(place.thread, everything, operations, cutoff(self.now, self.hours[place.persona]))
            assert [row.id for row in whole.messages] == self._seen(place)

    @invariant()
    def each_message_is_in_view_or_left_out_once_and_for_the_reason_that_holds(self) -> None:
        for place in PLACES:
            since = cutoff(self.now, self.hours[place.persona])
            seen = view_of(context_rows(self.connection, place.persona, place.thread, since), place.thread)
            known = {row.id for row in (*seen.messages, *seen.taken_back)}
            assert len(known) == len(seen.messages) + len(seen.taken_back)
            empty = {id_ for (id_,) in self.connection.execute("SELECT id FROM messages WHERE content = ''")}
            others = [row for row in said_in(self.past, place.thread) if row.id not in known | empty]
            expected = Counter(naive_reason(row, self.past, place, since) for row in others)
            found = left_out(self.connection, place.persona, place.thread, seen)
            assert {reason: each.messages for reason, each in found.items()} == expected

    @invariant()
    def undo_and_redo_find_what_is_next(self) -> None:
        for place in PLACES:
            operations = operation_log.all_of(self.connection, place.persona, place.thread)
            newest_turn = message_log.newest_turn_id(self.connection, place.thread)
            assert number(journal.undoable(operations)) == number(naive_undoable(self.past, place))
            assert number(journal.redoable(operations, newest_turn)) == number(naive_redoable(self.past, place))

    @invariant()
    def undoing_everything_is_as_if_nothing_had_been_done(self) -> None:
        self.connection.execute("SAVEPOINT trial")
        for place in PLACES:
            self._undo_everything(place)
            assert self._seen(place) == untouched_view(self.past, place, self.now, self.hours[place.persona])
        self._end_trial()

    @invariant()
    def a_clear_empties_every_view_of_the_persona(self) -> None:
        self.connection.execute("SAVEPOINT trial")
        for persona in PERSONAS:
            operation_log.introduce(self.connection, NewOperation(persona, Kind.CLEAR, self.now))
        assert [self._seen(place) for place in PLACES] == [[], [], []]
        self._end_trial()

    @invariant()
    def the_log_and_the_journal_only_grow(self) -> None:
        running = {reply.id for reply in self.streaming}
        rows = {row[0]: row for row in self.connection.execute("SELECT * FROM messages WHERE status <> 'streaming'")}
        assert {id_: rows.get(id_) for id_ in self.rows_seen} == self.rows_seen
        operations = self.connection.execute("SELECT * FROM operations").fetchall()
        assert operations[: len(self.operations_seen)] == self.operations_seen
        assert len(rows) + len(running) == len([event for event in self.past if isinstance(event, Said)])
        self.rows_seen, self.operations_seen = rows, operations

    # How it is done

    def _seen(self, place: Place) -> list[int]:
        since = cutoff(self.now, self.hours[place.persona])
        rows = context_rows(self.connection, place.persona, place.thread, since)
        return [row.id for row in view(place.thread, rows.messages, rows.operations, since).messages]

    def _expected(self, place: Place) -> list[int]:
        return naive_view(self.past, place, self.now, self.hours[place.persona])

    def _newest_row(self) -> int:
        return max((event.id for event in self.past if isinstance(event, Said)), default=0)

    def _next_operation(self) -> int:
        return 1 + sum(isinstance(event, Deed) for event in self.past)

    def _land(self, reply: Message) -> None:
        message_log.update_reply(self.connection, reply, ReplyState("answer", Status.COMPLETE, 1))
        self.streaming.remove(reply)

    def _insert(
        self, place: Place, at: datetime, *, role: str = "assistant", turn: int | None, introduced_by: int | None = None
    ) -> int:
        cursor = self.connection.execute(
            "INSERT INTO messages(persona, thread_id, turn_id, role, content, timestamp, introduced_by) "
            "VALUES (?, ?, ?, ?, 'later', ?, ?)",
            (place.persona, place.thread, turn, role, written(at, 6), introduced_by),
        )
        row = int(cursor.lastrowid or 0)
        self.past.append(Said(row, place.thread, turn or row, at, introduced_by))
        return row

    def _introduced(self, place: Place) -> int:
        """Put a row in for the operation that is about to be stored, and let it be older than any window."""
        old = self.now - timedelta(days=30)
        return self._insert(place, old, role="user", turn=None, introduced_by=self._next_operation())

    def _draw_members(self, data: st.DataObject, places: list[Place]) -> list[int]:
        known = [row.id for place in places for row in said_in(self.past, place.thread)]
        return data.draw(st.lists(st.sampled_from(known[-12:]), unique=True, max_size=8)) if known else []

    def _do(self, new: NewOperation) -> Deed:
        stored = operation_log.introduce(self.connection, new)
        assert stored.id == self._next_operation()
        after = self._newest_row() if new.after_message_id is None else new.after_message_id
        deed = Deed(stored.id, new.kind.value, new.persona, new.thread_id, after, new.created_at, stored.members)
        deed = replace(deed, replaced=new.replaced, target=named(new.target), hours=hours(new.window))
        self.past.append(deed)
        return deed

    def _reverse(self, kind: Kind, deed: Deed) -> None:
        target = Target(operation_id=deed.id)
        self._do(NewOperation(deed.persona, kind, self.now, deed.thread, target=target))
        if deed.hours is not None:
            self.hours[deed.persona] = deed.hours[0 if kind is Kind.UNDO else 1]

    def _undo_everything(self, place: Place) -> None:
        operations = operation_log.all_of(self.connection, place.persona, place.thread)
        for operation in journal.effective(operations):
            target = Target(operation_id=operation.id)
            new = NewOperation(place.persona, Kind.UNDO, self.now, operation.thread_id, target=target)
            operation_log.introduce(self.connection, new)
        for target, word in journal.last_words(operations).items():
            if target.turn_id is not None and word.kind is Kind.UNDO:
                new = NewOperation(place.persona, Kind.REDO, self.now, place.thread, target=target)
                operation_log.introduce(self.connection, new)

    def _end_trial(self) -> None:
        self.connection.execute("ROLLBACK TO trial")
        self.connection.execute("RELEASE trial")


def number(found: Operation | Deed | None) -> int | None:
    return found.id if found else None


def named(target: Target | None) -> tuple[str, int] | None:
    if target is None:
        return None
    if target.turn_id is not None:
        return "turn", target.turn_id
    assert target.operation_id is not None
    return "operation", target.operation_id


def hours(change: WindowChange | None) -> tuple[int, int] | None:
    if change is None:
        return None
    assert isinstance(change.before, int)
    assert isinstance(change.after, int)
    return change.before, change.after


def test_the_view_is_what_the_definitions_say() -> None:
    run_state_machine_as_test(ViewMachine, settings=settings(max_examples=35, stateful_step_count=40, deadline=None))


@pytest.mark.slow
def test_the_view_is_what_the_definitions_say_through_long_stories() -> None:
    long = settings(max_examples=150, stateful_step_count=80, deadline=None)
    run_state_machine_as_test(ViewMachine, settings=long)
