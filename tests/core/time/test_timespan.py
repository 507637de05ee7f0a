"""Lengths of time and moments as they are typed: read, refused, or answered with what was meant."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.text.phrases import quoted
from chorus_cli.core.time.timespan import Span, WindowChoice, format_span, parse, shifted, until, window_hours
from tests.amount import examples

T = TypeVar("T")
HOUR = 3600
DAY = 24 * HOUR
BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 20, 15, 30, tzinfo=BERLIN)  # a Friday

LENGTHS = [
    (0.5, "0.5s"),
    (45, "45s"),
    (HOUR / 4, "a quarter hour|a quarter of an hour"),
    (HOUR / 2, "half an hour|a half hour|half hour|half an hour ago|for the last half hour|0,5 h|½ an hour"),
    (HOUR / 2, "half-hour|1/2 hour|1/2 an hour"),
    (HOUR, "an hour|an hour ago|the last hour"),
    (3600.1, "1h 0.1s"),
    (HOUR + 300, "1h05"),
    (1.5 * HOUR, "1.5h|90m|90 minutes|1h30|1,5h|1 hour and 30 minutes|1h30 ago|an hour and a half|1 1/2 hours"),
    (1.5 * HOUR, "an hour and a half ago|the last hour and a half|one and a half hours|ninety minutes"),
    (1.5 * HOUR, "1 hour 30|1 hour and 30"),
    (1.75 * HOUR, "1¾h"),
    (2 * HOUR, "for 2 hours|within 2 hours|in the last 2 hours|2 hrs.|2 hrs. ago"),
    (2.25 * HOUR, "2 hrs 15"),
    (2.5 * HOUR, "2h 30m|2 h 30|2 hours, 30 minutes|2 hours and a half|2½ hours|2 ½ h"),
    (3 * HOUR, "the past 3 hours|three hours|٣h|~3h|a few hours ago"),
    (6 * HOUR, "around 6 hours|at least 6h"),
    (DAY / 2, "half a day|1/2 day|the last twelve hours|PT12H"),
    (17 * HOUR, "seventeen hours"),
    (DAY, "24h|24H|a day|last 24h|  24h \t|max 24h|back 24h|24 hours of history|P1D|24-hours|24-hour"),
    (DAY, "twenty-four hours|twenty four hours|the previous day"),
    (25.5 * HOUR, "P1DT1H30M"),
    (26 * HOUR, f"1d{' ' * 90}2h"),
    (30 * HOUR, "one day and six hours"),
    (36 * HOUR, "1d12h"),
    (2 * DAY, "2d|48 hours|the last 2 days|2   days|two days ago|from 2d|about 2 days|up to 2 days|go back 2 days"),
    (2 * DAY, "in the previous 2 days|within the last 2 days|a couple of days|a couple days|a couple of days ago"),
    (2 * DAY + 1.5 * HOUR, "2d 1h30"),
    (2.5 * DAY, "two and a half days"),
    (3 * DAY, '3 days ago|since 3 days ago|"3 days ago"|the last few days|3 days.|previous 3 days|3 days back'),
    (3 * DAY, "during the past few days|just 3 days|only 3 days|3 days please|3 days of context"),
    (3 * DAY, "about the last 3 days, please"),
    (7 * DAY, "1 week|1w|a week|since last week|half a fortnight"),
    (14 * DAY, "a fortnight|a fortnight ago|the last fortnight|P2W"),
    (42 * DAY, "3 fortnights"),
    (999999 * HOUR, "999999h"),
]

BARE_NUMBERS = [(24, "24"), (8, "8|the last 8|8 ago"), (12, " 12 "), (8.5, "8.5|8,5"), (0.5, ".5")]

MOMENTS = [
    ("2024-02-29 00:00", "feb 29"),
    ("2025-03-17 00:00", "March 17, 2025"),
    ("2025-12-25 00:00", "25.12.2025|december 25"),
    ("1969-12-31 00:00", "1969-12-31"),
    ("2026-01-03 00:00", "since 3 January"),
    ("2026-03-16 00:00", "March 16"),
    ("2026-03-17 00:00", "2026/03/17|2026-3-17|17.3.2026|march 17|the 17th of March|tue 17 mar|20260317"),
    ("2026-03-17 09:00", "2026.3.17 9am|Tuesday, March 17 at 9am|2026-03-17T08:00Z"),
    ("2026-03-17 09:00:30.5", "2026-03-17T08:00:30.5Z"),
    ("2026-07-01 14:00", "since 2026-07-01 2pm"),
    ("2026-09-05 00:00", "5 sept"),
    ("2026-11-11 00:00", "11/11/2026"),
    ("2026-11-12 12:00", "2026-11-12 noon"),
    ("2026-11-13 00:00", "last friday"),
    ("2026-11-13 09:00", "last friday 9am"),
    ("2026-11-13 14:30", "a week ago, 14:30"),
    ("2026-11-13 16:00", "friday 4pm"),
    ("2026-11-14 00:00", "sat"),
    ("2026-11-15 12:00", "sunday noon"),
    ("2026-11-16 00:00", "monday|Monday|mon|last monday|the last monday|this monday|on monday|from monday"),
    ("2026-11-16 00:00", "this week|start of the week|the beginning of this week|back to monday|monday to now"),
    ("2026-11-16 09:00", "monday 9am|monday, 9 am|monday nine am|9am on monday"),
    ("2026-11-16 09:30", "monday at 9:30am"),
    ("2026-11-16 21:00", "monday @ 9pm"),
    ("2026-11-17 00:00", "tues"),
    ("2026-11-17 09:00", "3 days back at 9am"),
    ("2026-11-18 00:00", "weds|2026-11-18|18/11/2026|11/18/2026|2026/11/18|18 nov"),
    ("2026-11-18 09:00", "2 days ago at 9am|2 days ago 9am|9am two days ago|18-11-2026, 9am|Nov. 18th at 9am"),
    ("2026-11-18 12:00", "a couple of days ago at noon"),
    ("2026-11-18 14:30", "2026-11-18 14:30"),
    ("2026-11-18 14:30:05", "2026-11-18T14:30:05"),
    ("2026-11-18 15:30", "day before yesterday|the day before yesterday"),
    ("2026-11-19 00:00", "thurs|midnight yesterday"),
    ("2026-11-19 09:00", "yesterday 9am|9am yesterday|9 a.m. yesterday"),
    ("2026-11-19 15:30", 'yesterday|since yesterday|"yesterday"'),
    ("2026-11-19 16:00", "since 16:00"),
    ("2026-11-19 17:00", "at 5pm"),
    ("2026-11-19 18:00", "last night|since last night"),
    ("2026-11-19 21:00", "yesterday 9 p.m.|yesterday at 9 P.M.|yesterday @ 9pm|9pm last night"),
    ("2026-11-19 21:15", "yesterday at 21:15"),
    ("2026-11-19 21:30", "yesterday 9.30pm"),
    ("2026-11-20 00:00", "today|since today|friday|since friday|this friday|midnight|12am|earlier today"),
    ("2026-11-20 04:30", "half past 4"),
    ("2026-11-20 06:00", "this morning|since this morning"),
    ("2026-11-20 09:00", "today 9am|friday 9am|9am|since 9:00|from 9am to now"),
    ("2026-11-20 09:30", "since 9:30am|9.30am|half past nine"),
    ("2026-11-20 10:30", "from 10:30"),
    ("2026-11-20 12:00", "noon"),
    ("2026-11-20 14:30", "since 14:30|at 14:30"),
    ("2026-11-20 15:29", "today at 15:29"),
]

REFUSALS = [
    ("No time given", '| \n |""'),
    ("may be a time of day or a length of time", "1:30|24:00|1:30:00|:30"),
    ("may be a time of day or hours; write since 9:00 or 9h.", "since 9|from 8|since 8.5|since at 9"),
    ("has four digits, which may be a year, a time of day or hours; write since 14:30 or 24h.", "0900|1430|0900h"),
    ("has four digits", "since 2026"),
    ("begins with + or -", "+5h|-5h|- 5h|\N{MINUS SIGN}5h|-8"),
    ("is zero", "0|0h|0.0|0 days 0 hours|0.0000001s"),
    ("is the present", "now|since just now|just now|up to now"),
    ("has no number", "h|m|a|x|z|week|hours"),
    ("has no length; write one, as in 168h (7 days).", "all|everything|max"),
    ("counts messages, but a window is a length of time; write it as in 24h.", "last 10 messages"),
    ("counts in months or years", "mo|1 month|3 months|1mo|last month|1 year ago|2y|P1M"),
    ("names a month; write a date as in 2026-11-18", "may|since January 2026|mar|nov 2025|march 2026"),
    ("is in the future", "tomorrow|in 2 hours|in an hour|2 hours from now|from tomorrow|next monday|today 5pm"),
    ("is in the future", "this friday 4pm|this sunday|2026-11-21|2026-11-20 15:31|9999-12-31"),
    ("is in the future", "day after tomorrow|monday next week"),
    ("has a comma", "1,000h|1,000"),
    ("reaches back before the calendar begins", f"100000000h|0001-01-01|20261317|{'9' * 50}h|{'9' * 90}"),
    ("names a part of the day", "this evening|tonight|yesterday evening|this afternoon"),
    ("may be either end of the day", "monday midnight|midnight on monday"),
    ("may be an hour or a day of the month; write it as in monday 9am.", "friday 13|friday the 13|monday 9"),
    ("may be an hour or a day of the month", "monday at 9|2 days ago at 9"),
    ("may be read as a date in more than one way; write 2026-11-18 for a date, 1.5h for a length.", "1 1|11/12|18.11."),
    ("may be read as a date in more than one way", "11/12/2026 9am|08.09|8.9.2026|10.11|10,11|18/11/26|18/11"),
    ("names a time zone", "9am EST|utc"),
    ("is too long for a time", f"{'h' * 10_000}|1{' ' * 10_000}h"),
    ("write it as in 24h, 2 days, 1h30, 3 days ago, yesterday, monday 9am or since friday.", "banana|soon|half past"),
    ("write it as in 24h", f"tommorow|{'x' * 100}"),
    ("Cannot read '1e400h' as a length of time or a moment", "1e400h"),
    ("Cannot read '\\x1b[2J\\u202e'", "\x1b[2J\u202e"),
    ("Cannot read", "1.2.3h|1 day 2:30:00|5h -2h|one|1 2 h|reset|24h?|weekend|friday the 13th|2026-11-18 14:30+01:00"),
    ("Cannot read", "2026-13-01|2026-02-30|0000-01-01|13pm|0am|monday 24:00|monday 9.30|monday ago|9am ago|for monday"),
    ("Cannot read", "last 9am|until monday|2 mondays ago|yesterday 24h|monday yesterday|mondays|mondayt9am|till date"),
    ("Cannot read", "monday \N{FULLWIDTH DIGIT TWO}pm|2026-13-01T08:00Z|last decade|march 17 1430|feb 30|32/13/2026"),
    ("Cannot read", "since 24:00|someone h|often days|1.5½ h|marching 5"),
]

MEANT = {
    "yesteday": "yesterday",
    "3 dyas": "3 days",
    "24 huors ago": "24 hours ago",
    "tuseday": "tuesday",
    "last mondey 9am": "last monday 9am",
    "sinse friday": "since friday",
    "last nigth": "last night",
    "marhc 17": "march 17",
    "a fortnite": "a fortnight",
    "twleve hours": "twelve hours",
    "a cuople of days": "a couple of days",
}

FIRST = datetime.min.replace(tzinfo=UTC)


def each(table: Sequence[tuple[T, str]]) -> list[tuple[str, T]]:
    """Return the phrases of a table, which has a stroke between them, each with what is expected of it."""
    return [(phrase, expected) for expected, phrases in table for phrase in phrases.split("|")]


def moment_of(span: Span, now: datetime) -> datetime:
    return now.astimezone(UTC) - timedelta(seconds=span.seconds)


def printed(statements: str) -> list[str]:
    """Return the output of a fresh interpreter in which every warning is an error."""
    lines = f"import sys\nfrom datetime import *\nfrom chorus_cli.core.time.timespan import parse\n{statements}"
    command = [sys.executable, "-W", "error", "-c", lines]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.stderr == ""
    return result.stdout.split()


def in_berlin(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).astimezone(UTC)


def refusal(text: str) -> str:
    with pytest.raises(TimeSpanError) as refused:
        parse(text, NOW, BERLIN)
    return str(refused.value)


@pytest.mark.parametrize(("text", "seconds"), each(LENGTHS))
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert parse(text, NOW, BERLIN) == Span(seconds)


@pytest.mark.parametrize(("text", "hours"), each(BARE_NUMBERS))
def test_a_bare_number_is_hours_and_known_to_be_bare(text: str, hours: float) -> None:
    assert parse(text, NOW) == Span(hours * HOUR, bare_number=True)


@pytest.mark.parametrize(("text", "moment"), each(MOMENTS))
def test_a_moment_is_read_as_the_time_since(text: str, moment: str) -> None:
    span = parse(text, NOW, BERLIN)
    assert span.is_moment
    assert moment_of(span, NOW) == in_berlin(moment)


@pytest.mark.parametrize(("text", "reason"), each(REFUSALS))
def test_what_is_no_time_for_certain_is_refused_with_a_short_sentence(text: str, reason: str) -> None:
    sentence = refusal(text)
    assert reason in sentence
    assert sentence.isprintable()
    assert len(sentence) < 200
    assert sentence.endswith(".")


@pytest.mark.parametrize(("text", "meant"), MEANT.items())
def test_a_slip_is_answered_with_what_was_meant(text: str, meant: str) -> None:
    assert refusal(text) == (
        f"Cannot read '{text}' as a length of time or a moment; "
        f"did you mean '{meant}'? Or write it as in 24h or 3 days ago."
    )


def test_a_time_of_day_is_one_where_since_stands_elsewhere() -> None:
    assert parse("14:30", NOW, BERLIN, after_since=True) == Span(HOUR, is_moment=True)
    with pytest.raises(TimeSpanError, match="may be a time of day or hours"):
        parse("9", NOW, BERLIN, after_since=True)


@pytest.mark.parametrize(
    ("now", "text", "moment"),
    [
        *(("2026-11-16 08:00", "monday", "2026-11-16 00:00"), ("2026-11-16 08:00", "last monday", "2026-11-09 00:00")),
        ("2026-11-16 08:00", "this monday", "2026-11-16 00:00"),
        ("2026-11-16 08:00", "monday 9am", "2026-11-09 09:00"),
        ("2026-11-16 10:00", "monday 9am", "2026-11-16 09:00"),
        *(("2026-11-16 10:00", "last monday 9am", "2026-11-09 09:00"), ("2026-11-16 08:00", "9am", "2026-11-15 09:00")),
        *(("2026-11-16 08:00", "noon", "2026-11-15 12:00"), ("2026-11-22 08:00", "this monday", "2026-11-16 00:00")),
        ("2026-01-01 08:00", "last friday", "2025-12-26 00:00"),
        ("2024-03-01 08:00", "yesterday 9am", "2024-02-29 09:00"),
    ],
)
def test_a_day_is_the_latest_that_is_not_in_the_future(now: str, text: str, moment: str) -> None:
    local_now = datetime.fromisoformat(now).replace(tzinfo=BERLIN)
    assert moment_of(parse(text, local_now, BERLIN), local_now) == in_berlin(moment)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-18", "2026-11-19 00:00"),
        ("yesterday", "2026-11-20 00:00"),
        ("monday", "2026-11-17 00:00"),
        ("today", "2026-11-20 15:30"),
        ("friday", "2026-11-20 15:30"),
        ("monday 9am", "2026-11-16 09:00"),
        ("2 days ago", "2026-11-18 15:30"),
        *((week, "2026-11-16 00:00") for week in ("this week", "the start of this week")),
    ],
)
def test_a_span_until_a_day_ends_with_it(text: str, moment: str) -> None:
    assert until(text, NOW, BERLIN) == in_berlin(moment)


@pytest.mark.parametrize(
    ("text", "now", "seconds"),
    [
        ("today", "2026-11-20 00:00:00", 0.000001),
        ("friday 9am", "2026-11-20 09:00:00", 0.000001),
        ("today", "2026-11-20 00:00:00.250000", 0.25),
        ("today 9am", "2026-11-20 09:00:45", 45),
    ],
)
def test_this_very_moment_is_the_shortest_of_times(text: str, now: str, seconds: float) -> None:
    span = parse(text, datetime.fromisoformat(now).replace(tzinfo=BERLIN), BERLIN)
    assert span == Span(seconds, is_moment=True)
    assert window_hours(span).hours == 1
    assert "is less than 1h; using 1h" in str(window_hours(span).warning)


@pytest.mark.parametrize("zone", [None, UTC, ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York")])
@pytest.mark.parametrize("now", [FIRST, FIRST + timedelta(days=2), datetime.max.replace(tzinfo=UTC)])
@pytest.mark.parametrize("text", ["yesterday", "monday 9am", "last friday", "today", "this sunday", "0001-01-01"])
def test_at_the_ends_of_the_calendar_nothing_else_is_raised(text: str, now: datetime, zone: ZoneInfo | None) -> None:
    try:
        span = parse(text, now, zone)
    except TimeSpanError as error:
        assert "calendar" in str(error) or "is in the future" in str(error)  # noqa: PT017 - some are read, some are not
    else:
        assert span.seconds > 0


def test_a_span_may_reach_to_the_beginning_of_the_calendar_but_not_beyond() -> None:
    early = datetime(1, 1, 3, tzinfo=UTC)
    assert parse("1d", early) == Span(DAY)
    with pytest.raises(TimeSpanError, match="calendar"):
        parse("2d", early)


@examples(500)
@given(st.text() | st.text(alphabet="0123456789.,:+- dhmswayelfotgi", max_size=30))
def test_no_text_raises_anything_but_a_time_span_error(text: str) -> None:
    try:
        span = parse(text, NOW)
    except TimeSpanError as error:
        assert str(error).isprintable()  # noqa: PT017 - most texts are refused, some are not
    else:
        assert span.seconds > 0
        assert window_hours(span).hours in range(1, 169)


@examples(300)
@given(st.integers(1, 10**15))
def test_what_is_formatted_reads_back_to_the_same_span(microseconds: int) -> None:
    seconds = microseconds / 1_000_000
    assert parse(format_span(seconds), NOW) == Span(seconds)


@examples(200)
@given(
    st.integers(1, 200),
    st.sampled_from(["s", "m", "h", "d", " weeks", " hours ago"]),
    st.sampled_from(["", ".5", ",25"]),
)
def test_formatting_what_was_read_and_reading_it_again_changes_nothing(number: int, unit: str, decimals: str) -> None:
    span = parse(f"{number}{decimals}{unit}", NOW)
    assert parse(format_span(span.seconds), NOW) == span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((DAY, "24h"), (200 * HOUR, "200h"), (2.5 * HOUR, "2h 30m"), (1200, "20m"), (45, "45s"), (1.5, "1.5s")),
        *((HOUR + 1, "1h 1s"), (3600.1, "1h 0.1s"), (59.9999999, "1m"), (0, "0h"), (-16 * HOUR, "-16h")),
    ],
)
def test_a_span_is_written_in_hours_minutes_and_seconds(seconds: float, text: str) -> None:
    assert format_span(seconds) == text


@given(st.text())
def test_an_echo_is_short_and_printable(text: str) -> None:
    assert quoted(text).isprintable()
    assert len(quoted(text)) <= 42


def test_a_length_of_time_loads_no_library_of_dates() -> None:
    heavy = "dateparser", "dateutil", "pytz", "regex", "tzlocal", "calendar"
    tell = f"print(sum(name in sys.modules for name in {heavy!r}))"
    lengths = "[parse(text, datetime.now(UTC)) for text in ('24h', '1h30', '8', '3 days ago', 'yesterday')]"
    loaded = printed(f"{tell}\n{lengths}\n{tell}\nparse('today', datetime.now(UTC))\n{tell}")
    assert [int(number) > 0 for number in loaded] == [False, False, True]


MORE = "Warning: {} is more than 168h (7 days); using 168h (/context all has no cutoff)"
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
