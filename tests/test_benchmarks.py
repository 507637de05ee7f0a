"""The benchmarks run and print; how fast anything is, no test says."""

from __future__ import annotations

import pytest

from benchmarks import context_edit, long_log, streaming
from benchmarks.figures import Figure, figure, table


def test_a_figure_is_the_medians_of_its_pairs_in_milliseconds() -> None:
    shown = figure("start", "tiny", [(0.3, 0.1), (0.2, 0.2), (0.9, 0.1)], goal=1.5)
    assert (shown.value, shown.reference_value) == pytest.approx((300, 100))
    assert (shown.ratio, shown.pair_ratio) == pytest.approx((3, 3))


@pytest.mark.parametrize(("value", "word"), [(150.0, "met"), (150.1, "MISSED")])
def test_the_table_says_whether_the_goal_is_met(value: float, word: str) -> None:
    headings, row = table([Figure("start", value, "tiny", 100.0, "ms", 1.6, goal=1.5)]).splitlines()
    assert headings.split() == ["what", "measured", "reference", "measured", "ratio", "by", "pairs", "goal"]
    assert row.split() == ["start", f"{value:.2f}", "ms", "tiny", "100.00", "ms", "1.50", "1.60", "≤", "1.5", word]


def test_columns_stand_below_their_headings() -> None:
    short = Figure("a", 1.0, "b", 1.0, "ms", 1.0, goal=2)
    long = Figure("a longer name", 1000.0, "b", 1.0, "ms", 1000.0, goal=2)
    headings, *rows = table([short, long]).splitlines()
    assert [row.index("≤") for row in rows] == [headings.index("goal")] * 2


def test_a_figure_as_json_has_what_follows_from_it_too() -> None:
    value = Figure("start", 300.0, "tiny", 100.0, "ms", 3.1, goal=1.5).as_json()
    assert value["ratio"] == 3
    assert value["is_met"] is False


def test_the_view_above_a_longer_log_is_measured_against_the_shortest() -> None:
    found = list(long_log.compare(long_log.Sizes(old=(3, 10, 20), in_window=6, rounds=1)))
    assert [shown.name for shown in found] == ["8 h view above 10 messages", "8 h view above 20 messages"]
    assert {shown.reference for shown in found} == {"above 3"}
    assert all(shown.value > 0 for shown in found)


def test_an_edit_of_a_longer_log_is_measured_against_a_short_one() -> None:
    (found,) = context_edit.compare(context_edit.Sizes(small=5, large=20, rounds=1))
    assert found.ratio > 0


def test_painting_a_reply_is_measured_against_rich_live() -> None:
    (found,) = streaming.compare(400, 1, 4)
    assert found.value > 0
