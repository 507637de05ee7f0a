"""Lines that look like the beginning of a message in the text of a context, but are not written as one.

    [20x5-01-18 22:15:03] Human: a slip in the date
    2025-01-18 22:15:03] Human: a bracket that is missing

Taken for text, such a line would silently join the message above it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LEAST_DIGITS = 4
_LONGEST_HEADER = 200

# Blanks are bounded: a line of a million must not be gone through again and again.
_BLANKS = r"[ \t]{0,8}"
_BRACKETS = rf"{_BLANKS}[\[\](){{}}]{{0,2}}{_BLANKS}"
_DATE = r"\w{2,5}[-/. ]\w{1,3}[-/. ]\w{1,3}"
_CLOCK = r"\w{1,2}[:.]\w{1,2}"
_BRACKETED = rf"{_BLANKS}[\[\](){{}}]{{1,2}}{_BLANKS}(?P<bracketed>{_DATE}[ ,T\t]{{1,8}}{_CLOCK})"
_STAMP = r"(?P<stamp>\d\w{0,4}(?:[:./, \t-]{1,2}\w{0,2}\d\w{0,4}){0,6})"


def header_likeness(speakers: Iterable[str]) -> Callable[[str], bool]:
    """Return the test whether a line looks like a header: a date and time in a bracket, or one before a speaker."""
    names = "|".join(map(re.escape, speakers))
    like = re.compile(rf"{_BRACKETED}|{_BRACKETS}{_STAMP}{_BRACKETS}(?:{names}){_BLANKS}:", re.IGNORECASE)

    def looks_like_header(line: str) -> bool:
        beginning = line[:_LONGEST_HEADER]
        found = like.match(beginning) if ":" in beginning else None
        stamp = found and (found["bracketed"] or found["stamp"])
        return bool(stamp) and sum(map(str.isdecimal, stamp or "")) >= _LEAST_DIGITS

    return looks_like_header
