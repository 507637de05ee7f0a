"""Summaries of the oldest part of a view, and the rule that says which one stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chorus_cli.log.rules.id_ranges import Runs, expanded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Summary:
    """The text that a fold has written, and the messages that it stands for.

    ``operation_id`` is the fold's and ``number`` its name for the user, ``boundary_id`` that of the boundary that the
    view began at, if there was one. ``model`` wrote it, ``None`` where the user did. ``token_count`` is ``None`` until
    it is counted.
    """

    operation_id: int
    boundary_id: int | None
    stands_for: Runs
    content: str
    token_count: int | None
    model: str | None
    created_at: datetime
    # The id tells folds apart.
    number: int = field(default=0, compare=False)


def standing(
    summaries: Iterable[Summary], boundary_id: int | None, view_ids: Sequence[int], pinned: Collection[int] = ()
) -> tuple[Summary | None, int]:
    """Return the newest summary that stands for the beginning of a view, and the number of messages it stands for.

    ``summaries`` are those of effective folds. One is valid while the view, up to the last message that it stands for,
    is the end of the messages that it stands for: some may have left by age, but none may have come in or been taken
    back. Pinned messages may be anywhere, because they are sent besides.
    """
    unpinned = [id_ for id_ in view_ids if id_ not in pinned] if pinned else view_ids
    positions = {id_: position for position, id_ in enumerate(unpinned)}
    for summary in sorted(summaries, key=lambda each: each.operation_id, reverse=True):
        ids = tuple(id_ for id_ in expanded(summary.stands_for) if id_ not in pinned)
        if summary.boundary_id != boundary_id or not ids or ids[-1] not in positions:
            continue
        number = positions[ids[-1]] + 1
        if tuple(unpinned[:number]) == ids[-number:]:
            return summary, number if unpinned is view_ids else view_ids.index(ids[-1]) + 1
    return None, 0
