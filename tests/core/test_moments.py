from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.timespan import Span, format_span, parse, window_hours

HOUR = 3600
BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 20, 15, 30, tzinfo=BERLIN)  # a Friday
FIRST = datetime.min.replace(tzinfo=UTC)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
CLOCKS = {
    "0:00": time(0),
    "12am": time(0),
    "12:30 am": time(0, 30),
    "1:05": time(1, 5),
    "9am": time(9),
    "9 am": time(9),
    "09:30:15": time(9, 30, 15),
    "noon": time(12),
    "12pm": time(12),
    "3:05pm": time(15, 5),
    "23:59": time(23, 59),
}

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

FUTURE = "lies in the future"
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
    "this morning": PART_OF_DAY,
    "last night": PART_OF_DAY,
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
    "2026/11/18": ANY_ORDER,
    "9am EST": TIME_ZONE,
    "utc": TIME_ZONE,
    "2026-11-18T14:30Z": TIME_ZONE,
    "at 9:30": "may be a time of day or a length of time",
    "18 nov": "names a month; write a date as in 2026-11-18",
    "mo": "speaks of months",
    "z": "has no number",
    "week": "has no number",
    "this week": UNREADABLE,
    "weekend": UNREADABLE,
    "friday the 13th": UNREADABLE,
    "2026-11-18 14:30+01:00": UNREADABLE,
    "2026-13-01": UNREADABLE,
    "2026-02-30": UNREADABLE,
    "2026-1-5": ANY_ORDER,
    "0000-01-01": UNREADABLE,
    "13pm": UNREADABLE,
    "0am": UNREADABLE,
    "monday 24:00": UNREADABLE,
    "monday 9.30": UNREADABLE,
    "9.30am": UNREADABLE,
    "monday ago": UNREADABLE,
    "9am ago": UNREADABLE,
    "for monday": UNREADABLE,
    "last 9am": UNREADABLE,
    "until monday": UNREADABLE,
    "2 mondays ago": UNREADABLE,
    "2 days ago 9am": UNREADABLE,
    "yesterday 24h": UNREADABLE,
    "monday yesterday": UNREADABLE,
    "mondays": UNREADABLE,
    "mondayt9am": UNREADABLE,
    "monday \N{FULLWIDTH DIGIT TWO}pm": UNREADABLE,
    "half past nine": UNREADABLE,
    "till date": UNREADABLE,
    "last decade": UNREADABLE,
}

# At noon of the day on which the clock is changed, each a Sunday: today, since monday, since monday 9am.
ACROSS_A_CHANGE = [
    ("Europe/Berlin", "2026-03-29", 11, 155, 146),
    ("Europe/Berlin", "2026-10-25", 13, 157, 148),
    ("America/New_York", "2026-03-08", 11, 155, 146),
    ("America/New_York", "2026-11-01", 13, 157, 148),
    ("Asia/Kolkata", "2026-03-29", 12, 156, 147),
    ("Asia/Kolkata", "2026-10-25", 12, 156, 147),
    # Half an hour.
    ("Australia/Lord_Howe", "2026-10-04", 11.5, 155.5, 146.5),
    ("Australia/Lord_Howe", "2026-04-05", 12.5, 156.5, 147.5),
    # At midnight: the day begins at one o'clock; the last hour of Saturday comes twice.
    ("America/Santiago", "2026-09-06", 11, 155, 146),
    ("America/Santiago", "2026-04-05", 12, 157, 148),
    ("Asia/Beirut", "2026-03-29", 11, 155, 146),
]


def moment_of(span: Span, now: datetime) -> datetime:
    return now.astimezone(UTC) - timedelta(seconds=span.seconds)


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


