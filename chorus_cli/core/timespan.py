"""How far back: reads the lengths of time and the moments that people type, and makes whole hours of them.

The order of the rules carries the meaning. What looks like a time but would be misread is refused first, each kind with
its own sentence, because the libraries guess: pytimeparse takes ``1:30`` for ninety seconds. A bare number is hours.
What is no length of time may name a moment.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Literal

from pytimeparse.timeparse import timeparse

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.moments import WEEKDAY, named_moment
from chorus_cli.core.settings import MAXIMUM_CONTEXT_HOURS, MINIMUM_CONTEXT_HOURS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, tzinfo

_SECONDS_PER_HOUR = 3600
_SHORTEST_SECONDS = 1e-6
_LONGEST_TEXT = 100
_LONGEST_ECHO = 40
_MONTH_NAMES = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_UNIT_NAMES = r"weeks?|wks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?"
_TIME_ZONES = r"utc|gmt|[ecmp][sd]t|[cew]es?t|bst|ist|jst"
_DATES_OF_ANY_ORDER = r"(?!\d{4}-\d\d-\d\d\b)\d+(?:[/-]\d+){1,2}|\d+\.\d+\.\d*"
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+")
_SMALL_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_SMALL_NUMBERS)})(?= [^\W\d_])")
_LED_TO = re.compile(r"^(?:(?:since|from) )+")

_IN_FUTURE = "lies in the future; write how far back to reach, as in 24h."
_TOO_FAR = "reaches back before the calendar begins; write less, as in 7d."

_TRIMMED = (
    (re.compile(r"^(?:(?:for|over|in(?= (?:the )?(?:last|past) )) )+"), ""),
    (re.compile(r"^(?:the )?(?:last|past) (?=[\d.]|an? |half )"), ""),
    (re.compile(r"^(?:the )?(?:last|past) (?=(?:week|day|hour|minute)$)"), "1 "),
    (re.compile(r"(?<=.) ago$"), ""),
)
_REFUSED = (
    (re.compile(r"^[-+\N{MINUS SIGN}\N{EN DASH}]"), "has a sign; a length of time has none, as in 5h."),
    (re.compile(r"^(?:(?:just|right) )?now$"), "is no time at all; write how far back to reach, as in 24h."),
    (
        re.compile(r"^(?:at )?[\d.:]*:[\d.:]*$"),
        "may be a time of day or a length of time; write today 9:30 for the one, 1h30 for the other.",
    ),
    (
        re.compile(rf"^(?:on )?(?:the )?(?:(?:last|this) )?(?:today|yesterday|{WEEKDAY})(?: at| the)? \d{{1,2}}$"),
        "has a number that may be an hour or a day of the month; write it as in monday 9am.",
    ),
    (
        re.compile(rf"(?<!\S)(?:{_DATES_OF_ANY_ORDER})(?!\S)|^0\d+[.,]\d+$|^\d+(?: \d+){{1,2}}$"),
        "may be read as a date in more than one way; write 2026-11-18 for a date, 1.5h for a length.",
    ),
    (re.compile(rf"\b(?:{_TIME_ZONES})\b|\dz$"), "names a time zone; write local time, as in monday 9am."),
    (
        re.compile(r"\b(?:mornings?|afternoons?|evenings?|nights?|tonight)\b"),
        "names a part of the day, which begins at no one time; write the hour, as in yesterday 8pm.",
    ),
    (
        re.compile(r"\bmidnight\b(?!$)|(?<!^)(?<!^at )\bmidnight$"),
        "may be either end of the day; write the day alone for its beginning, as in since monday.",
    ),
    (
        re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])"),
        "has a comma that may part thousands or decimals; write it without one, as in 1000h or 1.5h.",
    ),
    (re.compile(rf"^(?:[^\W\d_]|{_UNIT_NAMES})$"), "has no number; write one, as in 24h."),
    (
        re.compile(r"(?<![^\W\d_])(?:mos?|mths?|months?|y|yrs?|years?)(?![^\W_])"),
        "speaks of months or years, and no two are of one length; count in days or weeks, as in 30d.",
    ),
    (
        re.compile(rf"(?<![^\W\d_])(?:{_MONTH_NAMES})(?![^\W\d_])"),
        "names a month; write a date as in 2026-11-18, or count back in days, as in 30d.",
    ),
    (re.compile(r"^in |\btomorrow\b|\bnext\b|\blater\b|\bfrom now$"), _IN_FUTURE),
)
_REWRITTEN = (
    (re.compile(r"(?<=\d),(?=\d)"), "."),
    (re.compile(r"(?<=\d) ?h ?(\d{1,2})$"), r"h \1m"),
    (re.compile(r"\b(?:an? )?half (?:an? )?(?=[^\W\d_])"), "0.5 "),
    (re.compile(r"\ban? (?=[^\W\d_])"), "1 "),
    (re.compile(r"(?<=[^\W\d_]) and (?=[\d.])"), " "),
)


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time: positive, exact to the microsecond, and how it was written.

    ``bare_number`` says that no unit was given and hours were assumed, which a confirmation should mention.
    ``is_moment`` says that a moment was given, which whole hours must reach back to: they are rounded up.
    """

    seconds: float
    bare_number: bool = False
    is_moment: bool = False

    def before(self, now: datetime) -> datetime:
        """Return the moment that lies so long before ``now``."""
        return now - timedelta(seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class WindowChoice:
    """A window of whole hours, 1 to 168, and the warning due when that is not what was asked for."""

    hours: int
    warning: str | None = None


def parse(text: str, now: datetime, zone: tzinfo | None = None) -> Span:
    """Read a length of time such as ``24h``, ``1h30``, ``3 days ago`` or ``8`` (hours), or a moment: ``monday 9am``.

    Days and clock times are those of ``zone``, ``None`` for the system's local one. A length is elapsed time.

    Raises:
        TimeSpanError: it is empty, unreadable, zero, ambiguous, in the future, or reaches back beyond the calendar
            from ``now``.
    """
    words = _words(text)
    trimmed = _rewritten(words, _TRIMMED)
    _refuse(trimmed, text)
    length = _rewritten(trimmed, _REWRITTEN)
    bare_number = _NUMBER.fullmatch(length) is not None
    seconds = float(length) * _SECONDS_PER_HOUR if bare_number else _duration(length)
    if seconds is None:
        return Span(_checked(_seconds_since(words, text, now, zone), text, now), is_moment=True)
    return Span(_checked(round(seconds, 6), text, now), bare_number=bare_number)


def window_hours(span: Span) -> WindowChoice:
    """Round to whole hours, a length of time half up and the time since a moment up, and bring that within bounds."""
    return _within_bounds(span.seconds, is_moment=span.is_moment)


def shifted(hours: int, span: Span, sign: Literal[1, -1]) -> WindowChoice:
    """Make a window of ``hours`` longer (1) or shorter (-1) by ``span``: exact first, then rounded and bounded."""
    return _within_bounds(hours * _SECONDS_PER_HOUR + sign * span.seconds, is_moment=span.is_moment)


def format_span(seconds: float) -> str:
    """Write a length of time as hours, minutes and seconds: ``24h``, ``2h 30m``, ``45s``; nothing at all is ``0h``.

    ``parse`` reads it back to the same number of seconds.
    """
    hours, below_hour = divmod(timedelta(seconds=abs(seconds)), timedelta(hours=1))
    minutes, below_minute = divmod(below_hour, timedelta(minutes=1))
    rest = f"{below_minute.total_seconds():.6f}".rstrip("0").rstrip(".")
    parts = [
        f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number not in (0, "0")
    ]
    return ("-" if seconds < 0 else "") + (" ".join(parts) or "0h")


def quoted(text: str) -> str:
    """Return what was typed in quotes, fit for a sentence: at most some forty characters, all of them printable."""
    echo = repr(text)
    return echo if len(echo) <= _LONGEST_ECHO else f"{echo[:_LONGEST_ECHO]}…{echo[0]}"


def _words(text: str) -> str:
    """Return the text in small letters, singly spaced, without quotes, ``since`` and ``from``; small numbers as digits.

    Space is collapsed before any pattern sees it: pytimeparse takes polynomial time over a long run of blanks.
    """
    if len(text.strip()) > _LONGEST_TEXT:
        raise TimeSpanError(f"{quoted(text.strip())} is too long for a time; write it as in 24h or 3 days ago.")
    words = _LED_TO.sub("", " ".join(text.casefold().split()).strip("\"' "))
    return _NUMBER_WORD.sub(lambda found: str(_SMALL_NUMBERS.index(found[0]) + 1), words)


def _refuse(words: str, text: str) -> None:
    if not words:
        raise TimeSpanError("There is no time here; write how far back to reach, as in 24h.")
    for pattern, reason in _REFUSED:
        if pattern.search(words):
            raise TimeSpanError(f"{quoted(text)} {reason}")


def _rewritten(words: str, rules: Iterable[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in rules:
        words = pattern.sub(replacement, words)
    return words


def _duration(length: str) -> float | None:
    """Return the seconds that pytimeparse reads, but for its clock forms (``1:30`` would be ninety seconds)."""
    if ":" in length:
        return None
    try:
        seconds: float | None = timeparse(length)
    except ValueError:  # pytimeparse 1.1.8 lets it out on "1.2.3h"; later ones return None
        return None
    return seconds


def _seconds_since(words: str, text: str, now: datetime, zone: tzinfo | None) -> float:
    """Return the seconds since the moment that the words name; since this very moment, the least there is."""
    try:
        moment = named_moment(words, now, zone)
    except (OverflowError, ValueError):
        raise TimeSpanError(f"{quoted(text)} {_TOO_FAR}") from None
    if moment is None:
        raise TimeSpanError(
            f"Cannot read {quoted(text)} as a length of time or a moment; what works looks like 24h, 2 days, 1h30, "
            "3 days ago, yesterday, monday 9am or since friday."
        )
    seconds = (now.astimezone(UTC) - moment).total_seconds()
    if seconds < 0:
        raise TimeSpanError(f"{quoted(text)} {_IN_FUTURE}")
    return max(round(seconds, 6), _SHORTEST_SECONDS)


def _checked(seconds: float, text: str, now: datetime) -> float:
    if seconds == 0:
        raise TimeSpanError(f"{quoted(text)} is no time at all; write how far back to reach, as in 24h.")
    try:
        # A day more, so that the moment can be shown in any time zone.
        _ = now - timedelta(seconds=seconds, days=1)
    except OverflowError:
        raise TimeSpanError(f"{quoted(text)} {_TOO_FAR}") from None
    return seconds


def _within_bounds(seconds: float, *, is_moment: bool) -> WindowChoice:
    """Bring ``seconds`` to whole hours within bounds; what is less than an hour since a moment is warned of as well."""
    if is_moment:
        hours = math.ceil(seconds / _SECONDS_PER_HOUR)
        # Nobody reads the microseconds since a moment.
        seconds = math.ceil(seconds)
    else:
        hours = int((seconds + _SECONDS_PER_HOUR / 2) // _SECONDS_PER_HOUR)
    if hours > MAXIMUM_CONTEXT_HOURS:
        limit = f"more than {MAXIMUM_CONTEXT_HOURS}h (7 days); using {MAXIMUM_CONTEXT_HOURS}h"
        return WindowChoice(MAXIMUM_CONTEXT_HOURS, f"Warning: {format_span(seconds)} is {limit}")
    if hours < MINIMUM_CONTEXT_HOURS or (is_moment and seconds < MINIMUM_CONTEXT_HOURS * _SECONDS_PER_HOUR):
        limit = f"less than {MINIMUM_CONTEXT_HOURS}h; using {MINIMUM_CONTEXT_HOURS}h"
        return WindowChoice(MINIMUM_CONTEXT_HOURS, f"Warning: {format_span(max(seconds, 0))} is {limit}")
    return WindowChoice(hours)
