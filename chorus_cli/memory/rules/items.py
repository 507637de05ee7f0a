"""Memory items: types, tiers and scores, checks of given values, and reports of changes.

The sentences of refusal are those of the design that the memory follows, word for word.
"""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta
from enum import StrEnum
from functools import cache
from math import exp, log
from typing import TYPE_CHECKING, NamedTuple, Self

from chorus_cli.core import limits
from chorus_cli.core.errors import MemoryItemError

if TYPE_CHECKING:
    from datetime import datetime

LONGEST_CONTENT = limits.MEMORY_ITEM.most
"""Characters of the longest content."""

_WEIGHTS = {"TASK": 1.0, "CODE": 0.8, "ERROR": 0.7, "TEST_RESULT": 0.6, "PRD_SECTION": 0.5}


class ItemType(StrEnum):
    """The kind of an item's content; ``weight`` is its share of the score, from 0 to 1."""

    TASK = "TASK"
    CODE = "CODE"
    ERROR = "ERROR"
    TEST_RESULT = "TEST_RESULT"
    PRD_SECTION = "PRD_SECTION"

    weight: float

    def __new__(cls, value: str) -> Self:
        """Make a member with its weight, which a renewal asks of thousands."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.weight = _WEIGHTS[value]
        return member


class Tier(StrEnum):
    """How near to a request an item is: always in it, on reference, on demand, or put away by a flash save."""

    HOT = "HOT"
    WARM = "WARM"
    COLD = "COLD"
    ARCHIVED = "ARCHIVED"


class Item(NamedTuple):
    """One memory item: a tuple, because a renewal reads thousands.

    ``created_at`` and ``last_accessed`` are aware. ``source_message_id`` is the message it was captured from, ``None``
    for an item that was typed. ``token_count`` counts the content; ``None`` means not yet counted.
    """

    id: int
    persona: str
    item_type: ItemType
    content: str
    importance_score: float
    tier: Tier
    created_at: datetime
    last_accessed: datetime
    pinned: bool = False
    access_count: int = 0
    source_message_id: int | None = None
    token_count: int | None = None


def checked_content(text: str) -> str:
    """Return the content without the blanks around it.

    Raises:
        MemoryItemError: nothing is left, or more than 100,000 characters are.
    """
    content = text.strip()
    if not content:
        raise MemoryItemError("Content cannot be empty or whitespace-only")
    if len(content) > LONGEST_CONTENT:
        raise MemoryItemError(f"Content exceeds maximum length of {LONGEST_CONTENT} characters")
    return content


def checked_type(text: str) -> ItemType:
    """Return the type of that name, in any case and with ``-`` or a blank for ``_``.

    Raises:
        MemoryItemError: there is no such type.
    """
    try:
        return ItemType(_as_name(text))
    except ValueError:
        raise MemoryItemError(f"Invalid item type, must be one of: {', '.join(ItemType)}") from None


def checked_tier(text: str) -> Tier:
    """Return the tier of that name, in any case; ``ARCHIVED`` is one, though the sentence names those of active items.

    Raises:
        MemoryItemError: there is no such tier.
    """
    try:
        return Tier(_as_name(text))
    except ValueError:
        raise MemoryItemError("Tier must be one of: HOT, WARM, COLD") from None


def checked_score(score: float) -> float:
    """Return a score from 0 to 1.

    Raises:
        MemoryItemError: it is outside.
    """
    if not 0.0 <= score <= 1.0:
        raise MemoryItemError("Importance score must be between 0.0 and 1.0")
    return score


def content_hash(text: str) -> str:
    """Return the hash by which equal contents are known, and their token counts: 64 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def _as_name(text: str) -> str:
    return text.strip().upper().replace("-", "_").replace(" ", "_")


HOT_FROM, WARM_FROM = 0.8, 0.4

_TYPE_SHARE, _AGE_SHARE, _ACCESS_SHARE = 0.4, 0.4, 0.2
_DECAY_PER_DAY = 0.5
_LOGARITHM_OF_FULL_USE = 10
_DAY = timedelta(days=1)
_EXACT_DIGITS = 12
"""Decimal places of a score that are not noise of the sum: a microsecond of age shows in the twelfth."""


class Score(NamedTuple):
    """A score as its three weighted parts, which ``/memory show`` lists."""

    type_part: float
    age_part: float
    access_part: float

    @property
    def total(self) -> float:
        """The score, from 0 to 1."""
        return min(max(self.type_part + self.age_part + self.access_part, 0.0), 1.0)


