"""Hours are elapsed hours in every time zone, also where its clock is changed."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from chorus_cli.core.time.timespan import parse
from tests.core.time.reading_time import BERLIN, HOUR, moment_of, printed

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
