"""A past that is kept twice, in the rows of a database and as a plain list: both have the same view at every step."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from chorus_cli.context.rows.thread_views import count_outside, window_fill
from chorus_cli.context.rules.view import reasons_outside, view
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import interrupted_replies, message_rows, operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Clear, Edit, Fold, Fork, Redo, Restore, Retry, Subject, Undo, Window
from chorus_cli.log.rules.log_acts import Act, Flash, Import
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Status, is_written, runs
from chorus_cli.log.rules.operations import NewOperation, Operation
from tests.context.rules.naive_view import (
    PERSONAS,
    PLACES,
    Deed,
    Past,
    Place,
    Said,
    deeds_of,
    naive_last_spoken,
    naive_reason,
    naive_redoable,
    naive_undoable,
    naive_view,
    said_elsewhere,
    said_in,
    standing,
    untouched_view,
)
from tests.fakes import START
from tests.log.rows.views import view_in
from tests.log.rules.keeping import Keep, registered
from tests.storage.database import new_log

RUN = "this-run"


def written(moment: datetime, digits: int) -> str:
    """Return a moment as a person or a program may put it into a row: with 0, 3 or 6 digits of the second."""
    whole = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{moment.microsecond:06d}"[: len(whole) + (1 + digits if digits else 0)] + "Z"


class KeptPast(RuleBasedStateMachine):
    """Does the same to the database and to the list."""

    def __init__(self) -> None:
        super().__init__()
        self.log = ExitStack()
        self.connection = self.log.enter_context(new_log())
        self.past: Past = []
        self.now = START
        self.hours = dict.fromkeys(PERSONAS, 8)
        self.streaming: list[Message] = []
        self.rows_seen: dict[int, tuple[object, ...]] = {}
        self.operations_seen: list[tuple[object, ...]] = []

    def teardown(self) -> None:
        self.log.close()

    def _seen(self, place: Place) -> list[int]:
        since = cutoff(self.now, self.hours[place.persona])
        return [row.id for row in view_in(self.connection, place.persona, place.thread, since).messages]

    def _expected(self, place: Place) -> list[int]:
        return naive_view(self.past, place, self.now, self.hours[place.persona])

    def _newest_row(self) -> int:
        return max((event.id for event in self.past if isinstance(event, Said)), default=0)

    def _next_operation(self) -> int:
        return 1 + sum(isinstance(event, Deed) for event in self.past)

    def _land(self, reply: Message) -> None:
        message_rows.update_reply(
            self.connection, reply._replace(content="answer", status=Status.COMPLETE, token_count=1)
        )
        self.streaming.remove(reply)

    def _insert(
        self, place: Place, at: datetime, *, role: str = "assistant", turn: int | None, introduced_by: int | None = None
    ) -> int:
        stored = self.connection.execute(
            "INSERT INTO messages(persona, thread_id, turn_id, role, content, timestamp, introduced_by) "
            "VALUES (?, ?, ?, ?, 'later', ?, ?) RETURNING id",
            (place.persona, place.thread, turn, role, written(at, 6), introduced_by),
        )
        row = int(stored.fetchone()[0])
        self.past.append(Said(row, place.thread, turn or row, at, introduced_by))
        return row

    def _introduced(self, place: Place) -> int:
        """Put a row in for the operation that is about to be stored, and let it be older than any window."""
        old = self.now - timedelta(days=30)
        return self._insert(place, old, role="user", turn=None, introduced_by=self._next_operation())

    def _draw_members(self, data: st.DataObject, places: list[Place]) -> list[int]:
        elsewhere = [row.id for row in said_elsewhere(self.past, places[0])] if len(places) == 1 else []
        known = [*elsewhere, *(row.id for place in places for row in said_in(self.past, place.thread))]
        return data.draw(st.lists(st.sampled_from(known[-12:]), unique=True, max_size=8)) if known else []

    def _do(self, new: NewOperation) -> Deed:
        stored = operation_rows.introduce(self.connection, new)
        assert stored.id == self._next_operation()
        after = self._newest_row() if new.after_message_id is None else new.after_message_id
        deed = Deed(stored.id, new.act.kind, new.persona, new.thread_id, after, new.created_at, stored.members)
        deed = replace(deed, replaced=replaced(new.act), subject=named(stored.subject), hours=hours(new.act))
        deed = replace(deed, threads=new.act.threads if isinstance(new.act, Restore) else ())
        self.past.append(deed)
        return deed

    def _reverse(self, act: type[Undo | Redo], deed: Deed) -> None:
        self._do(NewOperation(deed.persona, act(Subject(operation_id=deed.id)), self.now, deed.thread))
        if deed.hours is not None:
            self.hours[deed.persona] = deed.hours[0 if act is Undo else 1]

    def _undo_everything(self, place: Place) -> None:
        operations = operation_rows.all_of(self.connection, place.persona, place.thread)
        for operation in journal.effective(operations):
            undo = Undo(Subject(operation_id=operation.id))
            operation_rows.introduce(self.connection, NewOperation(place.persona, undo, self.now, operation.thread_id))
        for subject in journal.undone(operations):
            if subject.turn_id is not None:
                new = NewOperation(place.persona, Redo(subject), self.now, place.thread)
                operation_rows.introduce(self.connection, new)

    def _end_trial(self) -> None:
        self.connection.execute("ROLLBACK TO trial")
        self.connection.execute("RELEASE trial")
        if not isinstance(self.connection, sqlite3.Connection):
            # A server does not give an id again, which this story counts.
            for table in ("messages", "operations"):
                ids = f"setval(pg_get_serial_sequence('{table}', 'id'), COALESCE(MAX(id), 0) + 1, FALSE)"
                self.connection.execute(f"SELECT {ids} FROM {table}")  # noqa: S608 - names of this file


def number(found: Operation | Deed | None) -> int | None:
    return found.id if found else None


def named(subject: Subject | None) -> tuple[str, int] | None:
    if subject is None:
        return None
    if subject.turn_id is not None:
        return "turn", subject.turn_id
    assert subject.operation_id is not None
    return "operation", subject.operation_id


def hours(act: Act) -> tuple[int, int] | None:
    if not isinstance(act, Window):
        return None
    assert isinstance(act.before, int)
    assert isinstance(act.after, int)
    return act.before, act.after


def replaced(act: Act) -> frozenset[int]:
    return act.replaced if isinstance(act, Retry) else frozenset()


AGES = st.timedeltas(timedelta(0), timedelta(hours=12))


class ImportedPast(KeptPast):
    """Imports messages of any age, on any branch, and moves older ones off the live branch or back to it."""

    @rule(persona=st.sampled_from(("chorus", "chorus", "frodo")), data=st.data())
    def bring_in_an_import(self, persona: str, data: st.DataObject) -> None:
        known = [row.id for row in self.past if isinstance(row, Said) and self._is_imported(row, persona)]
        moved = data.draw(st.dictionaries(st.sampled_from(known), st.booleans(), max_size=3)) if known else {}
        supersedes, revives = (sorted(id_ for id_, off in moved.items() if off is way) for way in (True, False))
        act = Import(("a program",), 1, 1, runs(supersedes), runs(revives))
        deed = self._do(NewOperation(persona, act, self.now))
        self.past[self.past.index(deed)] = deed = replace(deed, moved=tuple(moved.items()))
        places = [place for place in PLACES if place.persona == persona]
        for place in data.draw(st.lists(st.sampled_from(places), max_size=4)):
            at, superseded = self.now - data.draw(AGES), data.draw(st.booleans())
            content = MessageContent(place.thread, Role.USER, "imported", at, superseded=superseded)
            row = message_rows.insert_row(self.connection, persona, content, introduced_by=deed.id)
            self.past.append(Said(row, place.thread, row, at, deed.id, superseded))

    def _is_imported(self, row: Said, persona: str) -> bool:
        makers = (deed for deed in self.past if isinstance(deed, Deed) and deed.id == row.introduced_by)
        return any(deed.kind == "import" and deed.persona == persona for deed in makers)


class CountedPast(ImportedPast):
    """Holds the counts and times of the database to the core."""

    @invariant()
    def the_counts_of_windows_are_those_of_their_views(self) -> None:
        for place in PLACES:
            cutoffs = cutoff(self.now, self.hours[place.persona]), cutoff(self.now, 168)
            fill = window_fill(self.connection, place.persona, place.thread, *cutoffs)
            views = (view_in(self.connection, place.persona, place.thread, since) for since in cutoffs)
            assert [fill.held, fill.reachable] == [sum(map(is_written, seen.messages)) for seen in views]

    @invariant()
    def the_last_time_is_that_of_the_newest_message_that_was_said_or_imported(self) -> None:
        for place in PLACES:
            found = operation_rows.last_spoken_at(self.connection, place.thread)
            expected = naive_last_spoken(self.past, place)
            assert (found is None) == (expected is None)
            # Of times in one second the text decides, which may have fewer digits.
            assert found is None or expected is None or abs(found - expected) < timedelta(seconds=1)


# Stories become intricate only where most of what happens happens.
SOMEWHERE = st.sampled_from((PLACES[0],) * 4 + PLACES[1:])
SOMEBODY = st.sampled_from(("chorus", "chorus", "frodo"))


class ViewMachine(CountedPast):
    """Does the same to the database and to the model, and compares them after each step."""

    # What is said

    @rule(place=SOMEWHERE, at_once=st.booleans())
    def say(self, place: Place, at_once: bool) -> None:  # noqa: FBT001 - hypothesis draws it by name
        said = MessageContent(place.thread, Role.USER, "question", self.now, token_count=1)
        question, reply = message_rows.open_turn(self.connection, place.persona, said, "model", RUN)
        self.past += [Said(row.id, place.thread, question.id, self.now) for row in (question, reply)]
        self.streaming.append(reply)
        if at_once:
            self._land(reply)

    @precondition(lambda self: self.streaming)
    @rule(data=st.data())
    def land_a_reply(self, data: st.DataObject) -> None:
        self._land(data.draw(st.sampled_from(self.streaming)))

    @precondition(lambda self: self.streaming)
    @rule(data=st.data())
    def use_a_tool_in_a_running_turn(self, data: st.DataObject) -> None:
        reply = data.draw(st.sampled_from(self.streaming))
        self._insert(Place(reply.persona, reply.thread_id), self.now, role="tool_result", turn=reply.turn_id)

    @rule(place=SOMEWHERE, age=st.timedeltas(timedelta(days=-2), timedelta(days=9)), digits=st.sampled_from((0, 3, 6)))
    def put_a_row_in_by_plain_sql(self, place: Place, age: timedelta, digits: int) -> None:
        text = written(self.now - age, digits)
        (row,) = self.connection.execute(
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES (?, ?, 'user', 'by hand', ?) "
            "RETURNING id",
            (place.persona, place.thread, text),
        ).fetchone()
        self.past.append(Said(row, place.thread, row, datetime.fromisoformat(text)))

    @rule()
    def die_and_start_again(self) -> None:
        waiting = len(self.streaming)
        assert (
            len(interrupted_replies.mark_interrupted(self.connection, lambda _run: False, self.now).interrupted)
            == waiting
        )
        self.streaming.clear()

    # What is done

    @rule(persona=SOMEBODY)
    def clear(self, persona: str) -> None:
        self._do(NewOperation(persona, Clear(), self.now))

    @rule(place=SOMEWHERE, data=st.data())
    def edit(self, place: Place, data: st.DataObject) -> None:
        kept = self._draw_members(data, [place])
        reworded = [self._introduced(place) for _ in range(data.draw(st.integers(0, 2)))]
        members = tuple(data.draw(st.permutations(kept + reworded)))
        after = data.draw(st.just(self._newest_row()) | st.integers(0, self._newest_row()))
        self._do(NewOperation(place.persona, Edit(), self.now, place.thread, after, members))

    @rule(persona=SOMEBODY, data=st.data())
    def restore(self, persona: str, data: st.DataObject) -> None:
        places = [place for place in PLACES if place.persona == persona]
        kept = self._draw_members(data, places)
        missing = [self._introduced(place) for place in places if data.draw(st.booleans())]
        self._do(NewOperation(persona, Restore(), self.now, members=(*kept, *missing)))

    @rule(data=st.data())
    def restore_each_thread_with_rows_of_any(self, data: st.DataObject) -> None:
        drawn = [self._draw_members(data, [*PLACES[:2]]) for _ in PLACES[:2]]
        threads = tuple((place.thread, len(rows)) for place, rows in zip(PLACES, drawn, strict=False))
        members = tuple(row for rows in drawn for row in rows)
        self._do(NewOperation("chorus", Restore(threads=threads), self.now, members=members))

    @rule(there=st.sampled_from(((0, 1), (1, 0))))
    def fork(self, there: tuple[int, int]) -> None:
        """Give a thread the view of another one, as it is when a thread is opened by a fork."""
        origin, forked = (PLACES[index] for index in there)
        members = tuple(self._expected(origin))
        act = Fork(origin=origin.thread, origin_number=origin.thread)
        self._do(NewOperation(origin.persona, act, self.now, forked.thread, members=members))
        assert self._seen(forked) == list(members)

    @rule(place=SOMEWHERE, data=st.data())
    def keep(self, place: Place, data: st.DataObject) -> None:
        members = tuple(self._draw_members(data, [place]))
        self._do(NewOperation(place.persona, Keep(), self.now, place.thread, members=members))

    @rule(place=SOMEWHERE, data=st.data())
    def retry(self, place: Place, data: st.DataObject) -> None:
        visible = [row for row in self._within_reach(place) if row.id in self._expected(place)]
        answered = sorted({row.turn for row in visible if row.id != row.turn})
        if not answered:
            return
        turn = data.draw(st.sampled_from(answered))
        old = frozenset(row.id for row in visible if row.turn == turn and row.id != turn)
        deed = self._do(NewOperation(place.persona, Retry(old), self.now, place.thread))
        self._insert(place, self.now, turn=turn, introduced_by=deed.id)

    @rule(place=SOMEWHERE, act=st.sampled_from((Fold(), Flash())))
    def let_something_happen_by_itself(self, place: Place, act: Fold | Flash) -> None:
        thread = place.thread if isinstance(act, Fold) else None
        self._do(NewOperation(place.persona, act, self.now, thread, automatic=True))

    @rule(persona=SOMEBODY, hours=st.sampled_from((1, 2, 8, 24, 168)))
    def set_the_window(self, persona: str, hours: int) -> None:
        self._do(NewOperation(persona, Window(self.hours[persona], hours), self.now))
        self.hours[persona] = hours

    # What is taken back

    @rule(place=SOMEWHERE)
    def undo_the_newest(self, place: Place) -> None:
        deed = naive_undoable(self.past, place)
        if deed is not None:
            self._reverse(Undo, deed)

    @rule(place=SOMEWHERE, data=st.data())
    def undo_by_number(self, place: Place, data: st.DataObject) -> None:
        deeds = standing(deeds_of(self.past, place))
        if deeds:
            self._reverse(Undo, data.draw(st.sampled_from(deeds)))

    @rule(place=SOMEWHERE, data=st.data())
    def undo_a_turn(self, place: Place, data: st.DataObject) -> None:
        rows = {row.turn for row in self._within_reach(place) if row.id in self._expected(place)}
        if rows:
            turn = data.draw(st.sampled_from(sorted(rows)))
            self._do(NewOperation(place.persona, Undo(Subject(turn_id=turn)), self.now, place.thread))

    @rule(place=SOMEWHERE)
    def redo(self, place: Place) -> None:
        undo = naive_redoable(self.past, place)
        if undo is None or undo.subject is None:
            return
        what, number = undo.subject
        if what == "turn":
            self._do(NewOperation(place.persona, Redo(Subject(turn_id=number)), self.now, undo.thread))
        else:
            self._reverse(Redo, next(deed for deed in deeds_of(self.past, place) if deed.id == number))

    def _within_reach(self, place: Place) -> list[Said]:
        return [*said_in(self.past, place.thread), *said_elsewhere(self.past, place)]

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
        everything = message_rows.rows(self.connection, range(1, self._newest_row() + 1))
        for place in PLACES:
            operations = operation_rows.all_of(self.connection, place.persona, place.thread)
            whole = view(
                everything,
                journal.thread_journal(place.thread, operations),
                cutoff(self.now, self.hours[place.persona]),
            )
            assert [row.id for row in whole.messages] == self._seen(place)

    @invariant()
    def each_message_is_in_view_or_left_out_once_and_for_the_reason_that_holds(self) -> None:
        for place in PLACES:
            since = cutoff(self.now, self.hours[place.persona])
            seen = view_in(self.connection, place.persona, place.thread, since)
            known = {row.id for row in (*seen.messages, *seen.taken_back)}
            assert len(known) == len(seen.messages) + len(seen.taken_back)
            empty = {id_ for (id_,) in self.connection.execute("SELECT id FROM messages WHERE content = ''")}
            others = [row for row in self._within_reach(place) if row.id not in known | empty]
            expected = Counter(naive_reason(row, self.past, place, since) for row in others)
            assert count_outside(self.connection, place.persona, place.thread, seen).messages == expected
            rows = message_rows.rows(self.connection, range(1, self._newest_row() + 1))
            operations = operation_rows.all_of(self.connection, place.persona, place.thread)
            within_reach = {row.id for row in self._within_reach(place)}
            in_thread = [row for row in rows if row.id in within_reach]
            assert Counter(reasons_outside(place.thread, in_thread, operations, seen).values()) == expected

    @invariant()
    def undo_and_redo_find_what_is_next(self) -> None:
        for place in PLACES:
            operations = operation_rows.all_of(self.connection, place.persona, place.thread)
            newest_turn = message_rows.newest_turn_id(self.connection, place.thread)
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
            operation_rows.introduce(self.connection, NewOperation(persona, Clear(), self.now))
        assert [self._seen(place) for place in PLACES] == [[], [], []]
        self._end_trial()

    @invariant()
    def the_log_and_the_journal_only_grow(self) -> None:
        running = {reply.id for reply in self.streaming}
        rows = {row[0]: row for row in self.connection.execute("SELECT * FROM messages WHERE status <> 'streaming'")}
        assert {id_: rows.get(id_) for id_ in self.rows_seen} == self.rows_seen
        operations = self.connection.execute("SELECT * FROM operations ORDER BY id").fetchall()
        assert operations[: len(self.operations_seen)] == self.operations_seen
        assert len(rows) + len(running) == len([event for event in self.past if isinstance(event, Said)])
        self.rows_seen, self.operations_seen = rows, operations


def test_the_view_is_what_the_definitions_say() -> None:
    with registered():
        run_state_machine_as_test(
            ViewMachine, settings=settings(max_examples=min(10, settings().max_examples), stateful_step_count=40)
        )


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_view_is_what_the_definitions_say_through_long_stories() -> None:
    long = settings(max_examples=150, stateful_step_count=80)
    with registered():
        run_state_machine_as_test(ViewMachine, settings=long)
