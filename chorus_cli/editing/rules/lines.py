"""Lines in the text of a context: marks, headers of messages, and lines that only look like one of these.

A line of a message that could be taken for a mark or a header is escaped: a backslash is put before it, and one more
if it has one already (the rule of mboxrd). Lines such as these look like a header, but are not written as one:

    [20x5-01-18 22:15:03] Human: a slip in the date
    2025-01-18 22:15:03] Human: a bracket that is missing

Taken for text, such a line would silently join the message above it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LineTest = Callable[[str], bool]

HUMAN = "Human"
CONTEXT_LINE = "--- context starts here ---"
END_LINE = "--- end of messages ---"

_HEADER_BEGINNING = r"\[[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CONTEXT = r"[ \t]*-+[ \t]*context starts here[ \t]*-+"
_END = r"[ \t]*-+[ \t]*end of messages[ \t]*-+"
MARK = re.compile(rf"(?P<header>{_HEADER_BEGINNING})|(?P<context>{_CONTEXT}\s*\Z)|(?P<end>{_END}\s*\Z)")
HEADER = re.compile(r"\[([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})\] ([^:]*): ?(.*)")

# Every line that begins like a mark is escaped too: a text that is cut off must not seem whole.
_LIKE_A_MARK = rf"{_HEADER_BEGINNING}|{_CONTEXT}|{_END}"
_ATTACHMENT = r"\[attachment: .*\]\s*\Z"
_TO_ESCAPE = re.compile(rf"\\*(?:{_LIKE_A_MARK}|{_ATTACHMENT})|\\+\s*\Z")
ATTACHMENT = re.compile(_ATTACHMENT)

_LEAST_DIGITS = 4
_LONGEST_HEADER = 200

# Blanks are bounded: a line of a million must not be gone through again and again.
_BLANKS = r"[ \t]{0,8}"
_BRACKETS = rf"{_BLANKS}[\[\](){{}}]{{0,2}}{_BLANKS}"
_DATE = r"\w{2,5}[-/. ]\w{1,3}[-/. ]\w{1,3}"
_CLOCK = r"\w{1,2}[:.]\w{1,2}"
_BRACKETED = rf"{_BLANKS}[\[\](){{}}]{{1,2}}{_BLANKS}(?P<bracketed>{_DATE}[ ,T\t]{{1,8}}{_CLOCK})"
_STAMP = r"(?P<stamp>\d\w{0,4}(?:[:./, \t-]{1,2}\w{0,2}\d\w{0,4}){0,6})"


def header_likeness(speakers: Iterable[str]) -> LineTest:
    """Return a test whether a line looks like a header: a date and time in brackets, or before a speaker's name.

    No line without a colon does; a loop over many lines looks for one first, which spares most of them the call.
    """
    names = "|".join(map(re.escape, speakers))
    like = re.compile(rf"{_BRACKETED}|{_BRACKETS}{_STAMP}{_BRACKETS}(?:{names}){_BLANKS}:", re.IGNORECASE)

    def looks_like_header(line: str) -> bool:
        beginning = line[:_LONGEST_HEADER]
        if ":" not in beginning:
            return False
        found = like.match(beginning)
        stamp = found and (found["bracketed"] or found["stamp"])
        return sum(map(str.isdecimal, stamp or "")) >= _LEAST_DIGITS

    return looks_like_header


def escaped(lines: Iterable[str], is_header_like: LineTest) -> list[str]:
    """Return lines of a message as they stand in the text."""
    return [f"\\{line}" if _is_to_escape(line, is_header_like) else line for line in lines]


def unescaped(lines: Iterable[str], is_header_like: LineTest) -> list[str]:
    """Return lines of the text as they stand in their message."""
    return [line[1:] if line.startswith("\\") and _is_to_escape(line, is_header_like) else line for line in lines]


def _is_to_escape(line: str, is_header_like: LineTest) -> bool:
    """Return whether a line, less its backslashes, could be taken for a mark or header, or is an escaped blank one."""
    return _TO_ESCAPE.match(line) is not None or (":" in line and is_header_like(line.lstrip("\\")))


def with_line_feeds(text: str) -> str:
    """Return ``text`` with a line feed for every carriage return, and for every pair of the two."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
