"""The preamble of a user's message: facts for the model that change from turn to turn.

It is computed once, when the turn opens, and stored with the message, so that every later request repeats it byte for
byte and a provider's prompt cache stays warm.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from chorus_cli.core.time.timeline import gap

if TYPE_CHECKING:
    from datetime import datetime

NOTICEABLE_GAP = timedelta(hours=1)


def preamble(*parts: str) -> str:
    """Return the preamble of these parts, each of one line or more or empty."""
    return "\n".join(filter(None, parts))


def gap_line(last_spoken: datetime | None, now: datetime, *, clock: bool) -> str:
    """Return the line in brackets that stands before a message, empty when there is nothing to tell.

    ``now`` is aware and local, because the model is told the time that the user sees. A clock that was set back makes
    no gap.
    """
    if not clock or last_spoken is None or now - last_spoken <= NOTICEABLE_GAP:
        return ""
    return f"[{gap(now - last_spoken)} later: {now:%A} {now.day} {now:%B %Y}, {now:%H:%M}]"


def pause_notice(last_spoken: datetime | None, now: datetime) -> str:
    """Return the same fact as a line for the user: ``7 h 12 m later, Tue 08:03``."""
    return f"{gap(now - last_spoken)} later, {now:%a %H:%M}" if last_spoken else ""
