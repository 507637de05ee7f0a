"""A text that stands for the older part of a view, and when it may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.log.runs import Runs, expanded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

HEADING = "Summary of the earlier conversation:"


@dataclass(frozen=True, slots=True)
class Summary:
    """What a fold has written: the text, and the messages that it stands for.

    ``operation_id`` is the fold's, ``base_operation_id`` that of the boundary that the view began at, if there was one.
    ``model`` wrote it, ``None`` where the user did. ``token_count`` is ``None`` while nobody has counted it.
    """

    operation_id: int
    base_operation_id: int | None
    stands_for: Runs
    content: str
    token_count: int | None
    model: str | None
    created_at: datetime


def standing(
    summaries: Iterable[Summary], base_operation_id: int | None, view_ids: Sequence[int]
) -> tuple[Summary | None, int]:
    """Return the newest summary that stands for the beginning of a view, and how many of its messages that are.

    ``summaries`` are those of effective folds. One is valid while what the view holds, up to the last message that it
    stands for, is the end of what it stands for: messages may have left by age, but none may have come in or been
    taken back.
    """
    places = {id_: place for place, id_ in enumerate(view_ids)}
    for summary in sorted(summaries, key=lambda each: each.operation_id, reverse=True):
        ids = expanded(summary.stands_for)
        if summary.base_operation_id != base_operation_id or not ids or ids[-1] not in places:
            continue
        number = places[ids[-1]] + 1
        if tuple(view_ids[:number]) == ids[-number:]:
            return summary, number
    return None, 0
