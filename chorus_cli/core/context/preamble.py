"""What the model is told before a user's message: things that change from turn to turn.

It is computed once, when the turn opens, and stored with the message, so that every later request repeats it byte for
byte and a provider's prompt cache stays warm.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

NOTICEABLE_GAP = timedelta(hours=1)


def preamble(last_spoken: datetime | None, now: datetime, *, clock: bool) -> str:
    """Return the line in brackets that stands before a message, empty when there is nothing to tell.

    ``now`` is aware and local, because the model is told the time that the user sees. A clock that was set back makes
    no gap.
    """
    if not clock or last_spoken is None or now - last_spoken <= NOTICEABLE_GAP:
        return ""
    return f"[{gap(now - last_spoken)} later: {now:%A} {now.day} {now:%B %Y}, {now:%H:%M}]"


def pause_notice(last_spoken: datetime | None, now: datetime) -> str:
    """Say in a line to the user what the model is told: ``7 h 12 m later, Tue 08:03``."""
    return f"{gap(now - last_spoken)} later, {now:%a %H:%M}" if last_spoken else ""


def gap(elapsed: timedelta) -> str:
    """Write a pause as days, hours and minutes, the largest two of them: ``3 d 4 h``, ``7 h 12 m``."""
    minutes = int(elapsed.total_seconds() // 60)
    parts = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "m")]
    shown = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(shown[:2]) or "0 m"
