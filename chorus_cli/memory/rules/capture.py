"""Finding memory items in messages and in the output of commands, without asking a model.

Three things are worth keeping and safe to tell: fenced code, errors, and results of tests. All else is talk.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.limits import CAPTURED_MESSAGE
from chorus_cli.core.text.phrases import shortened
from chorus_cli.memory.rules.items import LONGEST_CONTENT, ItemType
from chorus_cli.memory.rules.reports import reports
from chorus_cli.memory.rules.sections import FENCE_MARKS, fences, outside_fences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chorus_cli.memory.rules.items import Item
    from chorus_cli.memory.rules.sections import Fence

_FEWEST_LINES = 3
_LONGEST_NAMED = 40
_MOST_NAMED = 3
_ESCAPE = "\x1b"


class Captured(NamedTuple):
    """The type and the content of an item to be stored."""

    item_type: ItemType
    content: str


def captured(text: str, *, is_output: bool = False) -> list[Captured]:
    """Return the items in a message, or in the output of a command, in their order; equal content once.

    A fenced block gives one item: an ERROR if it holds a traceback or an error of a compiler, a TEST_RESULT if it
    holds the summary of a test runner, else CODE if it has three lines or more. A message may have broken off, so that
    nothing is taken from a fence that is not closed; output does not, and the fence is a line like others. Content
    that is too long for an item is left out. Contents are pieces of the text without CR before LF and without colours.
    A text over the limit has none: a search through one line of megabytes would hold up all other threads.
    """
    if len(text) > CAPTURED_MESSAGE.most:
        return []
    lines = text.replace("\r\n", "\n")
    if is_output and _ESCAPE in lines:
        lines = _colours().sub("", lines)
    lines = lines if lines.endswith("\n") else lines + "\n"
    found: dict[str, Captured] = {}
    for each in _in_order(lines, is_output=is_output):
        content = each.content.strip()
        if len(content) <= LONGEST_CONTENT:
            found.setdefault(content, Captured(each.item_type, content))
    return list(found.values())


def capture_notice(items: Sequence[Item]) -> str:
    """Name the memory items that were captured from a message."""
    named = [f'#{item.id} {item.item_type} "{shortened(item.content, _LONGEST_NAMED)}"' for item in items[:_MOST_NAMED]]
    more = [f"{len(items) - _MOST_NAMED:,} more"] if len(items) > _MOST_NAMED else []
    return f"Remembered {', '.join([*named, *more])}. /undo reverts this."


def _in_order(lines: str, *, is_output: bool) -> Iterator[Captured]:
    found = fences(lines) if any(mark in lines for mark in FENCE_MARKS) else ()
    closed = [fence for fence in found if fence.is_closed or not is_output]
    by_start = {fence.start: fence for fence in closed}
    stretches = dict(outside_fences(lines, closed)) if closed else {0: len(lines)}
    for start in sorted([*by_start, *stretches]):
        if start in by_start:
            yield from _from_fence(lines, by_start[start])
        else:
            reported = reports(lines, start, stretches[start], machine_made=is_output)
            yield from (Captured(each.item_type, lines[each.start : each.end]) for each in reported)


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


@cache
def _colours() -> re.Pattern[str]:
    return re.compile(r"\x1b\[[0-9;]*+m")
