"""The rules of the journal: which operations count, where the context begins, how rows of the log are marked.

An undo or a redo is an operation too. The newest undo or redo of an operation or of a turn decides whether the
operation or the turn counts.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from chorus_cli.core.errors import JournalError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.log.rules.acts import Clear, Fold, Fork, Pin, Redo, Retry, Reversal, Subject, Undo, Unpin, Window
from chorus_cli.log.rules.log_acts import Act, Greeting, Import, MemoryAct, Unreadable
from chorus_cli.log.rules.messages import Message, expanded
from chorus_cli.log.rules.operations import Operation


@dataclass(frozen=True)
class ThreadJournal:
    """The operations that concern a thread, from its boundary on, and their effect on its context.

    ``later`` are the operations that count since the ``boundary``, oldest first. They keep the messages ``kept`` in
    context at any age, and the ``pinned`` messages word for word. The messages ``brought`` are in context even if they
    were said in other threads. Retries and greetings took out the messages ``replaced``, and undos the
    ``undone_turns``. ``moved_off`` says, by id, whether imports moved a message off the live branch of its conversation
    (``True``) or back to it. The messages ``hidden`` are off that branch because another program hid them from the
    model. ``withdrawn`` are imports and retries that were undone since the boundary; their messages are out of context,
    even as members of another operation. ``newest_id`` is the newest operation that breaks the prefix by changing the
    context or hiding a memory item, 0 if there is none. ``fold_is_undone`` says that the newest fold was undone.
    """

    thread_id: int
    operations: Sequence[Operation] = ()
    boundary: Operation | None = None
    later: Sequence[Operation] = ()
    kept: frozenset[int] = frozenset()
    pinned: frozenset[int] = frozenset()
    brought: frozenset[int] = frozenset()
    replaced: frozenset[int] = frozenset()
    undone_turns: frozenset[int] = frozenset()
    moved_off: Mapping[int, bool] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()
    withdrawn: frozenset[int] = frozenset()
    newest_id: int = 0
    fold_is_undone: bool = False


def thread_journal(thread_id: int, operations: Sequence[Operation], forgetting: int = 0) -> ThreadJournal:
    """Return the effect of the ``operations`` that concern a thread.

    They must reach back to the thread's boundary, and contain older imports that were undone since the boundary.
    ``forgetting`` is the newest operation that hides a memory item now, 0 if there is none.
    """
    if not operations:
        return ThreadJournal(thread_id, newest_id=forgetting)
    undos = {subject: each.id for subject, each in latest_reversals(operations).items() if isinstance(each.act, Undo)}
    counting = _counting(operations, undos)
    start = next((each for each in reversed(counting) if each.act.is_boundary), None)
    after = start.id if start else 0
    later = [each for each in counting if each.id > after]
    pinned = _pinned(later, thread_id)
    included = (each.members_in(thread_id) for each in later if each.members and not isinstance(each.act, Pin))
    return ThreadJournal(
        thread_id,
        operations,
        start,
        later,
        kept=pinned.union(*included),
        pinned=pinned,
        brought=frozenset(id_ for each in counting if each.id >= after for id_ in each.brought_into(thread_id)),
        replaced=frozenset(replaced(later)),
        undone_turns=frozenset(turn for (_, turn), undo in undos.items() if turn is not None and undo > after),
        moved_off=_moved_off_by(later),
        hidden=hidden_by(later),
        withdrawn=frozenset(
            each.id
            for each in operations
            if (isinstance(each.act, Import) or (isinstance(each.act, Retry) and each.id > after))
            and undos.get(Subject(each.id), 0) > after
        ),
        newest_id=max(forgetting, *(each.id for each in operations if each.act.breaks_prefix), 0),
        fold_is_undone=fold_is_undone(operations),
    )


def own(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations of this persona, without those of an earlier persona with the same folder."""
    beginnings = [each.id for each in operations if isinstance(each.act, Clear) and each.act.begins]
    return [each for each in operations if each.id > max(beginnings, default=0)]