@pytest.mark.parametrize(("zone_name", "day", "today", "monday", "monday_at_nine"), ACROSS_A_CHANGE)
def test_hours_are_elapsed_hours_across_a_change_of_the_clock(
    zone_name: str, day: str, today: float, monday: float, monday_at_nine: float
) -> None:
    zone = ZoneInfo(zone_name)
    now = datetime.fromisoformat(f"{day} 12:00").replace(tzinfo=zone)
    hours = {
        "yesterday": 24,
        "24h": 24,
        "3 days ago": 72,
        "three days ago": 72,
        "day before yesterday": 48,
        "today": today,
        "midnight": today,
        "monday": monday,
        "last monday": monday,
        "monday 9am": monday_at_nine,
    }
    for asked_at in (now, now.astimezone(UTC)):
        assert {text: parse(text, asked_at, zone).seconds / HOUR for text in hours} == hours


@pytest.mark.parametrize(
    ("now", "text", "moment"),
    [
        ("2026-10-25T12:00+01:00", "today 2:30", "2026-10-25T02:30+02:00"),
        # Within the second of the two hours, the first is over whatever the clock says.
        ("2026-10-25T02:15+01:00", "today 2:30", "2026-10-25T02:30+02:00"),
        ("2026-10-25T02:15+01:00", "2:30am", "2026-10-25T02:30+02:00"),
        ("2026-10-25T02:15+01:00", "sunday 2:30", "2026-10-25T02:30+02:00"),
        ("2026-10-25T02:15+02:00", "2:30am", "2026-10-24T02:30+02:00"),
        ("2026-03-29T12:00+02:00", "today 2:30", "2026-03-29T03:30+02:00"),
    ],
)
def test_a_clock_time_that_comes_twice_is_the_first_and_one_that_is_skipped_is_later(
    now: str, text: str, moment: str
) -> None:
    aware_now = datetime.fromisoformat(now)
    assert moment_of(parse(text, aware_now, BERLIN), aware_now) == datetime.fromisoformat(moment)


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


@settings(max_examples=200, deadline=None)
@given(
    st.integers(3 * 10**8, 2 * 10**9),
    st.sampled_from(WEEKDAYS),
    st.sampled_from(list(CLOCKS)),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
    st.booleans(),
)
def test_a_named_day_is_found_as_by_counting_back(
    seconds_since_1970: int,
    name: str,
    clock: str,
    zone_name: str,
    last: bool,  # noqa: FBT001 - drawn by hypothesis
) -> None:
    zone = ZoneInfo(zone_name)
    now = datetime.fromtimestamp(seconds_since_1970, UTC)
    today = now.astimezone(zone).date()
    nearest = (today.weekday() - WEEKDAYS.index(name)) % 7
    days_back = [7 if last and nearest == 0 else nearest, nearest + 7]
    candidates = [_local(today - timedelta(days=days), CLOCKS[clock], zone) for days in days_back]
    elapsed = next(now - each for each in candidates if each <= now)
    assert parse(f"{'last ' * last}{name} {clock}", now, zone).seconds == max(elapsed.total_seconds(), 0.000001)


@settings(max_examples=200, deadline=None)
@given(st.dates(date(1900, 1, 1), date(2026, 11, 19)), st.sampled_from(list(CLOCKS)))
def test_a_date_is_never_taken_for_another(day: date, clock: str) -> None:
    expected = _local(day, CLOCKS[clock], BERLIN)
    span = parse(f"{day} {clock}", NOW, BERLIN)
    assert moment_of(span, NOW) == expected
    assert parse(format_span(span.seconds), NOW).seconds == span.seconds


def _local(day: date, clock: time, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, clock, zone).astimezone(UTC)


TIME_LIKE = (
    *WEEKDAYS,
    *CLOCKS,
    *("mon", "sat", "today", "yesterday", "tomorrow", "now", "midnight", "morning", "night", "week", "month", "year"),
    *("last", "this", "next", "the", "on", "at", "in", "since", "from", "ago", "before", "day", "and", "a", "half"),
    *("h", "m", "d", "am", "pm", "utc", "est", "z", "t", "may", "13th", "two", "nine", "days", "hours", ",", ":", "-"),
    *("0", "1", "5", "13", "24", "2026", "10.5", "08.09", "11/12", "1e400", "2026-11-18", "2026-02-30", "-3", "1:30"),
)


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.sampled_from(TIME_LIKE), max_size=5), st.sampled_from([" ", ""]))
def test_no_phrase_of_time_raises_anything_but_a_time_span_error(words: list[str], between: str) -> None:
    text = between.join(words)
    try:
        span = parse(text, NOW, BERLIN)
    except TimeSpanError as error:
        assert str(error).isprintable()  # noqa: PT017 - most phrases are refused, some are not
    else:
        assert span.seconds > 0
        assert 1 <= window_hours(span).hours <= 168
        assert parse(format_span(span.seconds), NOW).seconds == span.seconds


