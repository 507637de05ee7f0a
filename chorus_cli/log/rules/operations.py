"""Operations: the rows of the journal, each with its act."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from chorus_cli.log.rules.acts import Reversal, Subject
from chorus_cli.log.rules.log_acts import Act
from chorus_cli.log.rules.messages import MessageContent, Runs, expanded

_NOTHING_SAID: Mapping[int, str] = MappingProxyType({})
_NO_NUMBERS: Mapping[int, int] = MappingProxyType({})


class Numbers(NamedTuple):
    """The numbers that the user sees for a persona's threads and operations, by id."""

    threads: Mapping[int, int] = _NO_NUMBERS
    operations: Mapping[int, int] = _NO_NUMBERS

    def thread(self, thread_id: int) -> int:
        """Return the number of a thread; its id if the persona has no such thread, as after edits with plain SQL."""
        return self.threads.get(thread_id, thread_id)

    def operation(self, operation_id: int) -> int:
        """Return the number of an operation, or its id if there is no such row."""
        return self.operations.get(operation_id, operation_id)


NO_NUMBERS = Numbers()


class NewOperation(NamedTuple):
    """An operation about to be stored; ``thread_id`` is ``None`` if it concerns every thread of the persona.

    Without ``after_message_id`` it follows the newest message. ``members`` are ids of rows of the log, or new messages;
    only new messages if the act is no ``Inclusion``.
    """

    persona: str
    act: Act
    created_at: datetime
    thread_id: int | None = None
    after_message_id: int | None = None
    members: tuple[int | MessageContent, ...] = ()
    automatic: bool = False


@dataclass(frozen=True)
class Operation:
    """One row of the journal; ``number`` is its name for the user, counted per persona.

    ``thread_id`` is ``None`` for an operation on all threads of the persona. ``after_message_id`` is the newest message
    that the operation knew; ``newest_message_id`` is the newest of all if that is another. ``automatic`` marks an
    operation for which the user did not ask, such as the undo of a retry that brought no reply. Unless ``only`` is
    empty, an operation on all threads concerns only these threads, which were copied with it from another log.
    """

    id: int
    act: Act
    thread_id: int | None
    after_message_id: int
    created_at: datetime
    automatic: bool = False
    newest_message_id: int | None = None
    only: Runs = ()
    # The id suffices to tell operations apart.
    number: int = field(default=0, compare=False)

    @property
    def members(self) -> tuple[int, ...]:
        """The messages that the act puts into the context, by their ids."""
        return self.act.members

    def members_in(self, thread_id: int) -> tuple[int, ...]:
        """Return the act's members for a thread; all its members if it does not assign them to threads."""
        by_thread = self.act.members_by_thread()
        return self.members if by_thread is None else by_thread.get(thread_id, ())

    def brought_into(self, thread_id: int) -> tuple[int, ...]:
        """Return the members that the act puts into a thread's context even if they were said in another thread."""
        is_for_thread = self.thread_id is not None or self.act.members_by_thread() is not None
        return self.members_in(thread_id) if is_for_thread else ()

    def concerns(self, thread_id: int | None) -> bool:
        """Return whether an operation on all threads concerns ``thread_id``, or, for ``None``, every thread."""
        return not self.only or (thread_id is not None and thread_id in expanded(self.only))

    @property
    def subject(self) -> Subject | None:
        """The object of an undo or redo, ``None`` for any other act."""
        return self.act.subject if isinstance(self.act, Reversal) else None

    @property
    def is_step(self) -> bool:
        """Whether an undo without a number may undo this: it is the user's, not final, and no undo or redo itself."""
        return not (self.automatic or self.act.is_final or isinstance(self.act, Reversal))

    @property
    def made_after(self) -> int:
        """The newest message of all when the operation was stored; an edit's ``after_message_id`` may be older."""
        return self.after_message_id if self.newest_message_id is None else self.newest_message_id

    def describe(self, said: Mapping[int, str] = _NOTHING_SAID, numbers: Mapping[int, int] = _NO_NUMBERS) -> str:
        """Describe the operation; ``said`` has questions, and ``numbers`` has operation numbers, by id."""
        if isinstance(self.act, Reversal):
            subject = self.act.subject
            return self.act.describe(said.get(subject.turn_id or 0, ""), numbers.get(subject.operation_id or 0))
        return self.act.describe()
