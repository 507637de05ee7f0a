"""The window: the hours that a context reaches back, in elapsed time, so that clock changes do not bend it."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def cutoff(now: datetime, context_hours: float) -> datetime:
    """Return the moment that a window reaches back to."""
    return now.astimezone(UTC) - timedelta(hours=context_hours)
