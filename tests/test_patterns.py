"""Regular expressions mean the same in every Python that Chorus runs with, and none takes long over any text."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.patterns_of_package import Used, used_patterns
from tests.worst_texts import WorstText, worst_texts

PACKAGE = Path(__file__).parents[1] / "chorus_cli"
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\{?[0-9]+(?:,[0-9]*)?\}\}?)\+")

TINY, SMALL, SHORT, LONGER, LONG = 22, 300, 2_000, 16_000, 100_000
"""Lengths of texts, of which the longer are tried only if a shorter one took its time."""

UNSUSPICIOUS_SECONDS, MOST_SECONDS = 0.0001, 0.25


def test_no_repetition_of_a_group_is_possessive() -> None:
    """Python before 3.11.5, which Debian 12 has, goes on behind an iteration that failed half-way (issue 106052)."""
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert found == []


def test_no_pattern_takes_long_over_its_worst_text() -> None:
    """Ten times the text may take ten times as long, but not a hundred times: a text of a server's may have a megabyte.

    While a pattern runs, no key is heard and no signal.
    """
    patterns = used_patterns()
    assert len(patterns) > 200
    assert [found for used in patterns if (found := slow_by(used))] == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"the token count of a request to this model\b.*\bexceeds the maximum",
        r"\s*(?:Traceback|Original exception:)",
        r"<(a|b)>.*?</\1>",
        r"(?:a|a)*b",
        r"(?:\n?Jobs:(?:\n#[^\n]*)*)*\n\n",
    ],
)
def test_a_pattern_that_takes_long_is_found(pattern: str) -> None:
    assert slow_by(Used("here", re.compile(pattern), frozenset({"finditer"})))


def slow_by(used: Used) -> str:
    """Return the text over which a pattern takes too long; empty if there is none."""
    for method in used.methods:
        for text in worst_texts(used.pattern):
            if is_slow(used.pattern, method, text):
                return f"{used.place}.{method}: {text}"
    return ""


def is_slow(pattern: re.Pattern[Any], method: str, text: WorstText) -> bool:
    """Return whether a pattern takes too long over a text, by the time of this thread alone."""
    if any(seconds(pattern, method, text, length) > MOST_SECONDS for length in (TINY, SMALL)):
        return True
    short = seconds(pattern, method, text, SHORT)
    if short < UNSUSPICIOUS_SECONDS or short > MOST_SECONDS:
        return short > MOST_SECONDS
    longer = seconds(pattern, method, text, LONGER)
    if longer > MOST_SECONDS:
        return True
    is_linear = longer < 2 * short * LONGER / SHORT
    return not is_linear and seconds(pattern, method, text, LONG) > MOST_SECONDS


def seconds(pattern: re.Pattern[Any], method: str, text: WorstText, length: int) -> float:
    """Return the shortest of a few times that it takes to use a pattern."""
    subject: Any = text.of(length)
    if isinstance(pattern.pattern, bytes):
        subject = subject.encode("latin-1", "replace")
    arguments = (subject[:0], subject) if method in {"sub", "subn"} else (subject,)
    taken: list[float] = []
    while len(taken) < 3 and (not taken or UNSUSPICIOUS_SECONDS < min(taken) < MOST_SECONDS):
        began = time.thread_time()
        result = getattr(pattern, method)(*arguments)
        if method == "finditer":
            sum(1 for _ in result)
        taken.append(time.thread_time() - began)
    return min(taken)
