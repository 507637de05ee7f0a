"""Lengths of time as they are typed and written."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.text.phrases import quoted
from chorus_cli.core.time.timespan import Span, format_span, parse, window_hours
from tests.amount import examples
from tests.core.time.reading_time import DAY, HOUR, NOW, printed

LENGTHS = {
    "24h": DAY,
    "24H": DAY,
    "2d": 2 * DAY,
    "1 week": 7 * DAY,
    "1w": 7 * DAY,
    "48 hours": 2 * DAY,
    "2h 30m": 2.5 * HOUR,
    "1.5h": 1.5 * HOUR,
    "90m": 1.5 * HOUR,
    "90 minutes": 1.5 * HOUR,
    "1d12h": 36 * HOUR,
    "45s": 45,
    "0.5s": 0.5,
    "1h 0.1s": 3600.1,
    "1h30": 1.5 * HOUR,
    "1h05": HOUR + 300,
    "2 h 30": 2.5 * HOUR,
    "2d 1h30": 2 * DAY + 1.5 * HOUR,
    "1,5h": 1.5 * HOUR,
    "0,5 h": 0.5 * HOUR,
    "2 hours, 30 minutes": 2.5 * HOUR,
    "1 hour and 30 minutes": 1.5 * HOUR,
    "an hour": HOUR,
    "a day": DAY,
    "a week": 7 * DAY,
    "half an hour": HOUR / 2,
    "half a day": DAY / 2,
    "a half hour": HOUR / 2,
    "half hour": HOUR / 2,
    "3 days ago": 3 * DAY,
    "an hour ago": HOUR,
    "1h30 ago": 1.5 * HOUR,
    "half an hour ago": HOUR / 2,
    "since 3 days ago": 3 * DAY,
    "from 2d": 2 * DAY,
    "for 2 hours": 2 * HOUR,
    "the last 2 days": 2 * DAY,
    "last 24h": DAY,
    "the past 3 hours": 3 * HOUR,
    "in the last 2 hours": 2 * HOUR,
    "for the last half hour": HOUR / 2,
    "the last hour": HOUR,
    "since last week": 7 * DAY,
    "two days ago": 2 * DAY,
    "three hours": 3 * HOUR,
    "the last twelve hours": 12 * HOUR,
    "one day and six hours": 30 * HOUR,
    "  24h \t": DAY,
    "2   days": 2 * DAY,
    '"3 days ago"': 3 * DAY,
    "999999h": 999999 * HOUR,
    "٣h": 3 * HOUR,
}

BARE_NUMBERS = {
    "24": 24,
    "8": 8,
    " 12 ": 12,
    "8.5": 8.5,
    "8,5": 8.5,
    ".5": 0.5,
    "the last 8": 8,
    "8 ago": 8,
}

REFUSALS = {
    "": "No time given",
    " \n ": "No time given",
    '""': "No time given",
    "1:30": "may be a time of day or a length of time",
    "24:00": "may be a time of day",
    "1:30:00": "may be a time of day",
    ":30": "may be a time of day",
    "+5h": "has a sign",
    "-5h": "has a sign",
    "- 5h": "has a sign",
    "\N{MINUS SIGN}5h": "has a sign",
    "-8": "has a sign",
    "0": "is zero",
    "0h": "is zero",
    "0.0": "is zero",
    "0 days 0 hours": "is zero",
    "0.0000001s": "is zero",
    "now": "is the present",
    "since just now": "is the present",
    "h": "has no number",
    "m": "has no number",
    "a": "has no number",
    "x": "has no number",
    "hours": "has no number",
    "1 month": "counts in months or years",
    "3 months": "counts in months or years",
    "1mo": "counts in months or years",
    "last month": "counts in months or years",
    "1 year ago": "counts in months or years",
    "2y": "counts in months or years",
    "may": "names a month",
    "since January 2026": "names a month",
    "mar": "names a month",
    "tomorrow": "is in the future",
    "in 2 hours": "is in the future",
    "in an hour": "is in the future",
    "2 hours from now": "is in the future",
    "from tomorrow": "is in the future",
    "next monday": "is in the future",
    "1,000h": "has a comma",
    "1,000": "has a comma",
    "9" * 50 + "h": "reaches back before the calendar begins",
    "100000000h": "reaches back before the calendar begins",
    "9" * 90: "reaches back before the calendar begins",
    "1e400h": "Cannot read '1e400h' as a length of time or a moment",
    "1.2.3h": "Cannot read",
    "1 day 2:30:00": "Cannot read",
    "5h -2h": "Cannot read",
    "one": "Cannot read",
    "1 2 h": "Cannot read",
    "banana": "write it as in 24h, 2 days, 1h30, 3 days ago, yesterday, monday 9am or since friday.",
    "reset": "Cannot read",
    "24h?": "Cannot read",
    "h" * 10_000: "is too long for a time",
    "1" + " " * 10_000 + "h": "is too long for a time",
    "\x1b[2J\u202e": "Cannot read '\\x1b[2j\\u202e'",
}


@pytest.mark.parametrize(("text", "seconds"), LENGTHS.items())
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert parse(text, NOW) == Span(seconds)


@pytest.mark.parametrize(("text", "hours"), BARE_NUMBERS.items())
def test_a_bare_number_is_hours_and_known_to_be_bare(text: str, hours: float) -> None:
    assert parse(text, NOW) == Span(hours * HOUR, bare_number=True)


@pytest.mark.parametrize(("text", "reason"), REFUSALS.items())
def test_what_is_no_length_of_time_is_refused_with_a_short_sentence(text: str, reason: str) -> None:
    with pytest.raises(TimeSpanError) as refusal:
        parse(text, NOW)
    sentence = str(refusal.value)
    assert reason.casefold() in sentence.casefold()
    assert sentence.isprintable()
    assert len(sentence) < 200
    assert sentence.endswith(".")


def test_many_blanks_between_words_are_one() -> None:
    assert parse(f"1d{' ' * 90}2h", NOW) == Span(26 * HOUR)


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
        assert 1 <= window_hours(span).hours <= 168


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
        (DAY, "24h"),
        (200 * HOUR, "200h"),
        (2.5 * HOUR, "2h 30m"),
        (1200, "20m"),
        (45, "45s"),
        (1.5, "1.5s"),
        (HOUR + 1, "1h 1s"),
        (3600.1, "1h 0.1s"),
        (59.9999999, "1m"),
        (0, "0h"),
        (-16 * HOUR, "-16h"),
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
    tell = f"print(*(name for name in {heavy!r} if name in sys.modules))"
    lengths = "[parse(text, datetime.now(UTC)) for text in ('24h', '1h30', '8', '3 days ago', 'yesterday')]"
    assert printed(tell) == []
    assert printed(f"{lengths}\n{tell}") == []
    assert "dateparser" in printed(f"parse('today', datetime.now(UTC))\n{tell}")
