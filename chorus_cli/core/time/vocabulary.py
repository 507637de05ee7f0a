"""The words of which times are made: numbers spelt out, misspelt words, and words that are refused as ambiguous.

``in_digits`` writes numbers in digits: ``twenty-four``, ``a couple of``, ``2½``, ``an hour and a half``. ``corrected``
mends typing errors: ``yesteday``, ``3 dyas``. ``refusal`` explains why a text that looks like a time would be misread.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from chorus_cli.core.time.moments import MONTH, MONTHS, WEEKDAY, WEEKDAYS

_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBER_WORDS = (*_ONES, *_TEENS, *_TENS)

_VALUES = {
    **{word: number for number, word in enumerate((*_ONES, *_TEENS), 1)},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
    "couple": 2,
    "few": 3,
}
_DECIMALS = {"¼": ".25", "½": ".5", "¾": ".75"}
_UNITS = r"weeks?|days?|hours?|hrs?|minutes?|mins?"

_FRACTION = re.compile(r"(?<![\d.,])(\d*) ?([¼½¾])(?: an?(?= ))?")
_NUMBER_WORD = re.compile(
    rf"(?<![^\W_])(?:(?P<tens>{'|'.join(_TENS)})[- ](?P<ones>{'|'.join(_ONES)})|(?P<word>{'|'.join(_NUMBER_WORDS)})"
    r"|(?:a )?(?:(?P<couple>couple)(?: of)?|(?P<few>few)))(?= [^\W\d_])"
)
_AND_A_HALF = re.compile(r"(?<![\d.,])(\d+) and a half(?= [^\W\d_])")
_UNIT_AND_A_HALF = re.compile(rf"(?<![^\W_])(?:(?P<number>\d+|an?) )?(?P<unit>{_UNITS}) and (?:a )?half(?![^\s,])")

_WORD = re.compile(r"(?<![^\W_])[^\W\d_]{3,}(?![^\W_])")
_MOST_WORDS = 8
_ALIKE = 0.75
_KNOWN = (
    *("since", "from", "for", "over", "within", "during", "the", "last", "past", "previous", "ago", "back", "and"),
    *("week", "weeks", "day", "days", "hour", "hours", "minute", "minutes", "second", "seconds"),
    *("fortnight", "fortnights", "half", "couple", "few", "today", "yesterday", "before", "this", "morning", "night"),
    *("midnight", *WEEKDAYS, *MONTHS, *_NUMBER_WORDS),
)

IN_FUTURE = "is in the future; write how far back to go, as in 24h."
ZERO = "is zero; write how far back to go, as in 24h."
_NOW = "is the present; write how far back to go, as in 24h."

_UNIT_NAMES = r"fortnights?|weeks?|wks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?"
_TIME_ZONES = r"utc|gmt|[ecmp][sd]t|[cew]es?t|bst|ist|jst"
_DATES_OF_ANY_ORDER = r"(?!\d{4}-\d\d-\d\d\b)\d+(?:[/-]\d+){1,2}|\d+\.\d+\.\d*"
_DAY_AND_MONTH = r"(?:[1-9]|[12]\d|3[01])[.,](?:0[1-9]|1[0-2])"

_CLOCK_OR_LENGTH = (
    re.compile(r"^(?:at )?[\d.]*:[\d.:]*$"),
    "may be a time of day or a length of time; write today 9:30 or 1h30.",
)
_CLOCK_OR_HOURS = (
    re.compile(r"^(?:at )?(?:\d+(?:[.,]\d*)?|[.,]\d+)$"),
    "has a number that may be a time of day or hours; write since 9:00 or 9h.",
)
_REFUSED = (
    (
        re.compile(r"^(?!--\d\d-\d\d(?!\d))[-+\N{MINUS SIGN}\N{EN DASH}]"),
        "has a sign; write it without one, as in 5h.",
    ),
    (re.compile(r"^(?:(?:just|right) )?now$"), _NOW),
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
        "names a part of the day, which has no exact beginning; write the hour, as in yesterday 8pm.",
    ),
    (
        re.compile(r"\bmidnight\b(?!$)|(?<!^)(?<!^at )\bmidnight$"),
        "may be either end of the day; write the day alone for its beginning, as in since monday.",
    ),
    (
        re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])"),
        "has a comma that may separate thousands or decimals; write it without one, as in 1000h or 1.5h.",
    ),
    (re.compile(rf"^(?:[^\W\d_]|{_UNIT_NAMES})$"), "has no number; write one, as in 24h."),
    (
        re.compile(r"(?<![^\W\d_])(?:mos?|mths?|months?|y|yrs?|years?)(?![^\W_])|^p\d+m"),
        "counts in months or years, which vary in length; count in days or weeks, as in 30d.",
    ),
    (
        re.compile(rf"(?<![^\W\d_])(?:{MONTH})(?![^\W\d_])"),
        "names a month; write a date as in 2026-11-18, or count back in days, as in 30d.",
    ),
    (re.compile(r"^in |\btomorrow\b|\bnext\b|\blater\b|\bfrom now$"), IN_FUTURE),
)


def in_digits(words: str) -> str:
    """Return casefolded, singly spaced words with digits for the numbers among them; a few are three, a couple two."""
    words = _FRACTION.sub(lambda found: f"{found[1] or 0}{_DECIMALS[found[2]]}", words)
    words = _NUMBER_WORD.sub(_value, words)
    words = _AND_A_HALF.sub(r"\1.5", words)
    return _UNIT_AND_A_HALF.sub(_unit_and_a_half, words)


def _value(found: re.Match[str]) -> str:
    return str(sum(_VALUES[word] for word in found.groups() if word))


def _unit_and_a_half(found: re.Match[str]) -> str:
    number = found["number"]
    return f"{number if number and number.isdecimal() else 1}.5 {found['unit']}"


def corrected(words: str) -> str | None:
    """Return casefolded words with typing errors mended; ``None`` if there are none."""
    if len(words.split()) > _MOST_WORDS:
        return None
    mended = _WORD.sub(lambda found: _nearest(found[0]), words)
    return None if mended == words else mended


def _nearest(word: str) -> str:
    return word if word in _KNOWN else next(iter(get_close_matches(word, _KNOWN, 1, _ALIKE)), word)


def refusal(words: str, *, after_since: bool) -> str | None:
    """Return the reason why casefolded, singly spaced words are no time for certain, as the end of a sentence.

    ``after_since`` says that ``since`` or ``from`` led to them: ``9:30`` is a time of day then, and ``9`` may be one.
    """
    either = _CLOCK_OR_HOURS if after_since else _CLOCK_OR_LENGTH
    return next((reason for pattern, reason in (*_REFUSED, either) if pattern.search(words)), None)