def importance(item_type: ItemType, created_at: datetime, access_count: int, now: datetime) -> Score:
    """Return the score of an item; a negative number of accesses counts as none."""
    age_days = max(now - created_at, timedelta()) / _DAY
    use = min(log(max(access_count, 0) + 1) / _LOGARITHM_OF_FULL_USE, 1.0)
    return Score(_TYPE_SHARE * item_type.weight, _AGE_SHARE * exp(-_DECAY_PER_DAY * age_days), _ACCESS_SHARE * use)


def tier_of(score: float, *, pinned: bool = False) -> Tier:
    """Return the tier of an active item; a pinned one is HOT."""
    exact = round(score, _EXACT_DIGITS)
    if pinned or exact >= HOT_FROM:
        return Tier.HOT
    return Tier.WARM if exact >= WARM_FROM else Tier.COLD


def renewed(item: Item, now: datetime) -> Item:
    """Return an item with the score and tier of ``now``; an ARCHIVED one stays as it is."""
    if item.tier is Tier.ARCHIVED:
        return item
    score = importance(item.item_type, item.created_at, item.access_count, now).total
    return item._replace(importance_score=score, tier=tier_of(score, pinned=item.pinned))


def accessed(item: Item, now: datetime) -> Item:
    """Return an item after one more access at ``now``, renewed; an ARCHIVED one keeps its score and tier."""
    return renewed(item._replace(access_count=item.access_count + 1, last_accessed=now), now)


_REST = r"[^\n]*+\n"
_INDENTED = rf"[ \t]++{_REST}"
_SENTENCES_BETWEEN = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_LONGEST_BETWEEN = 100

# --- Tracebacks

_PYTHON = (
    rf'(?P<indent>[ \t]*+)Traceback \(most recent call last\):\n(?P=indent)[ \t]++File "{_REST}'
    rf"(?:(?P=indent){_INDENTED})*(?P=indent)[A-Za-z_][\w.]*+(?::[^\n]*+)?\n(?:(?P=indent){_INDENTED})*"
)
_PYTHON_GROUP = r"[ \t]*+\+ Exception Group Traceback \(most recent call last\):\n(?:[ \t]++[|+][^\n]*+\n)+"
_PYTHON_SYNTAX = (
    rf'[ \t]++File "[^"\n]*+", line \d++\n(?:{_INDENTED}){{1,3}}(?:SyntaxError|IndentationError|TabError): {_REST}'
)
_FRAME = r"[ \t]++at [^\n]*+(?<=[)\d>\]])\n"
_JAVA_OR_JAVASCRIPT = (
    r'[ \t]*+(?:Exception in thread "[^"\n]*+" |Unhandled exception\. |Uncaught (?:\(in promise\) )?)?'
    r"[A-Za-z_$][\w.$]*+(?:(?<=Error)|(?<=Exception)|(?<=Throwable))(?:[ :\[][^\n]*+)?\n"
    rf"(?:(?!{_FRAME})[^\n]++\n){{0,8}}{_FRAME}"
    rf"(?:{_FRAME}|[ \t]*+(?:Caused by|Suppressed): {_REST}|[ \t]++\.\.\. \d++ {_REST})*"
)
_RUST_PANIC = r"thread '[^'\n]*+' (?:\(\d++\) )?panicked at [^\n]*+(?<=[:\d])\n(?:[^\n]++\n)*"
_GO_PANIC = (
    rf"(?:panic|fatal error): [^\n]++\n(?:(?!goroutine ){_REST}){{0,8}}goroutine \d++ \[{_REST}(?:[^\n]++\n)*"
    rf"(?:\n++goroutine \d++ \[{_REST}(?:[^\n]++\n)*)*"
)

# --- Errors of compilers

_FILE = r"(?:[A-Za-z]:)?[^\s:()'\"`]+\."
# An address with a port looks like a file with a line, so that a line alone is believed of sources only.
_LINE = (
    rf"{_FILE}(?:[A-Za-z][\w+]{{0,9}}:\d++:\d++"
    r"|(?:pyi?|java|kt|scala|groovy|swift|c|cc|cpp|cxx|h|hh|hpp|m|mm|rs|go|d|vala|hs|ml|ts|tsx|js|jsx|php|rb):\d++)"
)
_LINE_IN_BRACKETS = rf"{_FILE}[A-Za-z][\w+]{{0,9}}\(\d++(?:,\d++)?\)"
_COMPILER = (
    rf"(?:{_LINE}: (?:fatal )?error(?:\[E\d++\])?: {_REST}"  # gcc, clang, javac, mypy, rustc's short form
    rf"|{_LINE_IN_BRACKETS}: (?:fatal )?error [A-Z]+\d++: {_REST}"  # tsc, MSVC, C#
    rf"|{_LINE} - error TS\d++: {_REST}"  # tsc on a terminal
    rf"|error\[E\d{{4}}\]: {_REST}|error: [^\n]*+\n[ \t]*+--> [^\n]*+(?<=\d)\n)"  # rustc
    rf"(?:{_INDENTED}|\d++ ++\|{_REST}|(?:{_LINE}|{_LINE_IN_BRACKETS})(?:: | - )(?:fatal )?(?:error|warning|note)\b"
    rf"{_REST}|(?:Found )?\d++ errors?\b{_REST}|\n?error: (?:aborting due to|could not compile) {_REST}|\.\.\.\n)*"
)
_COMPILER_OF_OUTPUT = (
    rf"(?:[\w./-]+\.go:\d++:\d++: |(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|collect2): (?:fatal )?error: ){_REST}"
)

