"""JSON with comments: change one value leaving every other byte.

Editing replaces, inserts or deletes spans of the text, so that everything else
stays as it was: comments, blank lines, order, byte order mark and line ends.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json.jsonc_reader import (
    BYTE_ORDER_MARK,
    COMMENT,
    GAP,
    LINE_END,
    Document,
    JsonValue,
    Member,
    Node,
    end_of,
    parse,
    parse_object,
    position,
    root_object,
    same,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Document", "JsonValue", "parse", "parse_object", "position", "remove_key", "same", "set_key"]

_INDENTATION = "  "
_SPACES = re.compile(r"[ \t]*+")


def set_key(text: str, key: str, value: JsonValue) -> str:
    """Return ``text`` with ``value`` under ``key``, added last if it is missing; everything else stays.

    Raises:
        JsoncError: ``text`` is no JSONC object.
        SettingsError: ``value`` cannot be written as JSON.
    """
    written = _written(value)
    root = root_object(text)
    if root is None:
        return _with_new_object(text, f"{_written(key)}: {written}")
    for member in reversed(root.members or ()):
        if member.key == key:
            return text[: member.node.start] + written + text[member.node.end :]
    return _with_new_member(text, root, f"{_written(key)}: {written}")


def remove_key(text: str, key: str) -> str:
    """Return ``text`` without any occurrence of ``key``; comments around it stay.

    Raises:
        JsoncError: ``text`` is no JSONC object.
    """
    while True:
        root = root_object(text)
        members = (root.members if root else None) or ()
        places = [index for index, member in enumerate(members) if member.key == key]
        if not places:
            return text
        text = _without_member(text, members, places[-1])


def _written(value: JsonValue) -> str:
    """Return ``value`` as JSON on one line, checked to be readable by ``parse``."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        # The value will be inside an object, which takes one level of nesting.
        parse(f"[{written}]")
    except (ValueError, RecursionError, JsoncError) as error:
        raise SettingsError(
            "The value cannot be written as JSON: it holds a number that is too large or not finite, half of a "
            "character, or too many levels of nesting."
        ) from error
    return written


def _with_new_object(text: str, member: str) -> str:
    line_end = _line_end(text)
    unfinished = text.removeprefix(BYTE_ORDER_MARK) and not text.endswith(("\n", "\r"))
    return text + (line_end if unfinished else "") + line_end.join(("{", _INDENTATION + member, "}", ""))


def _with_new_member(text: str, root: Node, member: str) -> str:
    """Add ``member`` after the last one and its comments, in the layout and comma style of its neighbours."""
    if not root.members:
        anchor, _ = _after_comments(text, root.start + 1)
        return text[:anchor] + _lead_in_empty(text, root) + member + text[anchor:]
    last = root.members[-1]
    value_end = last.node.end
    comma_first = last.comma is None and _is_led_by_comma(text, last)
    anchor, comment = _after_comments(text, value_end if last.comma is None else last.comma + 1)
    lead = _line_end(text) + _INDENTATION if comment.startswith("//") else " "
    prefix = _line_prefix(text, last.start)
    if not prefix.strip(" \t,"):
        lead = _line_end(text) + (prefix if comma_first else prefix.replace(",", " "))
    separator = "," if last.comma is None and not comma_first else ""
    trailing = "" if last.comma is None else ","
    return text[:value_end] + separator + text[value_end:anchor] + lead + member + trailing + text[anchor:]


def _lead_in_empty(text: str, root: Node) -> str:
    """Return the white space before the first member of an object that was empty."""
    body = text[root.start + 1 : root.end - 1]
    if not LINE_END.search(body):
        return " " if body else ""
    closing_line = _line_prefix(text, root.end - 1)
    return _line_end(text) + closing_line[: end_of(_SPACES, closing_line, 0)] + _INDENTATION


def _without_member(text: str, members: Sequence[Member], index: int) -> str:
    """Delete one member with one comma: the one after it, or the one before where there is no other or it leads."""
    member = members[index]
    before = members[index - 1].comma if index else None
    if before is None or not (member.comma is None or _is_led_by_comma(text, member)):
        return _without_marks(text, member, member.start, member.comma)
    if end_of(_SPACES, text, before + 1) == member.start:
        return _without_marks(text, member, before, None)
    text = _without_marks(text, member, member.start, None)
    return text[:before] + text[before + 1 :]


def _without_marks(text: str, member: Member, start: int, comma: int | None) -> str:
    """Delete from ``start`` up to the value's end, or its comma, but for the comments in between."""
    end = member.node.end if comma is None else comma + 1
    comments = _inner_comments(text, member, comma)
    if not comments:
        start, end = _widened(text, start, end)
    return text[:start] + comments + text[end:]


def _inner_comments(text: str, member: Member, comma: int | None) -> str:
    """Return the comments inside ``member``, with the white space around them; they outlive it."""
    gaps = [text[member.key_end : member.colon], text[member.colon + 1 : member.node.start]]
    if comma is not None:
        gaps.append(text[member.node.end : comma])
    return "".join(gap for gap in gaps if not gap.isspace())


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a span by its surrounding blanks: to its whole line if nothing else is on it."""
    prefix = _line_prefix(text, start)
    after = end_of(_SPACES, text, end)
    line_end = LINE_END.match(text, after)
    if line_end and not prefix.strip(" \t"):
        return start - len(prefix), line_end.end()
    return start, end if text[start] == "," and prefix.strip(" \t") else after


def _is_led_by_comma(text: str, member: Member) -> bool:
    return _line_prefix(text, member.start).strip(" \t") == ","


def _after_comments(text: str, offset: int) -> tuple[int, str]:
    """Return the end of the last comment of the gap at ``offset``, and that comment; ``offset`` if there is none."""
    comments = list(COMMENT.finditer(text, offset, end_of(GAP, text, offset)))
    return (comments[-1].end(), comments[-1].group()) if comments else (offset, "")


def _line_prefix(text: str, offset: int) -> str:
    """Return the text before ``offset`` on its line."""
    return text[max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1 : offset]


def _line_end(text: str) -> str:
    found = LINE_END.search(text)
    return found.group() if found else "\n"
