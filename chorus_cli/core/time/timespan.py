"""Reads lengths of time and moments as people type them, and rounds them to a window of whole hours.

The order of the steps matters: first numbers become digits and dates become ISO 8601. Then ambiguous texts are refused,
because the libraries guess: pytimeparse takes ``1:30`` for ninety seconds. A bare number is hours. A text that is not
a length of time may name a moment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Literal

from pytimeparse.timeparse import timeparse

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.text.phrases import quoted
from chorus_cli.core.time.moments import (
    IN_FUTURE,
    ZERO,
    corrected,
    in_digits,
    is_day,
    named_moment,
    refusal,
    with_iso_dates,
)
from chorus_cli.core.time.timeline import MAXIMUM_CONTEXT_HOURS, MINIMUM_CONTEXT_HOURS
from chorus_cli.core.time.timestamps import ALL, WindowHours

_SECONDS_PER_HOUR = 3600
_SHORTEST_SECONDS = 1e-6
_LONGEST_TEXT = 100
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_AROUND = (
    (
        re.compile(
            r"^(?:(?:about|around|roughly|up to|at (?:most|least)|max|only|just(?! now$)|(?:go )?back(?: to)?"
            r"|earlier(?= today)) )+"
        ),
        "",
    ),
    (re.compile(r"(?:,? please| of (?:context|history)| (?:to|until|till) now){1,3}$"), ""),
)
_SINCE = re.compile(r"^(?:(?:since|from) )+")
_FORTNIGHTS = re.compile(r"(?<!\d)(\d+(?:\.\d*)?) ?fortnights?(?![^\W_])")

_TOO_FAR = "reaches back before the calendar begins; write less, as in 7d."

_LAST = r"(?:the )?(?:last|past|previous)"
_TRIMMED = (
    (re.compile(rf"^(?:(?:for|over|during|within|in(?= {_LAST} )) )+"), ""),
    (re.compile(rf"^{_LAST} (?=[\d.]|an? |half )"), ""),
    (re.compile(rf"^{_LAST} (?=(?:fortnight|week|day|hour|minute)$)"), "1 "),
    (re.compile(r"(?<=.) (?:ago|back)$"), ""),
)
_DAYS_IN_ISO = r"((?:[\d.]+w)?(?:[\d.]+d)?)"
_CLOCK_IN_ISO = r"t(?=\d)((?:[\d.]+h)?(?:[\d.]+m)?(?:[\d.]+s)?)"
_REWRITTEN = (
    (re.compile(rf"^p(?=[\dt]){_DAYS_IN_ISO}(?:{_CLOCK_IN_ISO})?$"), r"\1\2"),
    (re.compile(r"(?<=\d),(?=\d)"), "."),
    (re.compile(r"(?<=[^\W\d_]) and (?=[\d.])"), " "),
    (re.compile(r"\b(?:an? )?half (?:an? )?(?=[^\W\d_])"), "0.5 "),
    (re.compile(r"\b(?:an? )?quarter (?:of )?(?:an? )?(?=hour)"), "0.25 "),
    (re.compile(r"\ban? (?=[^\W\d_])"), "1 "),
    (re.compile(r"(?<=\d) ?h(?:ours?|rs?)? ?(\d{1,2})$"), r"h \1m"),
)


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time to the microsecond, and whether its text was a ``bare_number`` of hours or named a moment."""

    seconds: float
    bare_number: bool = False
    is_moment: bool = False

    def before(self, now: datetime) -> datetime:
        """Return the moment this long before ``now``."""
        return now - timedelta(seconds=self.seconds)


EVERYTHING = Span(math.inf)
"""The length of a window without a cutoff."""


@dataclass(frozen=True, slots=True)
class WindowChoice:
    """A window of 1 to 168 whole hours or of everything, and a warning if a bound decided it."""

    hours: WindowHours
    warning: str | None = None


