"""The moments that people name: ``today``, ``last monday``, ``monday 9am``, ``2026-11-18 14:30``, ``march 17``.

``with_iso_dates`` rewrites the dates in a text as ISO 8601; ``named_moment`` reads the moment that the result names.

dateparser reads the moments, but it misreads many texts: ``5`` as a day in May, and ``2026-11-12 noon`` as another day
of November in the time zone -12. So it gets only phrases of a known form, each in the one spelling that tests have
shown to be read correctly.

Clock times are local times of a zone. If a time occurs twice, because the clock is set back, the first one is meant.
If a time is skipped, because the clock is set forward, it is read as if the clock had not changed. So a skipped
midnight is the moment at which the day begins.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)

_MONTHS_OF_A_YEAR = 12
_LETTERS_OF_A_MONTH = 3
_DAY_OF_MONTH = r"(?:the )?(?P<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:,? (?P<year>(?:19|20)[0-9]{2}))?"
_NAMED_MONTHS = (
    re.compile(rf"(?<!\S){_DAY_OF_MONTH} (?:of )?(?P<month>{MONTH}){_YEAR}(?=[ ,]|$)"),
    re.compile(rf"(?<!\S)(?P<month>{MONTH}) {_DAY_OF_MONTH}{_YEAR}(?=[ ,]|$)"),
)
_YEAR_FIRST = re.compile(r"(?<!\S)([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})(?=[ ,]|t[0-9]|$)")
_YEAR_LAST = re.compile(r"(?<!\S)([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})(?=[ ,]|$)")
_UNIT_NAMES = r"(?:fortnights?|weeks?|wks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?)"
_ABBREVIATED = (
    (re.compile(r"(?<![^\W\d_])([ap])\.m\.?(?![^\W_])"), r"\1m"),
    (re.compile(r"(?<=[^\W\d_])\.(?=[ ,]|$)"), ""),
    (re.compile(r"^(?:the )?last night$"), "yesterday 18:00"),
    (re.compile(r"^this morning$"), "today 6:00"),
    (re.compile(r"^([0-9:]+ ?pm) (?:the )?last night$"), r"yesterday \1"),
    (re.compile(r"^(?:this week|(?:the )?(?:start|beginning) of (?:the|this) week)$"), "this monday 0:00"),
    (re.compile(r" ?@ ?"), " "),
    (re.compile(r"(?<![\d.])([0-9]{1,2})\.([0-5][0-9])(?= ?[ap]m\b)"), r"\1:\2"),
    (re.compile(rf"(?<=[0-9a-z])-(?={_UNIT_NAMES}\b)"), " "),
)

WEEKDAY = r"mon(?:day)?|tue(?:s|sday)?|wed(?:s|nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"

_WEEKDAY_OF_DATE = re.compile(rf"(?<!\S)(?:{WEEKDAY}),? (?=(?:[0-9]{{4}}|-)-)")
_COMPACT_DATE = re.compile(r"(?<!\S)((?:19|20)[0-9]{2})(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])(?=[ ,]|$)")
_IN_UTC = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}t[0-9:.]+z")

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DATE = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_YEARLESS = r"--(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_COUNTED = r"(?P<count>an?|[0-9]{1,6}) (?P<unit>day|week)s? (?:ago|back)"
_DAY = (
    rf"(?:on )?(?:the )?(?P<day>today|yesterday|day before yesterday|{_COUNTED}|{_YEARLESS}|"
    rf"(?:(?P<which>last|this) )?(?P<weekday>{WEEKDAY})|{_DATE})"
)
_CLOCK = (
    r"(?:at )?(?P<clock>noon|midnight|(?:1[0-2]|0?[1-9])(?::[0-5][0-9])? ?[ap]m|"
    r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?)"
)
_FORMS = (re.compile(rf"{_DAY}(?:(?:,? |(?<=[0-9])t){_CLOCK})?"), re.compile(rf"{_CLOCK}(?:,? {_DAY})?"))
_NAMED_CLOCKS = {None: "00:00", "midnight": "00:00", "noon": "12:00"}
_DAYS_OF_A_UNIT = {"day": 1, "week": 7}
_YEARS_BETWEEN_LEAP_DAYS = 8
_ELAPSED = {"yesterday": timedelta(days=1), "day before yesterday": timedelta(days=2)}


def with_iso_dates(words: str) -> str:
    """Rewrite each unambiguous date as ISO 8601; the ``words`` are casefolded and have single spaces."""
    for pattern, replacement in _ABBREVIATED:
        words = pattern.sub(replacement, words)
    for pattern in _NAMED_MONTHS:
        words = pattern.sub(_with_month_as_number, words)
    words = _COMPACT_DATE.sub(r"\1-\2-\3", _WEEKDAY_OF_DATE.sub("", words))
    words = _YEAR_FIRST.sub(lambda found: f"{found[1]}-{found[3]:0>2}-{found[4]:0>2}", words)
    return _YEAR_LAST.sub(_with_year_first, words)


def _with_month_as_number(found: re.Match[str]) -> str:
    month = next(
        number for number, name in enumerate(MONTHS, 1) if name.startswith(found["month"][:_LETTERS_OF_A_MONTH])
    )
    return f"{found['year'] or '-'}-{month:02}-{found['day']:0>2}"


def _with_year_first(found: re.Match[str]) -> str:
    """Rewrite the date as ISO 8601 if only one of its two numbers can be the month, or if both are the same."""
    first, second = int(found[1]), int(found[3])
    if first != second and max(first, second) <= _MONTHS_OF_A_YEAR:
        return found[0]
    day, month = (second, first) if second > _MONTHS_OF_A_YEAR >= first else (first, second)
    return f"{found[4]}-{month:02}-{day:02}"


def named_moment(words: str, now: datetime, zone: tzinfo | None) -> datetime | None:
    """Return the moment, in UTC, that casefolded words with single spaces name; ``None`` if they name none.

    A day means its first moment, but ``yesterday`` means 24 hours ago. ``friday`` is the latest Friday, ``last friday``
    the latest Friday before today, and ``this friday`` the Friday of this week, which begins on Monday. ``--03-17`` is
    the latest 17 March. A future moment is returned only if the words allow no earlier moment.
    """
    if _IN_UTC.fullmatch(words):
        with suppress(ValueError):
            return datetime.fromisoformat(words.upper())
    phrase = _phrase(words)
    if phrase is None:
        return None
    if phrase["clock"] is None and phrase["day"] in _ELAPSED:
        return now.astimezone(UTC) - _ELAPSED[phrase["day"]]
    local_now = now.astimezone(zone).replace(tzinfo=None)
    clock = _NAMED_CLOCKS.get(phrase["clock"], phrase["clock"])
    latest = None
    for day in _days(phrase, local_now):
        moment = _read(f"{day} {clock}", local_now, zone)
        if moment is not None and moment <= now:
            return moment
        latest = moment or latest
    return latest


def is_day(words: str) -> bool:
    """Return whether casefolded words with single spaces name a day without a time of day."""
    phrase = _phrase(words)
    return phrase is not None and phrase["clock"] is None


def _phrase(words: str) -> re.Match[str] | None:
    return next((match for form in _FORMS if (match := form.fullmatch(words))), None)


def _days(phrase: re.Match[str], local_now: datetime) -> tuple[str, ...]:
    """Return the days that may be meant, the latest first, in words that dateparser reads."""
    if phrase["day"] is None:
        return "today", "yesterday"
    if phrase["count"] is not None:
        count = int(phrase["count"]) if phrase["count"].isdecimal() else 1
        return (f"{local_now - timedelta(days=count * _DAYS_OF_A_UNIT[phrase['unit']]):%Y-%m-%d}",)
    if phrase["day"].startswith("--"):
        years = range(local_now.year, max(local_now.year - _YEARS_BETWEEN_LEAP_DAYS - 1, 0), -1)
        return tuple(f"{year:04}{phrase['day'][1:]}" for year in years)
    if phrase["weekday"] is None:
        return (phrase["day"],)
    return _weekdays(phrase["weekday"], phrase["which"], local_now)


def _weekdays(weekday: str, which: str | None, local_now: datetime) -> tuple[str, ...]:
    number = next(number for number, name in enumerate(WEEKDAYS) if name.startswith(weekday[:3]))
    name = WEEKDAYS[number]
    if which == "this" and number >= local_now.weekday():
        return (f"this {name}",)
    if which == "last" or number != local_now.weekday():
        return (name,)
    return "today", name


def _read(phrase: str, local_now: datetime, zone: tzinfo | None) -> datetime | None:
    """Let dateparser read a phrase as a local time, and return the moment in UTC; ``None`` if there is no such day.

    The zone is attached here: dateparser would use the present offset, and fails if the zone is a POSIX rule.
    """
    import dateparser  # noqa: PLC0415 - an eighth of a second that most times do not need

    settings = {"PREFER_DATES_FROM": "past", "RELATIVE_BASE": local_now, "DATE_ORDER": "YMD", "TIMEZONE": "UTC"}
    read: datetime | None = dateparser.parse(phrase, languages=["en"], settings=settings)
    if read is None:
        return None
    # In the system's zone, timestamp() reads a skipped time on the old clock; astimezone() would read it on the new.
    return datetime.fromtimestamp(read.timestamp(), UTC) if zone is None else read.replace(tzinfo=zone).astimezone(UTC)


_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen"),
    *("fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
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

_QUOTIENT = re.compile(rf"(?<![\d/.,])(?:(\d+) )?(\d)/([1-9])(?: of)?(?: an?)? ?(?={_UNIT_NAMES}\b)")
_HALF_PAST = re.compile(rf"^half past (\d{{1,2}}|{'|'.join(_NUMBER_WORDS)})\b")
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

_TIME_ZONES = r"utc|gmt|[ecmp][sd]t|[cew]es?t|bst|ist|jst"
_DATES_OF_ANY_ORDER = r"(?!\d{4}-\d\d-\d\d\b)\d+(?:[/-]\d+){1,2}|\d+\.\d+\.\d*"
_DAY_AND_MONTH = r"(?:[1-9]|[12]\d|3[01])[.,](?:0[1-9]|1[0-2])"

_CLOCK_OR_LENGTH = (
    re.compile(r"^[\d.]*:[\d.:]*$"),
    "may be a time of day or a length of time; write today 9:30 or 1h30.",
)
_CLOCK_OR_HOURS = (
    re.compile(r"^(?:at )?(?:\d+(?:[.,]\d*)?|[.,]\d+)$"),
    "has a number that may be a time of day or hours; write since 9:00 or 9h.",
)
_REFUSED = (
    (
        re.compile(r"^(?!--\d\d-\d\d(?!\d))[-+\N{MINUS SIGN}\N{EN DASH}]"),
        "begins with + or -, which only /context takes, as in /context -5h; write 5h here.",
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
    (
        re.compile(rf"\b(?:{_TIME_ZONES})\b|^(?!\d+-\d\d-\d\dt).*\dz$"),
        "names a time zone; write local time, as in monday 9am.",
    ),
    (
        re.compile(r"\b(?:mornings?|afternoons?|evenings?|nights?|tonight)\b"),
        "names a part of the day, which has no exact beginning; write the hour, as in yesterday 8pm.",
    ),
    (
        re.compile(r"\bmidnight\b(?! yesterday$|$)|(?<!^)(?<!^at )\bmidnight$"),
        "may be either end of the day; write the day alone for its beginning, as in since monday.",
    ),
    (
        re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])"),
        "has a comma that may separate thousands or decimals; write it without one, as in 1000h or 1.5h.",
    ),
    (re.compile(rf"^(?:[^\W\d_]|{_UNIT_NAMES})$"), "has no number; write one, as in 24h."),
    (
        re.compile(r"(?<![^\W\d_])(?:mos?|mths?|months?|y|yrs?|years?)(?![^\W_])|^p\d+m"),
        "counts in months or years, which vary in length; count in days or weeks, as in 7d.",
    ),
    (
        re.compile(rf"(?<![^\W\d_])(?:{MONTH})(?![^\W\d_])"),
        "names a month; write a date as in 2026-11-18, or count back in days, as in 7d.",
    ),
    (
        re.compile(r"^(?:all|everything|forever|max(?:imum)?)$"),
        "has no length; write one, as in 168h (7 days).",
    ),
    (re.compile(r"\b(?:messages?|turns?)$"), "counts messages, but a window is a length of time; write it as in 24h."),
    (re.compile(r"^in |\btomorrow\b|\bnext\b|\blater\b|\bfrom now$"), IN_FUTURE),
)


def in_digits(words: str) -> str:
    """Return casefolded words with single spaces, their numbers written in digits: a few is 3, a couple is 2."""
    words = _HALF_PAST.sub(lambda found: f"at {_VALUES.get(found[1], found[1])}:30", words)
    words = _QUOTIENT.sub(lambda found: f"{int(found[1] or 0) + int(found[2]) / int(found[3]):g} ", words)
    words = _FRACTION.sub(lambda found: f"{found[1] or 0}{_DECIMALS[found[2]]}", words)
    words = _NUMBER_WORD.sub(lambda found: str(sum(_VALUES[word] for word in found.groups() if word)), words)
    words = _AND_A_HALF.sub(r"\1.5", words)
    return _UNIT_AND_A_HALF.sub(_unit_and_a_half, words)


def _unit_and_a_half(found: re.Match[str]) -> str:
    number = found["number"]
    return f"{number if number and number.isdecimal() else 1}.5 {found['unit']}"


def corrected(words: str) -> str | None:
    """Return casefolded words with typing errors corrected; ``None`` without errors, or for more than eight words."""
    if len(words.split()) > _MOST_WORDS:
        return None
    mended = _WORD.sub(lambda found: next(iter(get_close_matches(found[0], _KNOWN, 1, _ALIKE)), found[0]), words)
    return None if mended == words else mended


def refusal(words: str, *, after_since: bool) -> str | None:
    """Return why words are refused as a time, or ``None``; ``after_since`` allows ``9:30`` and refuses ``9``."""
    either = _CLOCK_OR_HOURS if after_since else _CLOCK_OR_LENGTH
    return next((reason for pattern, reason in (*_REFUSED, either) if pattern.search(words)), None)
