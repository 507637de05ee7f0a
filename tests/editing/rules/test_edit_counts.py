"""What an edit changed, counted by kinds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chorus_cli.editing.rules.matching import EditCounts, Member, edit_counts
from chorus_cli.log.rules.messages import MessageContent, Role

ADDED = MessageContent(1, Role.USER, "new", datetime(2026, 2, 12, tzinfo=UTC))


def reworded(row_id: int) -> MessageContent:
    return ADDED._replace(revises=row_id)


@pytest.mark.parametrize(
    ("members", "counts"),
    [
        ([3, 4, 5, 6, 7], EditCounts()),
        ([1, 2, 3, 4, 5, 6, 7], EditCounts()),
        ([3, 5, 7], EditCounts(left_out=2)),
        ([3, 4, reworded(5), 6, 7], EditCounts(reworded=1)),
        ([reworded(1), 3, 4, 5, 6, 7], EditCounts(reworded=1)),
        ([ADDED, 3, 4, 5, 6, 7, ADDED], EditCounts(added=2)),
        ([7, 3, 4, 5, 6], EditCounts(moved=1)),
        ([4, 5, 6, 7, 3], EditCounts(moved=1)),
        ([7, 6, 5, 4, 3], EditCounts(moved=4)),
        ([6, 7, 1, 3, 4, 5], EditCounts(moved=2)),
        ([7, ADDED, reworded(3), 5, 6], EditCounts(reworded=1, left_out=1, added=1, moved=1)),
    ],
)
def test_each_change_is_counted_by_its_kind(members: list[Member], counts: EditCounts) -> None:
    assert edit_counts(members, [3, 4, 5, 6, 7]) == counts