def parse(text: str, now: datetime, zone: tzinfo | None = None, *, after_since: bool = False) -> Span:
    """Read a length of time such as ``24h``, ``1h30``, ``3 days ago`` or ``8`` (hours), or a moment: ``monday 9am``.

    Days and clock times are in ``zone``; ``None`` means the system's zone. ``after_since`` says that the word
    ``since`` precedes the text, so that ``9:30`` is a time of day. Raise a ``TimeSpanError`` if no time can be read.
    """
    led, words = _words(text)
    trimmed = _rewritten(words, _TRIMMED)
    if not trimmed:
        raise TimeSpanError("No time given; write how far back to go, as in 24h.")
    reason = refusal(trimmed, after_since=(led or after_since) and trimmed == words)
    if reason is not None:
        raise TimeSpanError(f"{quoted(text)} {reason}")
    length = _FORTNIGHTS.sub(lambda found: f"{2 * float(found[1]):f} weeks", _rewritten(trimmed, _REWRITTEN))
    bare_number = _NUMBER.fullmatch(length) is not None
    seconds = float(length) * _SECONDS_PER_HOUR if bare_number else _duration(length)
    if seconds is None:
        return Span(_checked(_seconds_since(words, text, now, zone), text, now), is_moment=True)
    return Span(_checked(round(seconds, 6), text, now), bare_number=bare_number)


