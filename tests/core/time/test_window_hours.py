"""Whole hours of a window, from a length of time or from the time since a moment."""

from __future__ import annotations

from typing import Literal

import pytest

from chorus_cli.core.time.timespan import Span, WindowChoice, parse, shifted, window_hours
from tests.core.time.reading_time import DAY, HOUR, NOW


@pytest.mark.parametrize(
    ("text", "hours", "warning"),
    [
        ("24h", 24, None),
        ("1h", 1, None),
        ("168h", 168, None),
        ("1 week", 168, None),
        ("90m", 2, None),
        ("89m", 1, None),
        ("2h 30m", 3, None),
        ("2h 29m 59s", 2, None),
        ("30m", 1, None),
        ("half an hour", 1, None),
        ("168h 29m", 168, None),
        ("168h30", 168, "Warning: 168h 30m is more than 168h (7 days); using 168h"),
        ("200h", 168, "Warning: 200h is more than 168h (7 days); using 168h"),
        ("200", 168, "Warning: 200h is more than 168h (7 days); using 168h"),
        ("999999h", 168, "Warning: 999999h is more than 168h (7 days); using 168h"),
        ("20m", 1, "Warning: 20m is less than 1h; using 1h"),
        ("29m 59s", 1, "Warning: 29m 59s is less than 1h; using 1h"),
    ],
)
def test_a_window_is_whole_hours_rounded_half_up_within_bounds(text: str, hours: int, warning: str | None) -> None:
    assert window_hours(parse(text, NOW)) == WindowChoice(hours, warning)


@pytest.mark.parametrize(
    ("hours", "sign", "text", "expected"),
    [
        (8, 1, "8h", WindowChoice(16)),
        (8, -1, "4h", WindowChoice(4)),
        (8, 1, "20m", WindowChoice(8)),
        (8, 1, "30m", WindowChoice(9)),
        (8, -1, "30m", WindowChoice(8)),
        (8, -1, "31m", WindowChoice(7)),
        (160, 1, "2d", WindowChoice(168, "Warning: 208h is more than 168h (7 days); using 168h")),
        (8, -1, "8h", WindowChoice(1, "Warning: that would leave nothing; using 1h")),
        (8, -1, "1d", WindowChoice(1, "Warning: that would leave nothing; using 1h")),
        (1, -1, "40m", WindowChoice(1, "Warning: 20m is less than 1h; using 1h")),
    ],
)
def test_adding_and_subtracting_are_exact_before_rounding(
    hours: int, sign: Literal[1, -1], text: str, expected: WindowChoice
) -> None:
    assert shifted(hours, parse(text, NOW), sign) == expected


@pytest.mark.parametrize(
    ("seconds", "hours", "warning"),
    [
        (DAY, 24, None),
        (HOUR, 1, None),
        (HOUR + 0.000001, 2, None),
        (15 * HOUR + 60, 16, None),
        (167.5 * HOUR, 168, None),
        (168 * HOUR, 168, None),
        (168 * HOUR + 1, 168, "Warning: 168h 1s is more than 168h (7 days); using 168h"),
        (183 * HOUR + 0.25, 168, "Warning: 183h 1s is more than 168h (7 days); using 168h"),
        (1200, 1, "Warning: 20m is less than 1h; using 1h"),
        (45.25, 1, "Warning: 46s is less than 1h; using 1h"),
        (0.000001, 1, "Warning: 1s is less than 1h; using 1h"),
    ],
)
def test_a_window_reaches_back_to_a_moment_by_rounding_up(seconds: float, hours: int, warning: str | None) -> None:
    assert window_hours(Span(seconds, is_moment=True)) == WindowChoice(hours, warning)


@pytest.mark.parametrize(
    ("hours", "sign", "seconds", "expected"),
    [
        (8, 1, DAY, WindowChoice(32)),
        (8, 1, 1.25 * HOUR, WindowChoice(10)),
        (8, -1, 1.75 * HOUR, WindowChoice(7)),
        (8, -1, 7.5 * HOUR, WindowChoice(1, "Warning: 30m is less than 1h; using 1h")),
        (8, -1, DAY, WindowChoice(1, "Warning: that would leave nothing; using 1h")),
        (160, 1, 8.25 * HOUR, WindowChoice(168, "Warning: 168h 15m is more than 168h (7 days); using 168h")),
    ],
)
def test_adding_and_subtracting_the_time_since_a_moment_rounds_up(
    hours: int, sign: Literal[1, -1], seconds: float, expected: WindowChoice
) -> None:
    assert shifted(hours, Span(seconds, is_moment=True), sign) == expected
