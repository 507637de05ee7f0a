"""The search for memory items in messages, documents and output of commands, without a model.

In messages and output it finds fenced code, errors and results of tests, because patterns recognise these safely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from chorus_cli.core.limits import CAPTURED_MESSAGE
from chorus_cli.core.text.phrases import shortened
from chorus_cli.memory.rules.items import LONGEST_CONTENT, Item, ItemType

FENCE_MARKS = ("```", "~~~")
"""The marks with which the first and the last line of a fence begin."""

_MARKDOWN = frozenset({"markdown", "md", "mdx"})
_BLOCKED = -1


class Fence(NamedTuple):
    """The offsets of a fenced code block and of its content; a block that is not closed ends with the text."""

    start: int
    content_start: int
    content_end: int
    end: int
    is_closed: bool


def fences(text: str) -> list[Fence]:
    """Return the outermost fenced code blocks of a text whose lines end with LF, in order."""
    lines = list(re.finditer(_FENCE_LINE, text))
    found: list[Fence] = []
    position, nests = 0, True
    while position < len(lines):
        closing = _closing(lines, position, nests=nests)
        if closing is None and nests:
            # The text opens more fences than it closes. From here on, a fence line without a language closes a fence.
            # Nested fences are not tried again, because each try would read to the end of the text.
            nests = False
            closing = _closing(lines, position, nests=nests)
        found.append(_fence(text, lines[position], None if closing is None else lines[closing]))
        position = len(lines) if closing is None else closing + 1
    return found


def code_in(text: str) -> list[str]:
    """Return the contents of the fenced code blocks of a text, in order; an unclosed block ends with the text."""
    lines = text.replace("\r\n", "\n")
    lines = lines if lines.endswith("\n") else lines + "\n"
    return [lines[fence.content_start : fence.content_end] for fence in fences(lines)]


def outside_fences(text: str, known: Sequence[Fence]) -> list[tuple[int, int]]:
    """Return the parts of a text before, between and after its ``known`` fences, as pairs of offsets."""
    edges = [0, *(edge for fence in known for edge in (fence.start, fence.end)), len(text)]
    return [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2) if edges[i] < edges[i + 1]]


def sections(markdown: str) -> list[str]:
    """Split a document at its headings; text before the first heading is a section of its own.

    A section that is too long for an item is split at a blank line, else at a line break, else at the longest length.
    """
    edges = [0, *_heading_starts(markdown), len(markdown)]
    parts = (markdown[start:end].strip("\r\n") for start, end in pairwise(edges))
    return [piece for part in parts for piece in _pieces(part) if piece.strip()]


_FENCE_LINE = (
    r"(?m)^(?:[ \t]*+(?=`)| {0,3}+(?=~))"
    r"(?P<mark>`{3,}+(?=[^`\n]*+$)|~{3,}+(?=[ \t]*(?:[\w{.]|$)))(?P<info>[^\n]*+)$"
)
_WHOLE_LINE = r"[^\n]*+(?:\n|$)"
_FRONT_MATTER = r"(?m)\A---[ \t\r]*\n(?:(?!---\s*$|\.{3}\s*$)[^\n]*+\n)*(?:---|\.{3})(?=\s*$)"
_HEADING = r" {0,3}#{1,6}(?:\s|$)"
_UNDERLINE = r" {0,3}(?:=++|-++)\s*$"
_NO_PARAGRAPH = r" {0,3}(?:[>|]|[-*+]\s|\d{1,9}[.)]\s|(?:[-*_][ \t]*+){3,}\s*$)| {4}|\t"


def _closing(lines: list[re.Match[str]], opening: int, *, nests: bool) -> int | None:
    """Return the index of the line that closes the fence at ``opening``; if ``nests``, inner fences close first."""
    open_lines = [lines[opening]]
    for index in range(opening + 1, len(lines)):
        line, innermost = lines[index], open_lines[-1]
        info = line["info"].strip()
        if not info and line["mark"].startswith(innermost["mark"]):
            open_lines.pop()
            if not open_lines:
                return index
        elif info and nests and innermost["info"].partition("{")[0].strip().lower() in _MARKDOWN:
            open_lines.append(line)
    return None


def _fence(text: str, opening: re.Match[str], closing: re.Match[str] | None) -> Fence:
    content_start = min(opening.end() + 1, len(text))
    if closing is None:
        return Fence(opening.start(), content_start, len(text), len(text), is_closed=False)
    end = min(closing.end() + 1, len(text))
    return Fence(opening.start(), content_start, closing.start(), end, is_closed=True)


def _heading_starts(markdown: str) -> Iterator[int]:
    """Yield the offset of each heading outside fences and front matter."""
    front_matter = re.match(_FRONT_MATTER, markdown)
    begin = front_matter.end() if front_matter else 0
    for start, end in outside_fences(markdown, fences(markdown)):
        if end > begin:
            yield from _headings_between(markdown, max(start, begin), end)


def _headings_between(markdown: str, start: int, end: int) -> Iterator[int]:
    """Yield the offset of each heading in a part without fences; an underlined heading begins with its paragraph.

    ``paragraph`` is the offset of the present paragraph, or ``_BLOCKED`` in a list, a quote or a table: there a line of
    hyphens underlines nothing.
    """
    is_heading, is_underline = re.compile(_HEADING).match, re.compile(_UNDERLINE).match
    is_no_paragraph = re.compile(_NO_PARAGRAPH).match
    paragraph: int | None = None
    for match in re.compile(_WHOLE_LINE).finditer(markdown, start, end):
        line = match[0]
        if not line.strip():
            paragraph = None
        elif is_heading(line):
            yield match.start()
            paragraph = None
        elif paragraph not in {None, _BLOCKED} and is_underline(line):
            yield paragraph or 0
            paragraph = None
        elif is_no_paragraph(line):
            paragraph = _BLOCKED
        elif paragraph is None:
            paragraph = match.start()


def _pieces(section: str) -> Iterator[str]:
    start = 0
    while len(section) - start > LONGEST_CONTENT:
        end = _cut(section, start, start + LONGEST_CONTENT)
        yield section[start:end].strip("\r\n")
        start = end
    yield section[start:].strip("\r\n")


def _cut(section: str, start: int, end: int) -> int:
    """Return the offset of a cut before ``end``: at the last blank line, else at the last line break, else ``end``."""
    blank = max(section.rfind("\n\n", start, end), section.rfind("\n\r\n", start, end))
    cut = blank if blank > start else section.rfind("\n", start, end)
    return cut + 1 if cut > start else end


_FEWEST_LINES = 3
_LONGEST_NAMED = 40
_MOST_NAMED = 3
_COLOUR = r"\x1b\[[0-9;]*+m"


class Captured(NamedTuple):
    """The type and the content of an item to be stored."""

    item_type: ItemType
    content: str


def captured(text: str, *, is_output: bool = False) -> list[Captured]:
    """Return the items in a message, or in the output of a command, in order; of equal contents only the first.

    A fenced block is an ERROR if it holds a traceback or an error of a compiler, a TEST_RESULT if it holds the summary
    of a test runner, else CODE if it has three lines or more. An open fence in a message gives no item, because the
    message may have broken off; in output it is a line like any other. A text over the limit gives no items, because a
    search through one line of megabytes would hold up all other threads.
    """
    if len(text) > CAPTURED_MESSAGE.most:
        return []
    lines = text.replace("\r\n", "\n")
    if is_output:
        lines = re.sub(_COLOUR, "", lines)
    lines = lines if lines.endswith("\n") else lines + "\n"
    known = fences(lines) if any(mark in lines for mark in FENCE_MARKS) else ()
    by_start = {fence.start: fence for fence in known if fence.is_closed or not is_output}
    stretches = dict(outside_fences(lines, list(by_start.values()))) if by_start else {0: len(lines)}
    found: list[Captured] = []
    for start in sorted([*by_start, *stretches]):
        if start in by_start:
            found += _from_fence(lines, by_start[start])
        else:
            reported = reports(lines, start, stretches[start], machine_made=is_output)
            found += (Captured(each.item_type, lines[each.start : each.end].strip()) for each in reported)
    distinct: dict[str, Captured] = {}
    for each in found:
        if len(each.content) <= LONGEST_CONTENT:
            distinct.setdefault(each.content, each)
    return list(distinct.values())


def capture_notice(items: Sequence[Item]) -> str:
    """Return the notice for the user that names the first three captured items; without items it is empty."""
    if not items:
        return ""
    named = [f'#{item.id} "{shortened(item.content, _LONGEST_NAMED)}"' for item in items[:_MOST_NAMED]]
    more = [f"{len(items) - _MOST_NAMED:,} more"] if len(items) > _MOST_NAMED else []
    way = f"/memory forget {items[0].id} removes it" if len(items) == 1 else "/memory forget N removes one"
    return f"Remembered {', '.join([*named, *more])}. {way}."


def _from_fence(lines: str, fence: Fence) -> Iterator[Captured]:
    if not fence.is_closed:
        return
    content = lines[fence.content_start : fence.content_end].strip()
    if len(content) > LONGEST_CONTENT:
        return
    types = {each.item_type for each in reports(lines, fence.content_start, fence.content_end, machine_made=True)}
    if ItemType.ERROR in types:
        yield Captured(ItemType.ERROR, content)
    elif types:
        yield Captured(ItemType.TEST_RESULT, content)
    elif content.count("\n") + 1 >= _FEWEST_LINES:
        yield Captured(ItemType.CODE, content)


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
# An address with a port looks like a file with a line number, so only a source file's number needs no column.
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
    """An ERROR or a TEST_RESULT, by its offsets in the text."""

    item_type: ItemType
    start: int
    end: int


def reports(text: str, start: int, end: int, *, machine_made: bool) -> list[Report]:
    """Return the reports between two offsets at line breaks, in order; adjacent reports of one type are one report.

    Patterns that a person's words could match apply only to ``machine_made`` text, such as a fence or output.
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
