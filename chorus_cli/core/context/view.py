"""The view: the messages of one thread that are in context now.

The log is for ever; the context is computed from it and the journal. Four sets make it up:

    base      the newest effective clear, edit or restore
    members   what the base put into the context, in its order, while the base is younger than the window
    spoken    what was said since, younger than the window
    out       what a retry replaced or an undo took back since the base

Order is the order of turns, never of clocks: a timestamp only decides age, and one in the future counts as now.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from chorus_cli.core.context.summary import standing
from chorus_cli.core.log import operations as journal
from chorus_cli.core.log.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from chorus_cli.core.context.summary import Summary
    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.log.operations import Operation


@dataclass(frozen=True, slots=True)
class View:
    """What is in context: the messages in order, the boundary, the cutoff, and what was taken back within reach.

    ``summary`` stands for the first ``folded_number`` messages in a request.
    """

    messages: tuple[Message, ...]
    base: Operation | None
    cutoff: datetime
    taken_back: tuple[Message, ...] = ()
    summary: Summary | None = None
    folded_number: int = 0

    @property
    def folded(self) -> tuple[Message, ...]:
        """The messages that the summary stands for."""
        return self.messages[: self.folded_number]

    @property
    def verbatim(self) -> tuple[Message, ...]:
        """The messages that are sent word for word."""
        return self.messages[self.folded_number :]


def cutoff(now: datetime, context_hours: float) -> datetime:
    """Return the moment that the window reaches back to, in elapsed hours, so that clock changes do not bend it."""
    return now.astimezone(UTC) - timedelta(hours=context_hours)


def view(
    thread_id: int,
    messages: Iterable[Message],
    operations: Sequence[Operation],
    since: datetime,
    summaries: Iterable[Summary] = (),
) -> View:
    """Compute the view of a thread from rows of the log and the operations that concern the thread.

    ``messages`` may hold more than is in view, in any order; it must hold the base's members and every row of the
    thread after the base and after ``since``. ``operations`` must reach back to the base. ``summaries`` are those of
    effective folds of the thread.
    """
    rows = {row.id: row for row in messages if row.thread_id == thread_id}
    base = journal.base(operations)
    later = [operation for operation in journal.effective(operations) if base is None or operation.id > base.id]
    members = _members(rows, base, since)
    chosen = [*members, *_spoken(rows, base, later, members, since)]
    out = _out(operations, later, base)
    seen = tuple(row for row in chosen if not out(row))
    summary, folded_number = standing(summaries, base.id if base else None, [row.id for row in seen])
    return View(
        messages=seen,
        base=base,
        cutoff=since,
        taken_back=tuple(row for row in chosen if out(row)),
        summary=summary,
        folded_number=folded_number,
    )


def _members(rows: dict[int, Message], base: Operation | None, since: datetime) -> list[Message]:
    if base is None or base.created_at <= since:
        return []
    return [rows[member] for member in base.members if member in rows]


def _spoken(
    rows: dict[int, Message],
    base: Operation | None,
    later: Sequence[Operation],
    members: Sequence[Message],
    since: datetime,
) -> list[Message]:
    after = base.after_message_id if base else 0
    retries = {operation.id for operation in later if operation.kind is Kind.RETRY}
    member_ids = {row.id for row in members}
    member_turns = {row.turn_id for row in members}

    def belongs(row: Message) -> bool:
        return (
            row.id not in member_ids
            and row.id > after
            and row.timestamp > since
            and (row.introduced_by is None or row.introduced_by in retries)
            and (row.turn_id > after or row.turn_id in member_turns)
        )

    return sorted(filter(belongs, rows.values()), key=lambda row: (row.turn_id, row.id))


def _out(
    operations: Sequence[Operation], later: Sequence[Operation], base: Operation | None
) -> Callable[[Message], bool]:
    after = base.id if base else 0
    replaced = {row for operation in later if operation.kind is Kind.RETRY for row in operation.replaced}
    undone_turns = {
        subject.turn_id
        for subject, word in journal.last_words(operations).items()
        if word.kind is Kind.UNDO and word.id > after and subject.turn_id is not None
    }
    return lambda row: row.id in replaced or row.turn_id in undone_turns
