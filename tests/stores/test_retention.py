"""Which daily backups are kept."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.stores.backup.archive import DAILY, WEEKLY, kept_days

SUNDAY = date(2026, 11, 22)


def days(*ages: int) -> set[date]:
    return {SUNDAY - timedelta(age) for age in ages}


@pytest.mark.parametrize(
    ("there", "remaining"),
    [
        (days(), days()),
        (days(*range(7)), days(*range(7))),
        (days(*range(8)), days(*range(8))),
        (days(*range(60)), days(*range(7), 7, 14, 21, 28)),
        (days(0, 100, 200, 300), days(0, 100, 200, 300)),
        (days(*range(0, 70, 7)), days(0, 7, 14, 21, 28, 35, 42, 49, 56, 63)),
        (days(*range(0, 84, 7)), days(*range(0, 77, 7))),
        (days(*range(2, 60)), days(*range(2, 9), 14, 21, 28, 35)),
    ],
    ids=["none", "a week", "eight days", "two months", "seldom", "weekly", "weekly for long", "from a Friday on"],
)
def test_seven_daily_and_four_weekly_backups_are_kept(there: set[date], remaining: set[date]) -> None:
    assert kept_days(there) == remaining


@given(st.sets(st.dates(date(2024, 1, 1), date(2027, 1, 1)), max_size=60))
def test_no_more_are_kept_and_the_newest_always_are(there: set[date]) -> None:
    remaining = kept_days(there)
    assert remaining <= there
    assert len(remaining) <= DAILY + WEEKLY
    assert {*sorted(there)[-DAILY:]} <= remaining


def test_a_backup_of_every_day_reaches_four_weeks_back() -> None:
    """Each day the new backup comes and those that are not kept go, as it is in use."""
    remaining: frozenset[date] = frozenset()
    for age in range(200, -1, -1):
        remaining = kept_days({*remaining, SUNDAY - timedelta(age)})
    assert len(remaining) == DAILY + WEEKLY
    assert min(remaining) <= SUNDAY - timedelta(weeks=4)
