r"""Reports that programs print: tracebacks, errors of compilers, and summaries of test runners.

Each pattern begins at the beginning of a line and takes whole lines. The text may be pasted from anywhere:
a repetition of characters is possessive, and one of a group never finds anything in what it could give back, so that
the time is linear in the length of the text. No repetition of a group is possessive: Python before 3.11.5 goes on
behind an iteration that failed half-way (its issue 106052).
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from chorus_cli.memory.rules.items import ItemType

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
