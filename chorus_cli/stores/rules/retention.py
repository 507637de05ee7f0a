"""Daily backups to keep: the newest seven, and of the older ones the newest of each of four weeks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

DAILY = 7
WEEKLY = 4


def kept(days: Iterable[date]) -> frozenset[date]:
    """Return the days whose backups are kept."""
    newest_first = sorted({*days}, reverse=True)
    daily, older = newest_first[:DAILY], newest_first[DAILY:]
    # Of the days of a week the newest comes first; later ones do not replace it.
    weekly: dict[tuple[int, int], date] = {}
    for day in older:
        weekly.setdefault(day.isocalendar()[:2], day)
    covered = {day.isocalendar()[:2] for day in daily}
    weeks = [week for week in weekly if week not in covered][:WEEKLY]
    return frozenset(daily) | {weekly[week] for week in weeks}
