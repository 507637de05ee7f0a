"""Dates and times of day as people write them, put into the one order of ISO 8601: ``2026-03-17``, ``--03-17``.

The second has no year, as in ``March 17``. A date that can be read in more than one way, ``8.9.2026``, stays as it is.
"""

from __future__ import annotations

import re

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)

_MONTHS_OF_A_YEAR = 12
_LETTERS_OF_A_MONTH = 3
_DAY = r"(?:the )?(?P<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:,? (?P<year>(?:19|20)[0-9]{2}))?"
_NAMED_MONTHS = (
    re.compile(rf"(?<!\S){_DAY} (?:of )?(?P<month>{MONTH}){_YEAR}(?=[ ,]|$)"),
    re.compile(rf"(?<!\S)(?P<month>{MONTH}) {_DAY}{_YEAR}(?=[ ,]|$)"),
)
_YEAR_FIRST = re.compile(r"(?<!\S)([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})(?=[ ,]|t[0-9]|$)")
_YEAR_LAST = re.compile(r"(?<!\S)([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})(?=[ ,]|$)")
_REWRITTEN = (
    (re.compile(r"(?<![^\W\d_])([ap])\.m\.?(?![^\W_])"), r"\1m"),
    (re.compile(r"(?<=[^\W\d_])\.(?=[ ,]|$)"), ""),
    (re.compile(r"^(?:the )?last night$"), "yesterday 18:00"),
    (re.compile(r"^this morning$"), "today 6:00"),
)


def in_order(words: str) -> str:
    """Return casefolded, singly spaced words in which each date with one meaning is written as in ISO 8601.

    The dot behind an abbreviation goes. ``last night`` begins at 18:00 of yesterday, ``this morning`` at 6:00.
    """
    for pattern, replacement in _REWRITTEN:
        words = pattern.sub(replacement, words)
    for pattern in _NAMED_MONTHS:
        words = pattern.sub(_with_month_as_number, words)
    words = _YEAR_FIRST.sub(lambda found: f"{found[1]}-{found[3]:0>2}-{found[4]:0>2}", words)
    return _YEAR_LAST.sub(_with_year_first, words)


def _with_month_as_number(found: re.Match[str]) -> str:
    month = next(
        number for number, name in enumerate(MONTHS, 1) if name.startswith(found["month"][:_LETTERS_OF_A_MONTH])
    )
    return f"{found['year'] or '-'}-{month:02}-{found['day']:0>2}"


def _with_year_first(found: re.Match[str]) -> str:
    """Write day and month in order if only one of the two numbers can be a month, or if both are the same."""
    first, second = int(found[1]), int(found[3])
    if first != second and max(first, second) <= _MONTHS_OF_A_YEAR:
        return found[0]
    day, month = (second, first) if second > _MONTHS_OF_A_YEAR >= first else (first, second)
    return f"{found[4]}-{month:02}-{day:02}"
