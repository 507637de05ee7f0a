"""Moments as the log writes them: UTC text of fixed width, so that text order is time order."""

from __future__ import annotations

from datetime import UTC, datetime


def to_text(moment: datetime) -> str:
    """Write an aware moment as ``YYYY-MM-DDTHH:MM:SS.ffffffZ``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str) -> datetime:
    """Read a moment back as aware UTC; fewer digits of the second and a missing zone (UTC) are accepted.

    Raises:
        ValueError: the text is no moment.
    """
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