def until(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the moment that a text after the word ``until`` names; a day means its end, but today means ``now``."""
    span = parse(text, now, zone, after_since=True)
    end = span.before(now)
    if span.is_moment and is_day(_words(text)[1]):
        next_day = end.astimezone(zone).date() + timedelta(days=1)
        end = min(datetime.combine(next_day, time(), zone).astimezone(UTC), now)
    return end


def refuse_empty(since: datetime | None, until: datetime | None) -> None:
    """Raise `TimeSpanError` if a span of time ends before it begins."""
    if since and until and until <= since:
        raise TimeSpanError('The time after "until" must be later than the time after "since".')


def window_hours(span: Span) -> WindowChoice:
    """Round ``span`` to 1 to 168 hours, or to ``ALL``; round a length half up, and the time since a moment up."""
    if span == EVERYTHING:
        return WindowChoice(ALL)
    return _within_bounds(span.seconds, is_moment=span.is_moment)


def shifted(hours: WindowHours, span: Span, sign: Literal[1, -1]) -> WindowChoice:
    """Lengthen (``sign`` 1) or shorten (-1) a window, then round as `window_hours`; ``ALL`` raises `TimeSpanError`."""
    if isinstance(hours, str):
        raise TimeSpanError("The window is all, which has no length to change. Set one, as in /context 24h.")
    return _within_bounds(hours * _SECONDS_PER_HOUR + sign * span.seconds, is_moment=span.is_moment)


def format_span(seconds: float) -> str:
    """Write a length of time: ``24h``, ``2h 30m``, ``45s``, ``0h``, ``-1h``; ``parse`` reads positive ones back."""
    hours, below_hour = divmod(timedelta(seconds=abs(seconds)), timedelta(hours=1))
    minutes, below_minute = divmod(below_hour, timedelta(minutes=1))
    rest = f"{below_minute.total_seconds():.6f}".rstrip("0").rstrip(".")
    parts = [
        f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number not in (0, "0")
    ]
    return ("-" if seconds < 0 else "") + (" ".join(parts) or "0h")


def _words(text: str) -> tuple[bool, str]:
    """Return whether a text begins with ``since`` or ``from``, and the rest in lower case with digits and ISO dates."""
    if len(text.strip()) > _LONGEST_TEXT:
        raise TimeSpanError(f"{quoted(text.strip())} is too long for a time; write it as in 24h or 3 days ago.")
    # pytimeparse takes polynomial time over a long run of blanks.
    typed = " ".join(text.casefold().split()).strip("\"' ")
    typed = _rewritten(typed, _AROUND)
    words = _SINCE.sub("", typed)
    return words != typed, with_iso_dates(in_digits(words.removeprefix("~").lstrip()))


def _rewritten(words: str, rules: Iterable[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in rules:
        words = pattern.sub(replacement, words)
    return words


def _duration(length: str) -> float | None:
    """Return the seconds that pytimeparse reads; ``None`` for no length, and for ``1:30``, which it misreads."""
    if ":" in length:
        return None
    seconds: float | None = None
    with suppress(ValueError):  # pytimeparse 1.1.8 raises it on "1.2.3h"; newer versions return None
        seconds = timeparse(length)
    return seconds


def _seconds_since(words: str, text: str, now: datetime, zone: tzinfo | None) -> float:
    """Return the seconds since the moment that the words name, at least a microsecond."""
    try:
        moment = named_moment(words, now, zone)
    except (OverflowError, ValueError):
        raise TimeSpanError(f"{quoted(text)} {_TOO_FAR}") from None
    if moment is None:
        raise TimeSpanError(f"Cannot read {quoted(text)} as a length of time or a moment; {_advice(text, now, zone)}")
    seconds = (now.astimezone(UTC) - moment).total_seconds()
    if seconds < 0:
        raise TimeSpanError(f"{quoted(text)} {IN_FUTURE}")
    return max(round(seconds, 6), _SHORTEST_SECONDS)


def _advice(text: str, now: datetime, zone: tzinfo | None) -> str:
    """Return a question about a similar time, or examples of times if no similar time can be read."""
    meant = corrected(" ".join(text.casefold().split()).strip("\"' "))
    if meant is not None:
        with suppress(TimeSpanError):
            parse(meant, now, zone)
            return f"did you mean {quoted(meant)}? Or write it as in 24h or 3 days ago."
    return "write it as in 24h, 2 days, 1h30, 3 days ago, yesterday, monday 9am or since friday."


def _checked(seconds: float, text: str, now: datetime) -> float:
    if seconds == 0:
        raise TimeSpanError(f"{quoted(text)} {ZERO}")
    try:
        # A day more, so that the moment can be shown in any time zone.
        _ = now - timedelta(seconds=seconds, days=1)
    except OverflowError:
        raise TimeSpanError(f"{quoted(text)} {_TOO_FAR}") from None
    return seconds


def _within_bounds(seconds: float, *, is_moment: bool) -> WindowChoice:
    """Round ``seconds`` to whole hours and keep them in bounds; a moment less than an hour ago gives a warning too."""
    if is_moment:
        hours = math.ceil(seconds / _SECONDS_PER_HOUR)
        # The warning shows whole seconds.
        seconds = math.ceil(seconds)
    else:
        hours = int((seconds + _SECONDS_PER_HOUR / 2) // _SECONDS_PER_HOUR)
    if hours > MAXIMUM_CONTEXT_HOURS:
        limit = f"more than {MAXIMUM_CONTEXT_HOURS}h (7 days); using {MAXIMUM_CONTEXT_HOURS}h"
        warning = f"Warning: {format_span(seconds)} is {limit} (/context all has no cutoff)"
        return WindowChoice(MAXIMUM_CONTEXT_HOURS, warning)
    if hours < MINIMUM_CONTEXT_HOURS or (is_moment and seconds < MINIMUM_CONTEXT_HOURS * _SECONDS_PER_HOUR):
        using = f"using {MINIMUM_CONTEXT_HOURS}h"
        if seconds <= 0:
            return WindowChoice(MINIMUM_CONTEXT_HOURS, f"Warning: that would leave nothing; {using}")
        limit = f"less than {MINIMUM_CONTEXT_HOURS}h; {using}"
        return WindowChoice(MINIMUM_CONTEXT_HOURS, f"Warning: {format_span(seconds)} is {limit}")
    return WindowChoice(hours)
