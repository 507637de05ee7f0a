"""The moments that people name: ``today``, ``last monday``, ``monday 9am``, ``2026-11-18 14:30``.

dateparser reads them, but it has an answer to nearly everything: to it ``5`` is a day in May, and ``2026-11-12 noon``
is the 20th in the time zone -12. So only phrases of a known form reach it, each written in the one way that it was
measured to read right.

Clock times are those of a zone. One that comes twice, when the clock is set back, is the first of the two. One that is
skipped, when the clock is set forward, counts as if it had not been set yet, so that a skipped midnight is the moment
at which the day begins.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import tzinfo

WEEKDAY = r"mon(?:day)?|tue(?:s|sday)?|wed(?:s|nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DATE = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_DAY = (
    r"(?:on )?(?:the )?(?P<day>today|yesterday|day before yesterday|"
    rf"(?:(?P<which>last|this) )?(?P<weekday>{WEEKDAY})|{_DATE})"
)
_CLOCK = (
    r"(?:at )?(?P<clock>noon|midnight|(?:1[0-2]|0?[1-9])(?::[0-5][0-9])? ?[ap]m|"
    r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?)"
)
_FORMS = (re.compile(rf"{_DAY}(?:(?:,? |(?<=[0-9])t){_CLOCK})?"), re.compile(rf"{_CLOCK}(?:,? {_DAY})?"))
_NAMED_CLOCKS = {None: "00:00", "midnight": "00:00", "noon": "12:00"}
_ELAPSED = {"yesterday": timedelta(days=1), "day before yesterday": timedelta(days=2)}


def named_moment(words: str, now: datetime, zone: tzinfo | None) -> datetime | None:
    """Return in UTC the moment that casefolded, singly spaced words name; ``None`` if they name none.

    A day is its first moment, but ``yesterday`` is 24 elapsed hours ago. ``monday`` is the latest Monday, today
    included unless that is in the future; ``last monday`` is the latest before today; ``this monday`` is that of the
    week, which begins on Mondays. What lies in the future is returned when the words allow nothing else.

    Raises:
        OverflowError, ValueError: the calendar has no such moment in this zone.
    """
    phrase = next((match for form in _FORMS if (match := form.fullmatch(words))), None)
    if phrase is None:
        return None
    if phrase["clock"] is None and phrase["day"] in _ELAPSED:
        return now.astimezone(UTC) - _ELAPSED[phrase["day"]]
    local_now = now.astimezone(zone).replace(tzinfo=None)
    clock = _NAMED_CLOCKS.get(phrase["clock"], phrase["clock"])
    moments = [_read(f"{day} {clock}", local_now, zone) for day in _days(phrase, local_now)]
    return next((moment for moment in moments if moment is not None and moment <= now), moments[-1])


def _days(phrase: re.Match[str], local_now: datetime) -> tuple[str, ...]:
    """Return the days that may be meant, the latest first, in words that dateparser counts back from."""
    if phrase["day"] is None:
        return "today", "yesterday"
    if phrase["weekday"] is None:
        return (phrase["day"],)
    number = next(number for number, name in enumerate(_WEEKDAYS) if name.startswith(phrase["weekday"][:3]))
    name = _WEEKDAYS[number]
    if phrase["which"] == "this" and number >= local_now.weekday():
        return (f"this {name}",)
    if phrase["which"] == "last" or number != local_now.weekday():
        return (name,)
    return "today", name


def _read(phrase: str, local_now: datetime, zone: tzinfo | None) -> datetime | None:
    """Let dateparser read a phrase as a local time and return that in UTC; ``None`` if there is no such day.

    The zone is attached here: dateparser would give the moment the offset that holds now. It is told a zone all the
    same, because it would look for the system's and fail over one that is a rule (``TZ=CET-1CEST``).
    """
    import dateparser  # noqa: PLC0415 - an eighth of a second that most times do not need

    settings = {"PREFER_DATES_FROM": "past", "RELATIVE_BASE": local_now, "DATE_ORDER": "YMD", "TIMEZONE": "UTC"}
    read: datetime | None = dateparser.parse(phrase, languages=["en"], settings=settings)
    if read is None:
        return None
    # The system's own rules count a skipped time on the old clock; astimezone() would count it on the new one.
    return datetime.fromtimestamp(read.timestamp(), UTC) if zone is None else read.replace(tzinfo=zone).astimezone(UTC)
