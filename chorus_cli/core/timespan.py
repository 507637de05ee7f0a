"""How far back: reads the lengths of time that people type, and makes whole hours of them.

The order of the rules carries the meaning. What looks like a time but would be misread is refused first, each kind with
its own sentence, because the libraries guess: pytimeparse takes ``1:30`` for ninety seconds. A bare number is hours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from pytimeparse.timeparse import timeparse

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.settings import MAXIMUM_CONTEXT_HOURS, MINIMUM_CONTEXT_HOURS

if TYPE_CHECKING:
    from datetime import datetime

_SECONDS_PER_HOUR = 3600
_LONGEST_TEXT = 100
_LONGEST_ECHO = 40
_MONTH_NAMES = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_UNIT_NAMES = r"weeks?|wks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?"
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+")

_TRIMMED = (
    (re.compile(r"^(?:(?:since|from|for|over|in(?= (?:the )?(?:last|past) )) )+"), ""),
    (re.compile(r"^(?:the )?(?:last|past) (?=[\d.]|an? |half )"), ""),
    (re.compile(r"^(?:the )?(?:last|past) (?=(?:week|day|hour|minute)$)"), "1 "),
    (re.compile(r"(?<=.) ago$"), ""),
)
_REFUSED = (
    (re.compile(r"^[-+\N{MINUS SIGN}\N{EN DASH}]"), "has a sign; a length of time has none, as in 5h."),
    (
        re.compile(r"^[\d.:]*:[\d.:]*$"),
        "may be a time of day or a length of time; for a length, write it as in 1h30 or 90m.",
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
        "names a month; count back in days or weeks instead, as in 30d.",
    ),
    (
        re.compile(r"^in |\btomorrow\b|\bnext\b|\blater\b|\bfrom now$"),
        "lies in the future; write how far back to reach, as in 24h.",
    ),
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
    """

    seconds: float
    bare_number: bool = False


@dataclass(frozen=True, slots=True)
class WindowChoice:
    """A window of whole hours, 1 to 168, and the warning due when that is not what was asked for."""

    hours: int
    warning: str | None = None


def parse(text: str, now: datetime) -> Span:
    """Read a length of time such as ``24h``, ``2 days``, ``1h30``, ``half an hour``, ``3 days ago`` or ``8`` (hours).

    Raises:
        TimeSpanError: it is empty, unreadable, zero, ambiguous, in the future, or reaches back beyond the calendar
            from ``now``.
    """
    words = _words(text)
    _refuse(words, text)
    length = _rewritten(words)
    bare_number = _NUMBER.fullmatch(length) is not None
    seconds = float(length) * _SECONDS_PER_HOUR if bare_number else _duration(length)
    if seconds is None:
        raise TimeSpanError(
            f"Cannot read {quoted(text)} as a length of time; what works looks like 24h, 2 days, 1h30, half an hour or "
            "3 days ago."
        )
    return Span(_checked(round(seconds, 6), text, now), bare_number=bare_number)


def window_hours(span: Span) -> WindowChoice:
    """Round a length of time half up to whole hours and bring it within bounds."""
    return _within_bounds(span.seconds)


def shifted(hours: int, span: Span, sign: Literal[1, -1]) -> WindowChoice:
    """Make a window of ``hours`` longer (1) or shorter (-1) by ``span``: exact first, then rounded and bounded."""
    return _within_bounds(hours * _SECONDS_PER_HOUR + sign * span.seconds)


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
    """Return the text in small letters, singly spaced, without quotes and without the words that only lead to it.

    Space is collapsed before any pattern sees it: pytimeparse takes polynomial time over a long run of blanks.
    """
    if len(text.strip()) > _LONGEST_TEXT:
        raise TimeSpanError(f"{quoted(text.strip())} is too long for a time; write it as in 24h or 3 days ago.")
    words = " ".join(text.casefold().split()).strip("\"' ")
    for pattern, replacement in _TRIMMED:
        words = pattern.sub(replacement, words)
    return words


def _refuse(words: str, text: str) -> None:
    if not words:
        raise TimeSpanError("There is no time here; write how far back to reach, as in 24h.")
    for pattern, reason in _REFUSED:
        if pattern.search(words):
            raise TimeSpanError(f"{quoted(text)} {reason}")


def _rewritten(words: str) -> str:
    for pattern, replacement in _REWRITTEN:
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


def _checked(seconds: float, text: str, now: datetime) -> float:
    if seconds == 0:
        raise TimeSpanError(f"{quoted(text)} is no time at all; write how far back to reach, as in 24h.")
    try:
        # A day more, so that the moment can be shown in any time zone.
        _ = now - timedelta(seconds=seconds, days=1)
    except OverflowError:
        raise TimeSpanError(f"{quoted(text)} reaches back before the calendar begins; write less, as in 7d.") from None
    return seconds


def _within_bounds(seconds: float) -> WindowChoice:
    hours = int((seconds + _SECONDS_PER_HOUR / 2) // _SECONDS_PER_HOUR)
    if hours > MAXIMUM_CONTEXT_HOURS:
        limit = f"more than {MAXIMUM_CONTEXT_HOURS}h (7 days); using {MAXIMUM_CONTEXT_HOURS}h"
        return WindowChoice(MAXIMUM_CONTEXT_HOURS, f"Warning: {format_span(seconds)} is {limit}")
    if hours < MINIMUM_CONTEXT_HOURS:
        limit = f"less than {MINIMUM_CONTEXT_HOURS}h; using {MINIMUM_CONTEXT_HOURS}h"
        return WindowChoice(MINIMUM_CONTEXT_HOURS, f"Warning: {format_span(seconds)} is {limit}")
    return WindowChoice(hours)
