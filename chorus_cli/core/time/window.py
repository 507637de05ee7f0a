"""The window: the hours that a context reaches back, in elapsed time, so that clock changes do not bend it."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

MINIMUM_CONTEXT_HOURS = 1
MAXIMUM_CONTEXT_HOURS = 168

_HOURS_PER_DAY = 24
_SHORT_WINDOW_HOURS = 12


def cutoff(now: datetime, context_hours: float) -> datetime:
    """Return the moment that a window reaches back to."""
    return now.astimezone(UTC) - timedelta(hours=context_hours)


def window_reaching(age: timedelta) -> int:
    """Return the hours of a window for messages of this ``age``, rounded up to whole days beyond half a day."""
    hours = age // timedelta(hours=1) + 1
    if hours > _SHORT_WINDOW_HOURS:
        hours = -(-hours // _HOURS_PER_DAY) * _HOURS_PER_DAY
    return min(hours, MAXIMUM_CONTEXT_HOURS)
