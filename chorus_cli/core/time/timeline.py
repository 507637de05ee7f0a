"""Windows and periods of time: in hours, in words, and drawn as a line that shows messages and a boundary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

UNSENT_KEPT = timedelta(days=7)
"""How long a draft or an unsent text is kept after its last change; it stays longer only while its process runs."""

BOUNDARY = "│"
NOTHING = "·"
_SECONDS_OF_AN_HOUR = 3600
_HEIGHTS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def timeline(counts: Sequence[int], boundary_slot: int | None = None) -> str:
    """Draw one character per slot: a block whose height shows the count, or a line at the boundary."""
    highest = max(counts, default=0)
    signs = [_HEIGHTS[-(-count * len(_HEIGHTS) // highest) - 1] if count else NOTHING for count in counts]
    if boundary_slot is not None:
        signs[boundary_slot] = BOUNDARY
    return "".join(signs)


def counts_by_slot(moments: Iterable[datetime], since: datetime, until: datetime, slots: int) -> list[int]:
    """Count the moments in each of ``slots`` equal parts of the time after ``since`` and up to ``until``."""
    counts = [0] * slots
    for moment in moments:
        slot = slot_of(moment, since, until, slots)
        if slot is not None:
            counts[slot] += 1
    return counts


def slot_of(moment: datetime, since: datetime, until: datetime, slots: int) -> int | None:
    """Return the 0-based slot of a moment; ``None`` unless it is after ``since`` and not after ``until``."""
    if not since < moment <= until:
        return None
    return min(int((moment - since) / (until - since) * slots), slots - 1)


def gap(elapsed: timedelta) -> str:
    """Write a pause in days, hours and minutes, at most two of these, the largest first: ``3 d 4 h``, ``7 h 12 m``."""
    minutes = int(elapsed.total_seconds() // 60)
    parts = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "m")]
    return " ".join([f"{number} {unit}" for number, unit in parts if number][:2]) or "0 m"


def age(elapsed: timedelta) -> str:
    """Write how long ago something was, in the largest unit only: ``3 d``, ``14 h``; a future moment is ``0 m``."""
    number, unit, *_ = gap(max(elapsed, timedelta())).split()
    return f"{number} {unit}"


def duration(elapsed: timedelta, tenths_below: float = 0) -> str:
    """Write a length of time: ``14 s``, ``3 m 14 s``, ``7 h 12 m``, or ``0.4 s`` below ``tenths_below`` seconds."""
    if 0 <= elapsed.total_seconds() < tenths_below:
        return f"{elapsed.total_seconds():.1f} s"
    seconds = max(0, int(elapsed.total_seconds()))
    if seconds >= _SECONDS_OF_AN_HOUR:
        return gap(elapsed)
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} m {rest} s" if minutes else f"{rest} s"


def bar(share: float, width: int) -> str:
    """Draw a share, 0 to 1, as a bar of at most ``width`` characters; any share above zero is visible."""
    eighths = min(max(round(share * width * 8), 1 if share > 0 else 0), width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + _EIGHTHS[rest].strip()


MINIMUM_CONTEXT_HOURS = 1
MAXIMUM_CONTEXT_HOURS = 168

_HOURS_PER_DAY = 24
_SHORT_WINDOW_HOURS = 12


def window_reaching(age: timedelta) -> int:
    """Return the hours of a window that reaches messages of this ``age``: up to 12, or else whole days up to 7."""
    hours = age // timedelta(hours=1) + 1
    if hours > _SHORT_WINDOW_HOURS:
        hours = -(-hours // _HOURS_PER_DAY) * _HOURS_PER_DAY
    return min(hours, MAXIMUM_CONTEXT_HOURS)
