"""Moments: as the log stores them (UTC text of fixed width, so that text order is time order), and in local time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
"""The moment in place of one that cannot be read."""


def to_text(moment: datetime) -> str:
    """Write an aware moment as ``YYYY-MM-DDTHH:MM:SS.ffffffZ``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def local(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """Return a moment in local time, ``None`` being the system's zone; at the ends of the calendar it stays in UTC."""
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):
        return moment.astimezone(UTC)


def from_text(text: str) -> datetime:
    """Read a moment back as aware UTC; fewer digits of the second and a missing zone (UTC) are accepted."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def cutoff(now: datetime, context_hours: float) -> datetime:
    """Return the moment that a window reaches back to."""
    return now.astimezone(UTC) - timedelta(hours=context_hours)
