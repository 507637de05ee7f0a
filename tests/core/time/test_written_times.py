"""Times as people write them: numbers as words, dates in any order that can only be one, slips of the keyboard."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.time.moments import in_digits, with_iso_dates
from chorus_cli.core.time.timespan import Span, parse
from tests.core.time.reading_time import BERLIN, DAY, HOUR, NOW, moment_of

LENGTHS = {
    "an hour and a half": 1.5 * HOUR,
    "an hour and a half ago": 1.5 * HOUR,
    "the last hour and a half": 1.5 * HOUR,
    "two and a half days": 2.5 * DAY,
    "one and a half hours": 1.5 * HOUR,
    "2 hours and a half": 2.5 * HOUR,
    "2½ hours": 2.5 * HOUR,
    "2 ½ h": 2.5 * HOUR,
    "½ an hour": HOUR / 2,
    "1¾h": 1.75 * HOUR,
    "a couple of days": 2 * DAY,
    "a couple days": 2 * DAY,
    "a couple of days ago": 2 * DAY,
    "a few hours ago": 3 * HOUR,
    "the last few days": 3 * DAY,
    "a fortnight": 14 * DAY,
    "a fortnight ago": 14 * DAY,
    "the last fortnight": 14 * DAY,
    "3 fortnights": 42 * DAY,
    "half a fortnight": 7 * DAY,
    "twenty-four hours": DAY,
    "twenty four hours": DAY,
    "ninety minutes": 1.5 * HOUR,
    "seventeen hours": 17 * HOUR,
    "1 hour 30": 1.5 * HOUR,
    "1 hour and 30": 1.5 * HOUR,
    "2 hrs 15": 2.25 * HOUR,
    "2 hrs.": 2 * HOUR,
    "3 days.": 3 * DAY,
    "2 hrs. ago": 2 * HOUR,
    "previous 3 days": 3 * DAY,
    "the previous day": DAY,
    "in the previous 2 days": 2 * DAY,
    "within the last 2 days": 2 * DAY,
    "within 2 hours": 2 * HOUR,
    "during the past few days": 3 * DAY,
    "~3h": 3 * HOUR,
    "3 days back": 3 * DAY,
    "P1D": DAY,
    "P2W": 14 * DAY,
    "PT12H": 12 * HOUR,
    "P1DT1H30M": 25.5 * HOUR,
    "24-hours": DAY,
    "24-hour": DAY,
    "half-hour": HOUR / 2,
    "a quarter hour": HOUR / 4,
    "a quarter of an hour": HOUR / 4,
    "1/2 hour": HOUR / 2,
    "1/2 an hour": HOUR / 2,
    "1 1/2 hours": 1.5 * HOUR,
    "1/2 day": DAY / 2,
    "about 2 days": 2 * DAY,
    "around 6 hours": 6 * HOUR,
    "up to 2 days": 2 * DAY,
    "max 24h": DAY,
    "at least 6h": 6 * HOUR,
    "just 3 days": 3 * DAY,
    "only 3 days": 3 * DAY,
    "3 days please": 3 * DAY,
    "back 24h": DAY,
    "go back 2 days": 2 * DAY,
    "3 days of context": 3 * DAY,
    "24 hours of history": DAY,
    "about the last 3 days, please": 3 * DAY,
}

MOMENTS = {
    "since 14:30": "2026-11-20 14:30",
    "since 9:00": "2026-11-20 09:00",
    "from 10:30": "2026-11-20 10:30",
    "since 16:00": "2026-11-19 16:00",
    "yesterday 9 p.m.": "2026-11-19 21:00",
    "yesterday at 9 P.M.": "2026-11-19 21:00",
    "9 a.m. yesterday": "2026-11-19 09:00",
    "2 days ago at 9am": "2026-11-18 09:00",
    "2 days ago 9am": "2026-11-18 09:00",
    "a couple of days ago at noon": "2026-11-18 12:00",
    "a week ago, 14:30": "2026-11-13 14:30",
    "9am two days ago": "2026-11-18 09:00",
    "3 days back at 9am": "2026-11-17 09:00",
    "last night": "2026-11-19 18:00",
    "since last night": "2026-11-19 18:00",
    "this morning": "2026-11-20 06:00",
    "since this morning": "2026-11-20 06:00",
    "2026/03/17": "2026-03-17 00:00",
    "2026-3-17": "2026-03-17 00:00",
    "2026.3.17 9am": "2026-03-17 09:00",
    "18/11/2026": "2026-11-18 00:00",
    "11/18/2026": "2026-11-18 00:00",
    "2026/11/18": "2026-11-18 00:00",
    "11/11/2026": "2026-11-11 00:00",
    "25.12.2025": "2025-12-25 00:00",
    "17.3.2026": "2026-03-17 00:00",
    "18-11-2026, 9am": "2026-11-18 09:00",
    "march 17": "2026-03-17 00:00",
    "March 16": "2026-03-16 00:00",
    "since 3 January": "2026-01-03 00:00",
    "5 sept": "2026-09-05 00:00",
    "18 nov": "2026-11-18 00:00",
    "Nov. 18th at 9am": "2026-11-18 09:00",
    "the 17th of March": "2026-03-17 00:00",
    "March 17, 2025": "2025-03-17 00:00",
    "december 25": "2025-12-25 00:00",
    "feb 29": "2024-02-29 00:00",
    "this week": "2026-11-16 00:00",
    "start of the week": "2026-11-16 00:00",
    "the beginning of this week": "2026-11-16 00:00",
    "yesterday 9.30pm": "2026-11-19 21:30",
    "9.30am": "2026-11-20 09:30",
    "yesterday @ 9pm": "2026-11-19 21:00",
    "monday @ 9pm": "2026-11-16 21:00",
    "back to monday": "2026-11-16 00:00",
    "monday to now": "2026-11-16 00:00",
    "from 9am to now": "2026-11-20 09:00",
    "earlier today": "2026-11-20 00:00",
    "at 14:30": "2026-11-20 14:30",
    "half past nine": "2026-11-20 09:30",
    "half past 4": "2026-11-20 04:30",
    "tue 17 mar": "2026-03-17 00:00",
    "Tuesday, March 17 at 9am": "2026-03-17 09:00",
    "9pm last night": "2026-11-19 21:00",
    "midnight yesterday": "2026-11-19 00:00",
    "2026-03-17T08:00Z": "2026-03-17 09:00",
    "2026-03-17T08:00:30.5Z": "2026-03-17 09:00:30.5",
    "20260317": "2026-03-17 00:00",
}

CLOCK_OR_HOURS = "may be a time of day or hours; write since 9:00 or 9h."
FOUR_DIGITS = "has four digits, which may be a year, a time of day or hours; write since 14:30 or 24h."
ANY_ORDER = "may be read as a date in more than one way; write 2026-11-18 for a date, 1.5h for a length."

REFUSALS = {
    "since 9": CLOCK_OR_HOURS,
    "from 8": CLOCK_OR_HOURS,
    "since 8.5": CLOCK_OR_HOURS,
    "since at 9": CLOCK_OR_HOURS,
    "0900": FOUR_DIGITS,
    "1430": FOUR_DIGITS,
    "0900h": FOUR_DIGITS,
    "since 2026": FOUR_DIGITS,
    "10.11": ANY_ORDER,
    "10,11": ANY_ORDER,
    "8.9.2026": ANY_ORDER,
    "18/11/26": ANY_ORDER,
    "2 days ago at 9": "has a number that may be an hour or a day of the month; write it as in monday 9am.",
    "P1M": "counts in months or years",
    "march 17 1430": "Cannot read 'march 17 1430'",
    "feb 30": "Cannot read 'feb 30'",
    "32/13/2026": "Cannot read '32/13/2026'",
    "since 24:00": "Cannot read 'since 24:00'",
    "this afternoon": "names a part of the day",
    "all": "has no length; write one, as in 168h (7 days), the longest window.",
    "everything": "has no length; write one, as in 168h (7 days), the longest window.",
    "max": "has no length; write one, as in 168h (7 days), the longest window.",
    "last 10 messages": "counts messages, but a window is a length of time; write it as in 24h.",
    "just now": "is the present",
    "up to now": "is the present",
    "20261317": "reaches back before the calendar begins",
}

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


@pytest.mark.parametrize(("text", "seconds"), LENGTHS.items())
def test_a_length_is_read_as_it_is_said(text: str, seconds: float) -> None:
    assert parse(text, NOW, BERLIN) == Span(seconds)


@pytest.mark.parametrize(("text", "moment"), MOMENTS.items())
def test_a_moment_that_can_only_be_one_is_read(text: str, moment: str) -> None:
    span = parse(text, NOW, BERLIN)
    assert span.is_moment
    assert moment_of(span, NOW) == datetime.fromisoformat(moment).replace(tzinfo=BERLIN).astimezone(UTC)


@pytest.mark.parametrize(("text", "reason"), REFUSALS.items())
def test_what_could_be_more_than_one_time_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TimeSpanError) as refusal:
        parse(text, NOW, BERLIN)
    assert reason in str(refusal.value)


@pytest.mark.parametrize(("text", "meant"), MEANT.items())
def test_a_slip_is_answered_with_what_was_meant(text: str, meant: str) -> None:
    with pytest.raises(TimeSpanError) as refusal:
        parse(text, NOW, BERLIN)
    assert str(refusal.value) == (
        f"Cannot read '{text}' as a length of time or a moment; "
        f"did you mean '{meant}'? Or write it as in 24h or 3 days ago."
    )


@pytest.mark.parametrize("text", ["soon", "banana", "weekend", "half past", "tommorow", "x" * 100])
def test_what_is_near_no_time_is_answered_with_examples(text: str) -> None:
    with pytest.raises(TimeSpanError, match=r"write it as in 24h"):
        parse(text, NOW, BERLIN)


def test_a_time_of_day_is_one_where_since_stands_elsewhere() -> None:
    assert parse("14:30", NOW, BERLIN, after_since=True) == Span(HOUR, is_moment=True)
    with pytest.raises(TimeSpanError, match="may be a time of day or hours"):
        parse("9", NOW, BERLIN, after_since=True)


@pytest.mark.parametrize("words", ["one", "monday", "someone h", "2 hours", "often days", "1.5½ h"])
def test_words_that_count_nothing_stay(words: str) -> None:
    assert in_digits(words) == words


@pytest.mark.parametrize(
    "words", ["8.9.2026", "18/11", "1.2.3h", "march 2026", "may", "2026-11-18t14:30", "marching 5"]
)
def test_words_that_are_no_date_for_certain_stay(words: str) -> None:
    assert with_iso_dates(words) == words