# --- Summaries of test runners

_COUNT = r"\d++ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests (?:passed|failed))"
_PYTEST_COUNTS = rf"{_COUNT}(?:, {_COUNT})* in \d++(?:\.\d++)?s(?: \([\d:]++\))?"
_PYTEST = rf"(?:=++ short test summary info =++\n(?:(?!=){_REST})*)?=++ {_PYTEST_COUNTS} =++\n"
_PYTEST_OF_OUTPUT = rf"{_PYTEST_COUNTS}\n"
_UNITTEST = r"Ran \d++ tests? in \d++(?:\.\d++)?s\n\n?(?:OK|FAILED)(?: \([^)\n]*+\))?\n"
_CARGO = (
    r"(?:failures:\n(?:[ \t]++\S[^\n]*+\n)+\n)?"
    rf"test result: (?:ok|FAILED)\. (?!0 passed; 0 failed;)\d++ passed; \d++ failed;{_REST}"
)
_GO_LINE = (
    rf"(?:--- FAIL: \S++ \(\d++\.\d++s\)\n(?:{_INDENTED})*"
    rf"|ok[ \t]{{2,}}+\S++[ \t]++(?:\d++\.\d++s|\(cached\)){_REST}|FAIL\t\S{_REST})"
)
_GO = rf"{_GO_LINE}(?:{_GO_LINE}|(?:FAIL|PASS|exit status \d++)\n)*"
_JEST = rf"(?:Test Suites: {_REST})?Tests:[ \t]++(?:\d++ [a-z]++, )*\d++ total\n(?:(?:Snapshots|Time):{_REST})*"
_VITEST = (
    rf"(?:[ \t]*+Test Files  {_REST})?[ \t]*+Tests  \d++ [a-z]++(?: \| \d++ [a-z]++)* \(\d++\)\n"
    rf"(?:[ \t]++(?:Start at|Duration)  {_REST})*"
)
_MOCHA = r"[ \t]++\d++ passing \(\d++[a-z]++\)\n(?:[ \t]++\d++ (?:pending|failing)\n)*"

_ERRORS = (_PYTHON, _PYTHON_GROUP, _PYTHON_SYNTAX, _JAVA_OR_JAVASCRIPT, _RUST_PANIC, _GO_PANIC, _COMPILER)
_RESULTS = (_PYTEST, _UNITTEST, _CARGO, _GO, _JEST, _VITEST, _MOCHA)


class Report(NamedTuple):
    """A report by its offsets in the text: an ERROR or a TEST_RESULT."""

    item_type: ItemType
    start: int
    end: int


def reports(text: str, start: int, end: int, *, machine_made: bool) -> list[Report]:
    """Return the reports in a stretch of whole lines, each of which ends with LF, in order.

    Reports of one type with nothing but blank lines between them are one. ``machine_made`` says that the stretch is
    output, as a fenced block is; then lines are believed that a person might write too.
    """
    found: list[Report] = []
    for match in _pattern(machine_made=machine_made).finditer(text, start, end):
        item_type = ItemType.ERROR if match.lastgroup == "error" else ItemType.TEST_RESULT
        last = found[-1] if found else None
        if last and last.item_type is item_type and _belong_together(text, last.end, match.start()):
            found[-1] = last._replace(end=match.end())
        else:
            found.append(Report(item_type, match.start(), match.end()))
    return found


@cache
def _pattern(*, machine_made: bool) -> re.Pattern[str]:
    errors = (*_ERRORS, _COMPILER_OF_OUTPUT) if machine_made else _ERRORS
    results = (*_RESULTS, _PYTEST_OF_OUTPUT) if machine_made else _RESULTS
    return re.compile(rf"^(?:(?P<error>{'|'.join(errors)})|(?P<result>{'|'.join(results)}))", re.MULTILINE)


def _belong_together(text: str, start: int, end: int) -> bool:
    if end - start > _LONGEST_BETWEEN:
        return False
    between = text[start:end].strip()
    return not between or between in _SENTENCES_BETWEEN
