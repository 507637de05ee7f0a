"""Moments: as the log stores them (UTC text of fixed width, so that text order is time order), and in local time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeAlias

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
"""The moment that replaces a time that cannot be read."""

BEGINNING = datetime(1000, 1, 1, tzinfo=UTC)
"""The start of a window without a cutoff: it is before every message, and its year has four digits in SQL too."""

ALL = "all"
WindowHours: TypeAlias = "int | str"
"""The reach of a window: whole hours, or ``ALL`` if no message is too old for it."""


def to_text(moment: datetime) -> str:
    """Write an aware moment as ``YYYY-MM-DDTHH:MM:SS.ffffffZ``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def local(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """Return a moment in ``zone``, ``None`` for the system's zone; in UTC if the calendar has no such local time."""
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):
        return moment.astimezone(UTC)


def from_text(text: str) -> datetime:
    """Read a moment in ISO 8601 as aware UTC; without a zone it is UTC. Raise a ``ValueError`` for any other text."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def in_hours(window: WindowHours) -> str:
    """Write the reach of a window: ``24h``, or ``all``."""
    return window if isinstance(window, str) else f"{window}h"


def cutoff(now: datetime, window: float | str) -> datetime:
    """Return the moment, in UTC, at which a window begins; ``window`` is in hours, or ``ALL``."""
    if isinstance(window, str):
        return BEGINNING
    return now.astimezone(UTC) - timedelta(hours=window)