@pytest.mark.parametrize(
    "repeated", ["1", "1 ", "0 days 1h ", "a half ", "since ", "1-", "1.1.", "9am ", "monday ", "last ", "1,111", "1:"]
)
@pytest.mark.parametrize("end", ["", "x", " ago"])
@pytest.mark.timeout(5)  # polynomial time would be minutes, what it takes is milliseconds
def test_no_text_takes_long_to_refuse(repeated: str, end: str) -> None:
    text = (repeated * 100)[: 100 - len(end)] + end
    with suppress(TimeSpanError):
        parse(text, NOW, BERLIN)


def printed(statements: str, **environment: str) -> list[str]:
    """Return what a fresh interpreter prints in which every warning is an error."""
    lines = f"import sys\nfrom datetime import *\nfrom chorus_cli.core.timespan import parse\n{statements}"
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", lines],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert result.stderr == ""
    return result.stdout.split()


@pytest.mark.parametrize("system_zone", ["America/New_York", "EST5EDT,M3.2.0,M11.1.0"])
def test_without_a_zone_days_are_those_of_the_system(system_zone: str) -> None:
    read = (
        "for now in ('2026-03-08T16:00+00:00', '2026-11-01T17:00+00:00'):\n"
        "    for text in ('today', 'monday', 'monday 9am', 'yesterday', '3 days ago'):\n"
        "        print(parse(text, datetime.fromisoformat(now)).seconds / 3600)"
    )
    hours = [float(number) for number in printed(read, TZ=system_zone)]
    assert hours == [11, 155, 146, 24, 72, 13, 157, 148, 24, 72]


@pytest.mark.parametrize(
    ("system_zone", "now", "text", "moment"),
    [
        ("Asia/Beirut", "2026-03-30T12:00+00:00", "sunday", "2026-03-29T01:00:00+03:00"),
        ("Africa/Cairo", "2026-04-25T12:00+00:00", "friday", "2026-04-24T01:00:00+03:00"),
        ("America/Santiago", "2026-09-07T12:00+00:00", "sunday", "2026-09-06T01:00:00-03:00"),
        ("Europe/Berlin", "2026-03-29T12:00+00:00", "today 2:30", "2026-03-29T03:30:00+02:00"),
    ],
)
def test_a_time_that_the_system_skips_counts_on_the_old_clock(
    system_zone: str, now: str, text: str, moment: str
) -> None:
    read = (
        f"now = datetime.fromisoformat('{now}')\n"
        f"print((now - timedelta(seconds=parse('{text}', now).seconds)).astimezone().isoformat())"
    )
    assert printed(f"from datetime import timedelta\n{read}", TZ=system_zone) == [moment]


@pytest.mark.parametrize("system_zone", ["banana", ":/nowhere", ""])
def test_a_system_zone_that_is_none_disturbs_nothing(system_zone: str) -> None:
    read = "print(parse('today', datetime(2026, 11, 20, 15, 30, tzinfo=UTC)).seconds / 3600)"
    assert printed(read, TZ=system_zone) == ["15.5"]


def test_a_length_of_time_loads_no_library_of_dates() -> None:
    heavy = "dateparser", "dateutil", "pytz", "regex", "tzlocal", "calendar"
    tell = f"print(*(name for name in {heavy!r} if name in sys.modules))"
    lengths = "[parse(text, datetime.now(UTC)) for text in ('24h', '1h30', '8', '3 days ago', 'yesterday')]"
    assert printed(tell) == []
    assert printed(f"{lengths}\n{tell}") == []
    assert "dateparser" in printed(f"parse('today', datetime.now(UTC))\n{tell}")
