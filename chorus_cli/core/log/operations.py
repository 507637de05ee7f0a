"""The journal: what was done to a context, what was taken back, and which of it counts.

An operation is a row and so is taking it back, so nothing is ever one-way. ``undo`` and ``redo`` rows name an operation
or a turn; the newest of them decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from chorus_cli.core.log.runs import Runs
    from chorus_cli.core.settings.jsonc import JsonValue


class Kind(StrEnum):
    """What an operation does."""

    CLEAR = "clear"
    EDIT = "edit"
    RESTORE = "restore"
    RETRY = "retry"
    WINDOW = "window"
    COMPACT = "compact"
    FLASH = "flash"
    UNDO = "undo"
    REDO = "redo"


BOUNDARIES = frozenset({Kind.CLEAR, Kind.EDIT, Kind.RESTORE})
REVERSALS = frozenset({Kind.UNDO, Kind.REDO})


@dataclass(frozen=True, slots=True)
class Subject:
    """What an undo or a redo speaks of: an operation, or a turn by the id of its user message."""

    operation_id: int | None = None
    turn_id: int | None = None


@dataclass(frozen=True, slots=True)
class WindowChange:
    """What the file said of ``context_hours`` before and after; ``None`` means that the key is absent."""

    before: JsonValue
    after: JsonValue


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the journal.

    ``thread_id`` is ``None`` when it concerns every thread of the persona. ``after_message_id`` is the newest message
    when it was made. ``members`` are the messages that an edit or a restore puts into the context, in order.
    ``replaced`` are the messages that a retry takes out. ``target`` belongs to undo and redo, ``window`` to window.
    ``begins`` marks the clear that parts a persona from an earlier one of the same folder; it is nobody's to take back.
    ``automatic`` marks what nobody asked for: a fold or a flash, and the undo by which a retry that brought nothing
    takes itself back. ``folds`` are the messages that a fold's summary stands for; one that ``rewords`` brings
    only other words for those of the one before.
    """

    id: int
    kind: Kind
    thread_id: int | None
    after_message_id: int
    created_at: datetime
    members: tuple[int, ...] = ()
    replaced: frozenset[int] = frozenset()
    subject: Subject | None = None
    window: WindowChange | None = None
    begins: bool = False
    automatic: bool = False
    newest_message_id: int | None = None
    folds: Runs = ()
    rewords: bool = False

    @property
    def made_after(self) -> int:
        """The newest message of all when it was stored, which for an edit may lie behind ``after_message_id``."""
        return self.after_message_id if self.newest_message_id is None else self.newest_message_id


def own(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations of this persona, oldest first, without those of an earlier one of the same folder."""
    beginnings = [operation.id for operation in operations if operation.begins]
    return [operation for operation in operations if operation.id > max(beginnings, default=0)]


def last_words(operations: Iterable[Operation]) -> dict[Subject, Operation]:
    """Return, for each operation or turn that was ever taken back, the newest undo or redo that names it."""
    newest: dict[Subject, Operation] = {}
    for operation in operations:
        if operation.subject is None:
            continue
        known = newest.get(operation.subject)
        if known is None or operation.id > known.id:
            newest[operation.subject] = operation
    return newest


def effective(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations that count, oldest first: those never taken back, or put back since."""
    words = last_words(operations)

    def counts(operation: Operation) -> bool:
        word = words.get(Subject(operation_id=operation.id))
        return operation.kind not in REVERSALS and (word is None or word.kind is Kind.REDO)

    return sorted(filter(counts, operations), key=lambda operation: operation.id)


def base(operations: Sequence[Operation]) -> Operation | None:
    """Return the newest effective clear, edit or restore: the boundary that the view begins at."""
    boundaries = [operation for operation in effective(operations) if operation.kind in BOUNDARIES]
    return boundaries[-1] if boundaries else None


def fold_is_undone(operations: Sequence[Operation]) -> bool:
    """Return whether the newest fold was taken back: then the user wants the words, not another summary of them.

    Other words for the same messages, taken back, leave the fold as it was.
    """
    folds = [operation for operation in operations if operation.kind is Kind.COMPACT]
    if not folds:
        return False
    newest = max(folds, key=lambda fold: fold.id)
    return not any(fold.kind is Kind.COMPACT and fold.folds == newest.folds for fold in effective(operations))


def undoable(operations: Sequence[Operation]) -> Operation | None:
    """Return the newest effective operation that the user made, which is what an undo without a number takes back."""
    by_hand = [operation for operation in effective(operations) if not operation.automatic]
    return by_hand[-1] if by_hand else None


def redoable(operations: Sequence[Operation], newest_turn_id: int) -> Operation | None:
    """Return the newest undo that nothing but undos and redos has followed and no redo has answered.

    A message sent since, ``newest_turn_id``, is something that has followed: putting an older state back under it
    would change what it answered to.
    """
    open_undos: list[Operation] = []
    vain = {operation.subject.operation_id for operation in operations if operation.automatic and operation.subject}
    counting = [operation for operation in operations if not operation.automatic and operation.id not in vain]
    for operation in sorted(counting, key=lambda operation: operation.id):
        if operation.kind is Kind.UNDO:
            open_undos.append(operation)
        elif operation.kind is Kind.REDO:
            open_undos = [undo for undo in open_undos if undo.subject != operation.subject]
        else:
            open_undos.clear()
    still_open = [undo for undo in open_undos if undo.after_message_id >= newest_turn_id]
    return still_open[-1] if still_open else None
