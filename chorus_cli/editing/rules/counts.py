"""How many messages an edit of a context changed, by the kind of change."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.editing.rules.matching import Added, Reworded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chorus_cli.editing.rules.matching import ContextEdit


@dataclass(frozen=True, slots=True)
class EditCounts:
    """Numbers of messages; a reworded one may be moved as well.

    ``moved`` is the smallest number of moves that give the new order. Older messages that enter are not counted.
    """

    reworded: int = 0
    left_out: int = 0
    added: int = 0
    moved: int = 0


def edit_counts(edit: ContextEdit, context: Sequence[int]) -> EditCounts:
    """Count the changes of ``edit``; ``context`` has the ids of the rows in context before, in order."""
    positions = {row_id: position for position, row_id in enumerate(context)}
    staying = [member.message_id for member in edit.members if not isinstance(member, Added)]
    order = [positions[row_id] for row_id in staying if row_id in positions]
    return EditCounts(
        reworded=sum(isinstance(member, Reworded) for member in edit.members),
        left_out=len(edit.dropped),
        added=sum(isinstance(member, Added) for member in edit.members),
        moved=len(order) - _longest_rise(order),
    )


def _longest_rise(numbers: Iterable[int]) -> int:
    """Return the length of the longest increasing subsequence, by the smallest last number of each length."""
    ends: list[int] = []
    for number in numbers:
        position = bisect_left(ends, number)
        ends[position : position + 1] = [number]
    return len(ends)
