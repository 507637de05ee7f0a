"""Any phrase of days, dates and clock times: found as by counting back, or refused at once."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from time import process_time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.time.timespan import format_span, parse, window_hours
from tests.amount import examples
from tests.core.time.reading_time import BERLIN, NOW, moment_of

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
        assert 1 <= window_hours(span).hours <= 168
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
