"""Whole hours of a window, from a length of time or from the time since a moment."""

from __future__ import annotations

from typing import Literal

import pytest

from chorus_cli.core.time.timespan import Span, WindowChoice, parse, shifted, window_hours
from tests.core.time.reading_time import DAY, HOUR, NOW

MORE = "Warning: {} is more than 168h (7 days); using 168h"
LESS = "Warning: {} is less than 1h; using 1h"
NOTHING = "Warning: that would leave nothing; using 1h"


def span_of(time: str | float) -> Span:
    """Return a length of time as it is typed, or the time since a moment in seconds."""
    return parse(time, NOW) if isinstance(time, str) else Span(time, is_moment=True)


@pytest.mark.parametrize(
    ("time", "hours", "warning"),
    [
        *(("24h", 24, ""), ("1h", 1, ""), ("168h", 168, ""), ("1 week", 168, ""), ("90m", 2, ""), ("89m", 1, "")),
        *(("2h 30m", 3, ""), ("2h 29m 59s", 2, ""), ("30m", 1, ""), ("half an hour", 1, ""), ("168h 29m", 168, "")),
        *(("168h30", 168, MORE.format("168h 30m")), ("999999h", 168, MORE.format("999999h"))),
        *(("200h", 168, MORE.format("200h")), ("200", 168, MORE.format("200h"))),
        *(("20m", 1, LESS.format("20m")), ("29m 59s", 1, LESS.format("29m 59s"))),
        *((DAY, 24, ""), (HOUR, 1, ""), (HOUR + 0.000001, 2, ""), (15 * HOUR + 60, 16, ""), (168 * HOUR, 168, "")),
        *((167.5 * HOUR, 168, ""), (168 * HOUR + 1, 168, MORE.format("168h 1s"))),
        *((183 * HOUR + 0.25, 168, MORE.format("183h 1s")), (1200, 1, LESS.format("20m"))),
        *((45.25, 1, LESS.format("46s")), (0.000001, 1, LESS.format("1s"))),
    ],
)
def test_a_length_is_rounded_half_up_and_the_time_since_a_moment_up_within_bounds(
    time: str | float, hours: int, warning: str
) -> None:
    assert window_hours(span_of(time)) == WindowChoice(hours, warning or None)


@pytest.mark.parametrize(
    ("hours", "sign", "time", "shifted_hours", "warning"),
    [
        *((8, 1, "8h", 16, ""), (8, -1, "4h", 4, ""), (8, 1, "20m", 8, ""), (8, 1, "30m", 9, "")),
        *((8, -1, "30m", 8, ""), (8, -1, "31m", 7, ""), (160, 1, "2d", 168, MORE.format("208h"))),
        *((8, -1, "8h", 1, NOTHING), (8, -1, "1d", 1, NOTHING), (1, -1, "40m", 1, LESS.format("20m"))),
        *((8, 1, DAY, 32, ""), (8, 1, 1.25 * HOUR, 10, ""), (8, -1, 1.75 * HOUR, 7, ""), (8, -1, DAY, 1, NOTHING)),
        *((8, -1, 7.5 * HOUR, 1, LESS.format("30m")), (160, 1, 8.25 * HOUR, 168, MORE.format("168h 15m"))),
    ],
)
def test_adding_and_subtracting_are_exact_before_rounding(
    hours: int, sign: Literal[1, -1], time: str | float, shifted_hours: int, warning: str
) -> None:
    assert shifted(hours, span_of(time), sign) == WindowChoice(shifted_hours, warning or None)
