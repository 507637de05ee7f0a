"""A stretch of time in one line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.time.timeline import age, bar, counts_by_slot, duration, slot_of, timeline, window_reaching

SINCE = datetime(2026, 2, 12, 6, tzinfo=UTC)
UNTIL = SINCE + timedelta(hours=8)


def at(*hours: float) -> list[datetime]:
    return [SINCE + timedelta(hours=hour) for hour in hours]


@pytest.mark.parametrize(
    ("hours", "line"),
    [
        ((), "········"),
        ((0.5,), "█·······"),
        ((0.5, 7.9, 7.95), "▄······█"),
        ((-1, 0, 8), "·······█"),
        ((1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 3.5), "·█·▁····"),
    ],
)
def test_a_slot_is_as_high_as_much_was_said_in_it(hours: tuple[float, ...], line: str) -> None:
    assert timeline(counts_by_slot(at(*hours), SINCE, UNTIL, 8)) == line


def test_the_boundary_is_a_line_where_it_lies() -> None:
    (boundary,) = at(2.5)
    assert timeline([1, 0, 0, 0, 1, 0, 0, 0], slot_of(boundary, SINCE, UNTIL, 8)) == "█·│·█···"
    assert slot_of(SINCE, SINCE, UNTIL, 8) is None


@pytest.mark.parametrize(
    ("share", "drawn"), [(0, ""), (0.0001, "▏"), (0.5, "█████"), (0.55, "█████▌"), (1, "██████████"), (7, "██████████")]
)
def test_a_bar_is_as_long_as_its_share(share: float, drawn: str) -> None:
    assert bar(share, 10) == drawn


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(-3, "0 s"), (0.9, "0 s"), (14, "14 s"), (60, "1 m 0 s"), (194.7, "3 m 14 s"), (3599, "59 m 59 s"), (3600, "1 h")],
)
def test_a_time_in_progress_is_written_to_the_second_below_an_hour(seconds: float, written: str) -> None:
    assert duration(timedelta(seconds=seconds)) == written


@pytest.mark.parametrize(
    ("seconds", "written"), [(0.04, "0.0 s"), (9.96, "10.0 s"), (10, "10 s"), (12_005, "3 h 20 m"), (-3, "0 s")]
)
def test_a_short_time_may_be_written_with_tenths(seconds: float, written: str) -> None:
    assert duration(timedelta(seconds=seconds), tenths_below=10) == written


@pytest.mark.parametrize(("seconds", "written"), [(-3, "0 m"), (59, "0 m"), (26_000, "7 h"), (300_000, "3 d")])
def test_an_age_is_written_in_its_largest_unit(seconds: float, written: str) -> None:
    assert age(timedelta(seconds=seconds)) == written


@pytest.mark.parametrize(
    ("age", "window"), [(0.5, 1), (1, 2), (11.5, 12), (12, 24), (24, 48), (167, 168), (168, 168), (1000, 168)]
)
def test_a_window_that_reaches_back_is_whole_days_beyond_half_a_day(age: float, window: int) -> None:
    assert window_reaching(timedelta(hours=age)) == window


@given(st.lists(st.floats(-20, 20)), st.integers(1, 200))
def test_every_moment_of_the_time_is_counted_once(hours: list[float], slots: int) -> None:
    counts = counts_by_slot(at(*hours), SINCE, UNTIL, slots)
    assert len(timeline(counts)) == slots
    assert sum(counts) == sum(SINCE < moment <= UNTIL for moment in at(*hours))
