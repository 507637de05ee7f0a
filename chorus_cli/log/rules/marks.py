"""Marks of a log: boundaries, and messages taken back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Clear

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chorus_cli.log.rules.messages import Message
    from chorus_cli.log.rules.operations import Operation

CLEARED = "[CONTEXT_CLEARED]"
PROVIDED = "[PRIOR_CONTEXT_PROVIDED]"


@dataclass(frozen=True, slots=True)
class LogMarks:
    """The messages that operations took back or replaced.

    ``undone_turns`` and ``undone_operations`` were taken back, and what such an operation put in with it;
    ``replaced`` are the messages that a retry which counts took out. ``moved_off`` says of messages whether newer
    imports moved them off the live branch or back to it; the ``hidden`` ones off it were hidden in the program they
    came from. With ``by_thread`` those of a thread hold for its messages.
    """

    undone_turns: frozenset[int] = frozenset()
    replaced: frozenset[int] = frozenset()
    undone_operations: frozenset[int] = frozenset()
    moved_off: Mapping[int, bool] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()
    by_thread: Mapping[int, LogMarks] = field(default_factory=dict)

    def is_undone(self, message: Message) -> bool:
        """Return whether a message was taken back: its turn, or the operation that put it in."""
        if message.thread_id in self.by_thread:
            return self.by_thread[message.thread_id].is_undone(message)
        return message.turn_id in self.undone_turns or message.introduced_by in self.undone_operations

    def is_replaced(self, message: Message) -> bool:
        """Return whether another reply, or another branch of an imported conversation, took its place."""
        if message.thread_id in self.by_thread:
            return self.by_thread[message.thread_id].is_replaced(message)
        return message.id in self.replaced or self.moved_off.get(message.id, message.superseded)

    def words(self, message: Message) -> str:
        """Return the marks as they stand behind a message, empty if it has none."""
        undone = "[undone]" if self.is_undone(message) else ""
        replaced = "[hidden in the program it came from]" if self._is_hidden(message) else "[replaced by another reply]"
        return " ".join(filter(None, (undone, replaced if self.is_replaced(message) else "")))

    def _is_hidden(self, message: Message) -> bool:
        return message.id in self.by_thread.get(message.thread_id, self).hidden


NO_MARKS = LogMarks()


def log_marks(operations: Sequence[Operation], thread_id: int | None = None) -> LogMarks:
    """Read the marks off the operations of a persona that concern a thread, with ``None`` those of every thread.

    A fork has messages of another thread, and what is done to them there leaves no mark on them in their own.
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
    taken_back = journal.undone(operations)
    return LogMarks(
        undone_turns=frozenset(subject.turn_id for subject in taken_back if subject.turn_id is not None),
        replaced=frozenset(journal.replaced(journal.effective(operations))),
        undone_operations=frozenset(subject.operation_id for subject in taken_back if subject.operation_id is not None),
        moved_off=journal.moved_off(operations),
        hidden=journal.hidden_by(journal.effective(operations)),
    )


def marker(boundary: Operation) -> str:
    """Return the words that stand in a log where a boundary was set."""
    return CLEARED if isinstance(boundary.act, Clear) else PROVIDED