def latest_reversals(operations: Iterable[Operation]) -> dict[Subject, Operation]:
    """Return, for each operation or turn that was ever undone, the newest undo or redo of it."""
    ordered = sorted(operations, key=lambda each: each.id)
    found = {each.act.subject: each for each in ordered if isinstance(each.act, Reversal)}
    # An undo or redo of the operation that began a conversation applies to the greeting of the conversation too.
    greeted = {each.id: Subject(operation_id=each.act.cleared) for each in ordered if isinstance(each.act, Greeting)}
    return {Subject(operation_id=id_): found[cleared] for id_, cleared in greeted.items() if cleared in found} | found


def undone(operations: Iterable[Operation]) -> set[Subject]:
    """Return the operations and turns that are undone now."""
    return {subject for subject, newest in latest_reversals(operations).items() if isinstance(newest.act, Undo)}


def effective(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations that count, oldest first: all that are not undone now, without undos and redos."""
    return _counting(operations, undone(operations))


def _counting(operations: Iterable[Operation], out: Container[Subject]) -> list[Operation]:
    """Return the operations that count while the subjects ``out`` are undone, oldest first."""
    acts = (each for each in operations if not isinstance(each.act, Reversal))
    return sorted((each for each in acts if Subject(operation_id=each.id) not in out), key=lambda each: each.id)


def _pinned(counting: Iterable[Operation], thread_id: int) -> frozenset[int]:
    pinned: set[int] = set()
    for each in counting:
        if isinstance(each.act, Pin):
            pinned.update(each.members_in(thread_id))
        elif isinstance(each.act, Unpin):
            pinned.discard(each.act.message)
        elif isinstance(each.act, Retry) and each.act.wording and pinned & each.act.replaced:
            pinned = pinned - each.act.replaced | {each.act.wording}
    return frozenset(pinned)


def replaced(operations: Iterable[Operation]) -> set[int]:
    """Return the messages that retries and greetings among ``operations`` take out of the context."""
    replacing = (each.act for each in operations if isinstance(each.act, Retry | Greeting))
    return {message_id for act in replacing for message_id in act.replaced}


def _moved_off_by(counting: Iterable[Operation]) -> dict[int, bool]:
    """Return, by message id, whether imports moved a message off the live branch (``True``) or back to it."""
    moved: dict[int, bool] = {}
    for each in counting:
        if isinstance(each.act, Import):
            moved |= dict.fromkeys(expanded(each.act.supersedes), True)
            moved |= dict.fromkeys(expanded(each.act.revives), False)
    return moved


def hidden_by(counting: Iterable[Operation]) -> frozenset[int]:
    """Return the messages that imports name as hidden by another program, unless a later import moved them."""
    hidden: set[int] = set()
    for each in counting:
        if isinstance(each.act, Import):
            hidden.difference_update(expanded(each.act.supersedes), expanded(each.act.revives))
            hidden.update(expanded(each.act.hidden))
    return frozenset(hidden)


def boundary(operations: Sequence[Operation]) -> Operation | None:
    """Return the newest effective boundary, at which the view begins; ``None`` if there is none."""
    return next((each for each in reversed(effective(operations)) if each.act.is_boundary), None)


def concerns_memory(operation: Operation, by_id: Mapping[int, Operation]) -> bool:
    """Return whether an operation changes the memory, or undoes or redoes an operation that does."""
    return isinstance(_act_concerned(operation, by_id), MemoryAct)


def _act_concerned(operation: Operation, by_id: Mapping[int, Operation]) -> Act | None:
    """Return the act of an operation, or of the operation that it undoes or redoes; ``None`` if ``by_id`` lacks it."""
    if operation.subject is None:
        return operation.act
    subject = by_id.get(operation.subject.operation_id or 0)
    return subject.act if subject else None


def fold_is_undone(operations: Sequence[Operation]) -> bool:
    """Return whether the newest fold is undone, and not only a rewording of it: the user wants the messages back."""
    folds = {each.id: each.act for each in operations if isinstance(each.act, Fold)}
    if not folds:
        return False
    newest = folds[max(folds)]
    counting = (each.act for each in effective(operations) if isinstance(each.act, Fold | Fork))
    return not any(act.folded == newest.folded for act in counting)


def undoable(operations: Sequence[Operation]) -> Operation | None:
    """Return the newest effective step, which an undo without a number undoes; ``None`` if there is none."""
    return next((each for each in reversed(effective(operations)) if each.is_step), None)


def steps(operations: Sequence[Operation], questions: Iterable[Message]) -> list[Operation | Message]:
    """Return the steps, oldest first: ``questions`` and the user's operations, except retries that brought no reply."""
    vain = _undone_automatically(operations)
    found: list[Operation | Message] = [each for each in operations if each.is_step and each.id not in vain]
    found += questions
    return sorted(found, key=lambda each: (each.made_after, each.id) if isinstance(each, Operation) else (each.id, 0))


def subject_of(done: Operation | Message) -> Subject:
    """Return an operation, or the turn of a question, as the subject of an undo."""
    return Subject(turn_id=done.id) if isinstance(done, Message) else Subject(operation_id=done.id)


def _undone_automatically(operations: Iterable[Operation]) -> set[int]:
    return {each.subject.operation_id or 0 for each in operations if each.automatic and each.subject}


def redoable(operations: Sequence[Operation], newest_turn_id: int) -> Operation | None:
    """Return the newest undo that is not redone; ``None`` if a message or another operation of the user came later."""
    open_undos: list[Operation] = []
    vain = _undone_automatically(operations)
    counting = [each for each in operations if not each.automatic and each.id not in vain]
    for operation in sorted(counting, key=lambda each: each.id):
        if isinstance(operation.act, Undo):
            open_undos.append(operation)
        elif operation.subject is not None:
            open_undos = [undo for undo in open_undos if undo.subject != operation.subject]
        else:
            open_undos.clear()
    still_open = [undo for undo in open_undos if undo.after_message_id >= newest_turn_id]
    return still_open[-1] if still_open else None


NOTHING_TO_UNDO = "There is nothing to undo here."


def to_undo(operations: Sequence[Operation], number: int | None) -> Operation:
    """Return operation ``number``, or for ``None`` the newest step; raise `JournalError` if it cannot be undone."""
    if number is None:
        if newest := undoable(operations):
            return newest
        raise JournalError(NOTHING_TO_UNDO)
    chosen = _numbered(operations, number)
    if chosen.subject is not None:
        raise JournalError(f"Operation {number} is an undo or a redo itself, so it cannot be undone.")
    if chosen.act.is_final:
        raise JournalError(f"Operation {number} cannot be undone: it {chosen.act.describe()}.")
    if chosen not in effective(operations):
        raise JournalError(f"Operation {number} is undone already. /redo {number} redoes it.")
    return chosen


def to_redo(operations: Sequence[Operation], number: int) -> Subject:
    """Return the subject of undo ``number``, or operation ``number``; raise `JournalError` if that is not undone."""
    chosen = _numbered(operations, number)
    subject = chosen.subject or Subject(operation_id=chosen.id)
    newest = latest_reversals(operations).get(subject)
    # An automatic undo, of a retry that brought no reply, cannot be redone.
    is_undone = newest is not None and isinstance(newest.act, Undo) and not newest.automatic
    if isinstance(chosen.act, Redo) or not is_undone:
        raise JournalError(f"There is nothing to redo in operation {number}. /context ops lists what is undone.")
    return subject


def _numbered(operations: Sequence[Operation], number: int) -> Operation:
    found = next((known for known in operations if known.number == number), None)
    if found is None:
        raise JournalError(f"There is no operation {number} here. /context ops lists them.")
    return found


def window_at(operations: Sequence[Operation], moment: datetime, now: JsonValue) -> JsonValue:
    """Return ``context_hours`` at a moment: the value before the first later change, else the present value ``now``."""
    by_id = {operation.id: operation for operation in operations}
    for operation in sorted(operations, key=lambda each: each.id):
        act = _act_concerned(operation, by_id)
        if operation.created_at > moment and isinstance(act, Window):
            return act.after if isinstance(operation.act, Undo) else act.before
    return now


CLEARED = "[CONTEXT_CLEARED]"
PROVIDED = "[PRIOR_CONTEXT_PROVIDED]"


@dataclass(frozen=True)
class LogMarks:
    """The messages that were undone or replaced; see ``ThreadJournal`` for the fields of the same name.

    The messages that ``undone_operations`` put in are undone too. If ``by_thread`` has marks for a thread, only those
    marks apply to the messages of the thread.
    """

    undone_turns: frozenset[int] = frozenset()
    replaced: frozenset[int] = frozenset()
    undone_operations: frozenset[int] = frozenset()
    moved_off: Mapping[int, bool] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()
    by_thread: Mapping[int, LogMarks] = field(default_factory=dict)

    def is_undone(self, message: Message) -> bool:
        """Return whether a message was undone, with its turn or with the operation that put it in."""
        marks = self.by_thread.get(message.thread_id, self)
        return message.turn_id in marks.undone_turns or message.introduced_by in marks.undone_operations

    def is_replaced(self, message: Message) -> bool:
        """Return whether a retry, a greeting or another branch of an imported conversation took the message's place."""
        marks = self.by_thread.get(message.thread_id, self)
        return message.id in marks.replaced or marks.moved_off.get(message.id, message.superseded)

    def is_out(self, message: Message) -> bool:
        """Return whether a message was undone or replaced."""
        return self.is_undone(message) or self.is_replaced(message)

    def words(self, message: Message) -> str:
        """Return the marks as text to be shown after a message, empty if it has none."""
        undone = "[undone]" if self.is_undone(message) else ""
        is_hidden = message.id in self.by_thread.get(message.thread_id, self).hidden
        replaced = "[hidden in the program it came from]" if is_hidden else "[replaced]"
        return " ".join(filter(None, (undone, replaced if self.is_replaced(message) else "")))


NO_MARKS = LogMarks()


def log_marks(operations: Sequence[Operation], thread_id: int | None = None) -> LogMarks:
    """Return the marks that ``operations`` leave in the thread that they concern, or, for ``None``, in every thread.

    An operation in a fork leaves no marks on the messages that the fork has from another thread.
    """
    if thread_id is not None:
        return _marks(operations)
    threads = {each.thread_id for each in operations if each.thread_id is not None}
    return replace(
        _marks([each for each in operations if each.thread_id is None]),
        by_thread={
            thread: _marks([each for each in operations if each.thread_id in {None, thread}]) for thread in threads
        },
    )


def _marks(operations: Sequence[Operation]) -> LogMarks:
    taken_back, counting = undone(operations), effective(operations)
    return LogMarks(
        undone_turns=frozenset(subject.turn_id for subject in taken_back if subject.turn_id is not None),
        replaced=frozenset(replaced(counting)),
        undone_operations=frozenset(subject.operation_id for subject in taken_back if subject.operation_id is not None),
        moved_off=_moved_off_by(counting),
        hidden=hidden_by(counting),
    )


def unread_notice(operations: Iterable[Operation]) -> str:
    """Say which operations cannot be read, and what the user can do about it; empty if all can be read."""
    numbers = [f"{each.number}" for each in operations if each.act == Unreadable()]
    if not numbers:
        return ""
    which, are, them = ("Operation", "is", "it") if len(numbers) == 1 else ("Operations", "are", "them")
    told = f"{which} {enumerated(numbers)} of the journal cannot be read and {are} passed over"
    return f"{told}; chorus doctor repairs {them}."


def marker(boundary: Operation) -> str:
    """Return the marker that a log shows in place of a boundary."""
    return CLEARED if isinstance(boundary.act, Clear) else PROVIDED
