"""When a summary stands for the beginning of a view."""

from __future__ import annotations

import pytest

from chorus_cli.context.rules.view import Summary, standing
from chorus_cli.log.rules.messages import runs
from tests.fakes import START


def summary(operation_id: int, *ids: int, base: int | None = None) -> Summary:
    return Summary(operation_id, base, runs(ids), f"summary {operation_id}", 9, "model", START)


FIRST, SECOND = summary(10, 1, 2, 3, 4), summary(11, 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("summaries", "base", "view", "found", "number"),
    [
        pytest.param([], None, [1, 2, 3], None, 0, id="none"),
        pytest.param([FIRST], None, [1, 2, 3, 4, 5, 6], 10, 4, id="all it stands for is there"),
        pytest.param([FIRST, SECOND], None, [1, 2, 3, 4, 5, 6, 7], 11, 6, id="the newest"),
        pytest.param([SECOND, FIRST], None, [1, 2, 3, 4, 5, 6, 7], 11, 6, id="the newest in any order"),
        pytest.param([FIRST], None, [3, 4, 5, 6], 10, 2, id="some have left by age"),
        pytest.param([FIRST], None, [5, 6], None, 0, id="all have left by age"),
        pytest.param([FIRST], None, [], None, 0, id="nothing is in context"),
        pytest.param([FIRST], None, [20, 1, 2, 3, 4, 5], None, 0, id="an older one came in, whatever its id"),
        pytest.param([FIRST], None, [1, 3, 4, 5], None, 0, id="one was taken back"),
        pytest.param([FIRST], None, [1, 2, 9, 3, 4, 5], None, 0, id="one was put in between"),
        pytest.param([FIRST], None, [1, 2, 3], None, 0, id="the last was taken back"),
        pytest.param([FIRST, SECOND], None, [1, 2, 3, 4, 6, 7], 10, 4, id="only the newer is spoilt"),
        pytest.param([FIRST], 5, [1, 2, 3, 4, 5], None, 0, id="another boundary"),
        pytest.param([summary(12, 4, 2, 9, base=5)], 5, [4, 2, 9, 10], 12, 3, id="in the order of an edit"),
        pytest.param([summary(12, 4, 2, 9, base=5)], 5, [2, 4, 9, 10], None, 0, id="in another order"),
    ],
)
def test_it_stands_while_the_view_begins_with_the_end_of_what_it_stands_for(
    summaries: list[Summary], base: int | None, view: list[int], found: int | None, number: int
) -> None:
    stands, count = standing(summaries, base, view)
    assert (stands.operation_id if stands else None, count) == (found, number)
