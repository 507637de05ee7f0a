"""What an edit changed, counted by kinds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chorus_cli.editing.rules.counts import EditCounts, edit_counts
from chorus_cli.editing.rules.matching import Added, ContextEdit, Kept, Member, Reworded
from chorus_cli.log.rules.messages import Role

ADDED = Added(Role.USER, datetime(2026, 2, 12, tzinfo=UTC), "new")


def kept(*ids: int) -> list[Member]:
    return [Kept(row_id) for row_id in ids]


@pytest.mark.parametrize(
    ("members", "dropped", "counts"),
    [
        (kept(3, 4, 5, 6, 7), (), EditCounts()),
        (kept(1, 2, 3, 4, 5, 6, 7), (), EditCounts()),
        (kept(3, 5, 7), (4, 6), EditCounts(left_out=2)),
        ([*kept(3, 4), Reworded(5, "x"), *kept(6, 7)], (), EditCounts(reworded=1)),
        ([Reworded(1, "x"), *kept(3, 4, 5, 6, 7)], (), EditCounts(reworded=1)),
        ([ADDED, *kept(3, 4, 5, 6, 7), ADDED], (), EditCounts(added=2)),
        (kept(7, 3, 4, 5, 6), (), EditCounts(moved=1)),
        (kept(4, 5, 6, 7, 3), (), EditCounts(moved=1)),
        (kept(7, 6, 5, 4, 3), (), EditCounts(moved=4)),
        (kept(6, 7, 1, 3, 4, 5), (), EditCounts(moved=2)),
        (
            [Kept(7), ADDED, Reworded(3, "x"), *kept(5, 6)],
            (4,),
            EditCounts(reworded=1, left_out=1, added=1, moved=1),
        ),
    ],
)
def test_each_change_is_counted_by_its_kind(
    members: list[Member], dropped: tuple[int, ...], counts: EditCounts
) -> None:
    assert edit_counts(ContextEdit(tuple(members), dropped, changed=True), [3, 4, 5, 6, 7]) == counts
