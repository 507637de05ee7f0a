"""Moments of the past as they are typed: read as the time since, or refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.time.timespan import Span, parse, window_hours
from tests.core.time.reading_time import BERLIN, NOW, moment_of

FIRST = datetime.min.replace(tzinfo=UTC)

MOMENTS = {
    "yesterday": "2026-11-19 15:30",
    "since yesterday": "2026-11-19 15:30",
    '"yesterday"': "2026-11-19 15:30",
    "day before yesterday": "2026-11-18 15:30",
    "the day before yesterday": "2026-11-18 15:30",
    "yesterday 9am": "2026-11-19 09:00",
    "yesterday at 21:15": "2026-11-19 21:15",
    "9am yesterday": "2026-11-19 09:00",
    "today": "2026-11-20 00:00",
    "since today": "2026-11-20 00:00",
    "today 9am": "2026-11-20 09:00",
    "today at 15:29": "2026-11-20 15:29",
    "friday": "2026-11-20 00:00",
    "since friday": "2026-11-20 00:00",
    "this friday": "2026-11-20 00:00",
    "last friday": "2026-11-13 00:00",
    "friday 9am": "2026-11-20 09:00",
    "friday 4pm": "2026-11-13 16:00",
    "last friday 9am": "2026-11-13 09:00",
    "monday": "2026-11-16 00:00",
    "Monday": "2026-11-16 00:00",
    "mon": "2026-11-16 00:00",
    "last monday": "2026-11-16 00:00",
    "the last monday": "2026-11-16 00:00",
    "this monday": "2026-11-16 00:00",
    "on monday": "2026-11-16 00:00",
    "from monday": "2026-11-16 00:00",
    "monday 9am": "2026-11-16 09:00",
    "monday, 9 am": "2026-11-16 09:00",
    "monday at 9:30am": "2026-11-16 09:30",
    "monday nine am": "2026-11-16 09:00",
    "9am on monday": "2026-11-16 09:00",
    "tues": "2026-11-17 00:00",
    "weds": "2026-11-18 00:00",
    "thurs": "2026-11-19 00:00",
    "sat": "2026-11-14 00:00",
    "sunday noon": "2026-11-15 12:00",
    "9am": "2026-11-20 09:00",
    "since 9:30am": "2026-11-20 09:30",
    "at 5pm": "2026-11-19 17:00",
    "noon": "2026-11-20 12:00",
    "midnight": "2026-11-20 00:00",
    "12am": "2026-11-20 00:00",
    "2026-11-18": "2026-11-18 00:00",
    "2026-11-18 14:30": "2026-11-18 14:30",
    "2026-11-18T14:30:05": "2026-11-18 14:30:05",
    "2026-11-12 noon": "2026-11-12 12:00",
    "since 2026-07-01 2pm": "2026-07-01 14:00",
    "1969-12-31": "1969-12-31 00:00",
}

FUTURE = "is in the future"
PART_OF_DAY = "names a part of the day"
HOUR_OR_DAY = "may be an hour or a day of the month"
ANY_ORDER = "may be read as a date in more than one way"
TIME_ZONE = "names a time zone"
UNREADABLE = "Cannot read"

REFUSALS = {
    "today 5pm": FUTURE,
    "this friday 4pm": FUTURE,
    "this sunday": FUTURE,
    "2026-11-21": FUTURE,
    "2026-11-20 15:31": FUTURE,
    "9999-12-31": FUTURE,
    "day after tomorrow": FUTURE,
    "monday next week": FUTURE,
    "0001-01-01": "before the calendar begins",
    "this evening": PART_OF_DAY,
    "tonight": PART_OF_DAY,
    "yesterday evening": PART_OF_DAY,
    "monday midnight": "may be either end of the day",
    "midnight on monday": "may be either end of the day",
    "friday 13": HOUR_OR_DAY,
    "friday the 13": HOUR_OR_DAY,
    "monday 9": HOUR_OR_DAY,
    "monday at 9": HOUR_OR_DAY,
    "1 1": ANY_ORDER,
    "11/12": ANY_ORDER,
    "11/12/2026 9am": ANY_ORDER,
    "08.09": ANY_ORDER,
    "8.9.2026": ANY_ORDER,
    "18.11.": ANY_ORDER,
    "9am EST": TIME_ZONE,
    "utc": TIME_ZONE,
    "nov 2025": "names a month; write a date as in 2026-11-18",
    "mo": "counts in months",
    "z": "has no number",
    "week": "has no number",
    "weekend": UNREADABLE,
    "friday the 13th": UNREADABLE,
    "2026-11-18 14:30+01:00": UNREADABLE,
    "2026-13-01": UNREADABLE,
    "2026-02-30": UNREADABLE,
    "0000-01-01": UNREADABLE,
    "13pm": UNREADABLE,
    "0am": UNREADABLE,
    "monday 24:00": UNREADABLE,
    "monday 9.30": UNREADABLE,
    "monday ago": UNREADABLE,
    "9am ago": UNREADABLE,
    "for monday": UNREADABLE,
    "last 9am": UNREADABLE,
    "until monday": UNREADABLE,
    "2 mondays ago": UNREADABLE,
    "yesterday 24h": UNREADABLE,
    "monday yesterday": UNREADABLE,
    "mondays": UNREADABLE,
    "mondayt9am": UNREADABLE,
    "monday \N{FULLWIDTH DIGIT TWO}pm": UNREADABLE,
    "2026-13-01T08:00Z": UNREADABLE,
    "till date": UNREADABLE,
    "last decade": UNREADABLE,
}


def in_berlin(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).astimezone(UTC)


@pytest.mark.parametrize(("text", "moment"), MOMENTS.items())
def test_a_moment_is_read_as_the_time_since(text: str, moment: str) -> None:
    span = parse(text, NOW, BERLIN)
    assert span.is_moment
    assert moment_of(span, NOW) == in_berlin(moment)


@pytest.mark.parametrize(("text", "reason"), REFUSALS.items())
def test_what_names_no_moment_for_certain_is_refused_with_a_short_sentence(text: str, reason: str) -> None:
    with pytest.raises(TimeSpanError) as refusal:
        parse(text, NOW, BERLIN)
    sentence = str(refusal.value)
    assert reason in sentence
    assert sentence.endswith(".")
    assert len(sentence) < 200


@pytest.mark.parametrize(
    ("now", "text", "moment"),
    [
        ("2026-11-16 08:00", "monday", "2026-11-16 00:00"),
        ("2026-11-16 08:00", "last monday", "2026-11-09 00:00"),
        ("2026-11-16 08:00", "this monday", "2026-11-16 00:00"),
        ("2026-11-16 08:00", "monday 9am", "2026-11-09 09:00"),
        ("2026-11-16 10:00", "monday 9am", "2026-11-16 09:00"),
        ("2026-11-16 10:00", "last monday 9am", "2026-11-09 09:00"),
        ("2026-11-16 08:00", "9am", "2026-11-15 09:00"),
        ("2026-11-16 08:00", "noon", "2026-11-15 12:00"),
        ("2026-11-22 08:00", "this monday", "2026-11-16 00:00"),
        ("2026-01-01 08:00", "last friday", "2025-12-26 00:00"),
        ("2024-03-01 08:00", "yesterday 9am", "2024-02-29 09:00"),
    ],
)
def test_a_day_is_the_latest_that_is_not_in_the_future(now: str, text: str, moment: str) -> None:
    local_now = datetime.fromisoformat(now).replace(tzinfo=BERLIN)
    assert moment_of(parse(text, local_now, BERLIN), local_now) == in_berlin(moment)


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
        assert "calendar" in str(error) or FUTURE in str(error)  # noqa: PT017 - some are read, some are not
    else:
        assert span.seconds > 0
