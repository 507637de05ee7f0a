"""Texts that look like a time but would be misread, each kind refused with a sentence of its own.

The order carries the meaning: the first kind that fits is the one that is told.
"""

from __future__ import annotations

import re

from chorus_cli.core.time.dates import MONTH
from chorus_cli.core.time.moments import WEEKDAY

IN_FUTURE = "lies in the future; write how far back to reach, as in 24h."
NO_TIME = "is no time at all; write how far back to reach, as in 24h."

_UNIT_NAMES = r"fortnights?|weeks?|wks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?"
_TIME_ZONES = r"utc|gmt|[ecmp][sd]t|[cew]es?t|bst|ist|jst"
_DATES_OF_ANY_ORDER = r"(?!\d{4}-\d\d-\d\d\b)\d+(?:[/-]\d+){1,2}|\d+\.\d+\.\d*"
_DAY_AND_MONTH = r"(?:[1-9]|[12]\d|3[01])[.,](?:0[1-9]|1[0-2])"

_CLOCK_OR_LENGTH = (
    re.compile(r"^(?:at )?[\d.:]*:[\d.:]*$"),
    "may be a time of day or a length of time; write today 9:30 for the one, 1h30 for the other.",
)
_CLOCK_OR_HOURS = (
    re.compile(r"^(?:at )?(?:\d+(?:[.,]\d*)?|[.,]\d+)$"),
    "has a number that may be a time of day or hours; write since 9:00 for the one, 9h for the other.",
)
_REFUSED = (
    (
        re.compile(r"^(?!--\d\d-\d\d(?!\d))[-+\N{MINUS SIGN}\N{EN DASH}]"),
        "has a sign; a length of time has none, as in 5h.",
    ),
    (re.compile(r"^(?:(?:just|right) )?now$"), NO_TIME),
    (
        re.compile(r"^\d{4}$|^0\d{3} ?h(?:ours?|rs?)?$"),
        "has four digits, which may be a year, a time of day or hours; write since 14:30 or 24h.",
    ),
    (
        re.compile(
            rf"^(?:on )?(?:the )?(?:(?:last|this) )?(?:today|yesterday|{WEEKDAY}|\d+ (?:days?|weeks?) ago)"
            r"(?: at| the)? \d{1,2}$"
        ),
        "has a number that may be an hour or a day of the month; write it as in monday 9am.",
    ),
    (
        re.compile(rf"(?<!\S)(?:{_DATES_OF_ANY_ORDER})(?!\S)|^0\d+[.,]\d+$|^{_DAY_AND_MONTH}$|^\d+(?: \d+){{1,2}}$"),
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
        re.compile(r"(?<![^\W\d_])(?:mos?|mths?|months?|y|yrs?|years?)(?![^\W_])|^p\d+m"),
        "speaks of months or years, and no two are of one length; count in days or weeks, as in 30d.",
    ),
    (
        re.compile(rf"(?<![^\W\d_])(?:{MONTH})(?![^\W\d_])"),
        "names a month; write a date as in 2026-11-18, or count back in days, as in 30d.",
    ),
    (re.compile(r"^in |\btomorrow\b|\bnext\b|\blater\b|\bfrom now$"), IN_FUTURE),
)


def refusal(words: str, *, after_since: bool) -> str | None:
    """Return the reason why casefolded, singly spaced words are no time for certain, as the end of a sentence.

    ``after_since`` says that ``since`` or ``from`` led to them: ``9:30`` is a time of day then, and ``9`` may be one.
    """
    either = _CLOCK_OR_HOURS if after_since else _CLOCK_OR_LENGTH
    return next((reason for pattern, reason in (*_REFUSED, either) if pattern.search(words)), None)
