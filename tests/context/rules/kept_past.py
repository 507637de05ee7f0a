"""A past that is kept twice: in the rows of a database, and as a plain list for the naive view."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Redo, Restore, Retry, Subject, Undo, Window
from chorus_cli.log.rules.log_acts import Act
from chorus_cli.log.rules.messages import Message, Status
from chorus_cli.log.rules.operations import NewOperation, Operation
from tests.context.rules.naive_view import PERSONAS, Deed, Past, Place, Said, naive_view, said_elsewhere, said_in
from tests.fakes import START
from tests.log.rows.views import view_in
from tests.storage.database import database

RUN = "this-run"


def written(moment: datetime, digits: int) -> str:
    """Return a moment as a person or a program may put it into a row: with 0, 3 or 6 digits of the second."""
    whole = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{moment.microsecond:06d}"[: len(whole) + (1 + digits if digits else 0)] + "Z"


class KeptPast(RuleBasedStateMachine):
    """Does the same to the database and to the list."""

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
