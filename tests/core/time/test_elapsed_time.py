"""Elapsed time: hours are hours in every time zone, days are found as by counting back, and a stretch is one line."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from time import process_time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.time.timeline import age, bar, counts_by_slot, duration, slot_of, timeline, window_reaching
from chorus_cli.core.time.timespan import format_span, parse, window_hours
from tests.amount import examples
from tests.core.time.test_timespan import BERLIN, HOUR, NOW, moment_of, printed

# At noon of the day on which the clock is changed, each a Sunday: today, since monday, since monday 9am.
ACROSS_A_CHANGE = [
    *(("Europe/Berlin", "2026-03-29", 11, 155, 146), ("Europe/Berlin", "2026-10-25", 13, 157, 148)),
    *(("America/New_York", "2026-03-08", 11, 155, 146), ("America/New_York", "2026-11-01", 13, 157, 148)),
    *(("Asia/Kolkata", "2026-03-29", 12, 156, 147), ("Asia/Kolkata", "2026-10-25", 12, 156, 147)),
    # Half an hour.
    ("Australia/Lord_Howe", "2026-10-04", 11.5, 155.5, 146.5),
    ("Australia/Lord_Howe", "2026-04-05", 12.5, 156.5, 147.5),
    # At midnight: the day begins at one o'clock; the last hour of Saturday comes twice.
    *(("America/Santiago", "2026-09-06", 11, 155, 146), ("America/Santiago", "2026-04-05", 12, 157, 148)),
    ("Asia/Beirut", "2026-03-29", 11, 155, 146),
]


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
        # Within the second of the two hours, the first is over, by any clock.
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


TEXTS = ("today", "monday", "monday 9am", "yesterday", "3 days ago")
OF_THE_SYSTEM = [
    *(
        (zone, now, text, number)
        for zone in ("America/New_York", "EST5EDT,M3.2.0,M11.1.0")
        for now, hours in (
            ("2026-03-08T16:00+00:00", (11, 155, 146, 24, 72)),
            ("2026-11-01T17:00+00:00", (13, 157, 148, 24, 72)),
        )
        for text, number in zip(TEXTS, hours, strict=True)
    ),
    # A time that the system skips counts on the old clock.
    ("Asia/Beirut", "2026-03-30T12:00+00:00", "sunday", 38),
    ("Africa/Cairo", "2026-04-25T12:00+00:00", "friday", 38),
    ("America/Santiago", "2026-09-07T12:00+00:00", "sunday", 32),
    ("Europe/Berlin", "2026-03-29T12:00+00:00", "today 2:30", 10.5),
    # A zone that is none is UTC.
    *((zone, "2026-11-20T15:30+00:00", "today", 15.5) for zone in ("banana", ":/nowhere", "")),
]


def test_without_a_zone_days_are_those_of_the_system() -> None:
    read = (
        f"import os, time\nfor zone, now, text, _ in {OF_THE_SYSTEM!r}:\n"
        "    os.environ['TZ'] = zone\n    time.tzset()\n"
        "    print(parse(text, datetime.fromisoformat(now)).seconds / 3600)"
    )
    assert [float(hours) for hours in printed(read)] == [row[-1] for row in OF_THE_SYSTEM]


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


@examples(200)
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


@examples(200)
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


@examples(1000)
@given(st.lists(st.sampled_from(TIME_LIKE), max_size=5), st.sampled_from([" ", ""]))
def test_no_phrase_of_time_raises_anything_but_a_time_span_error(words: list[str], between: str) -> None:
    text = between.join(words)
    try:
        span = parse(text, NOW, BERLIN)
    except TimeSpanError as error:
        assert str(error).isprintable()  # noqa: PT017 - most phrases are refused, some are not
    else:
        assert span.seconds > 0
        assert window_hours(span).hours in range(1, 169)
        assert parse(format_span(span.seconds), NOW).seconds == span.seconds


@pytest.mark.parametrize(
    "repeated", ["1", "1 ", "0 days 1h ", "a half ", "since ", "1-", "1.1.", "9am ", "monday ", "last ", "1,111", "1:"]
)
@pytest.mark.parametrize("end", ["", "x", " ago"])
@pytest.mark.timeout(5)  # polynomial time would be minutes, what it takes is milliseconds
def test_no_text_takes_long_to_refuse(repeated: str, end: str) -> None:
    text = (repeated * 100)[: 100 - len(end)] + end
    parse("monday", NOW, BERLIN)  # imports dateparser, which takes its time
    begun = process_time()
    with suppress(TimeSpanError):
        parse(text, NOW, BERLIN)
    assert process_time() - begun < 1


SINCE = datetime(2026, 2, 12, 6, tzinfo=UTC)
UNTIL = SINCE + timedelta(hours=8)


def at(*hours: float) -> list[datetime]:
    return [SINCE + timedelta(hours=hour) for hour in hours]


@pytest.mark.parametrize(
    ("hours", "line"),
    [
        *(((), "········"), ((0.5,), "█·······"), ((0.5, 7.9, 7.95), "▄······█"), ((-1, 0, 8), "·······█")),
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
    ("hours", "window"), [(0.5, 1), (1, 2), (11.5, 12), (12, 24), (24, 48), (167, 168), (168, 168), (1000, 168)]
)
def test_a_window_that_reaches_back_is_whole_days_beyond_half_a_day(hours: float, window: int) -> None:
    assert window_reaching(timedelta(hours=hours)) == window


@given(st.lists(st.floats(-20, 20)), st.integers(1, 200))
def test_every_moment_of_the_time_is_counted_once(hours: list[float], slots: int) -> None:
    counts = counts_by_slot(at(*hours), SINCE, UNTIL, slots)
    assert len(timeline(counts)) == slots
    assert sum(counts) == sum(SINCE < moment <= UNTIL for moment in at(*hours))
