"""Reads JSON with comments, and changes single values in its text; the rest of the text stays byte for byte."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.text.code_points import has_surrogates

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"

DEEPEST_NESTING = 100
"""Maximum nesting of lists and objects."""

BYTE_ORDER_MARK = "\ufeff"
LINE_END = re.compile(r"\r\n|\r|\n")
COMMENT = re.compile(r"//[^\r\n]*+|/\*.*?\*/", re.DOTALL)
GAP = re.compile(rf"(?:[ \t\r\n]++|{COMMENT.pattern})*", re.DOTALL)
"""White space and comments, allowed between any two tokens."""

_OPEN_STRING = re.compile(r'"(?:[^"\\\x00-\x1f\ud800-\udfff]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_WORD = re.compile(r'[^\s",:\[\]{}/]*+')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?P<fraction>(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)")
_INDENTATION = "  "
_SPACES = re.compile(r"[ \t]*+")
_CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}


class Node(NamedTuple):
    """A value and the span of its text; ``members`` is ``None`` if the value is not an object."""

    value: JsonValue
    start: int
    end: int
    members: tuple[Member, ...] | None = None


class Member(NamedTuple):
    """A key, its value, and the offsets of its tokens; ``comma`` is ``None`` if no comma follows the value."""

    key: str
    start: int
    key_end: int
    colon: int
    node: Node
    comma: int | None


class Document(NamedTuple):
    """The value and the 1-based line of each key of an object; ``sections`` has the values that are objects."""

    values: Mapping[str, JsonValue] = MappingProxyType({})
    lines: Mapping[str, int] = MappingProxyType({})
    sections: Mapping[str, Document] = MappingProxyType({})


def parse_object(text: str) -> Document:
    """Return the object in ``text``, empty if there are only comments; raise a ``JsoncError`` if it is not valid."""
    root = root_object(text)
    line_ends = [found.end() for found in LINE_END.finditer(text)]
    return _document(root.members or (), line_ends) if root else Document()


def parse(text: str) -> JsonValue:
    """Return the value in ``text``; raise a ``JsoncError`` if it is not valid."""
    return _Reader(text).root().value


def _document(members: Sequence[Member], line_ends: Sequence[int]) -> Document:
    counting = {member.key: member for member in members}
    return Document(
        values={key: member.node.value for key, member in counting.items()},
        lines={key: bisect_right(line_ends, member.start) + 1 for key, member in counting.items()},
        sections={
            key: _document(member.node.members, line_ends)
            for key, member in counting.items()
            if member.node.members is not None
        },
    )


def root_object(text: str) -> Node | None:
    """Return the outermost object, or ``None`` if there is only white space and comments."""
    reader = _Reader(text)
    mark = reader.peek()
    if mark not in {"", "{"}:
        raise reader.error("'{'")
    return reader.root() if mark else None


def same(one: object, other: object) -> bool:
    """Return whether two values are equal and of the same type: 1, 1.0 and true are three different values."""
    return type(one) is type(other) and one == other


def position(text: str, offset: int) -> tuple[int, int]:
    """Return the 1-based line and column of ``offset``; a byte order mark takes no column."""
    line_ends = [found.end() for found in LINE_END.finditer(text, 0, offset)]
    line_start = line_ends[-1] if line_ends else int(text.startswith(BYTE_ORDER_MARK))
    return len(line_ends) + 1, max(offset - line_start, 0) + 1


class _Reader:
    """Reads one text by recursive descent; ``offset`` is the current position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = int(text.startswith(BYTE_ORDER_MARK))

    def root(self) -> Node:
        node = self.node(0)
        if self.peek():
            raise self.error("the end of the file")
        return node

    def peek(self) -> str:
        """Skip white space and comments, and return the character that follows; empty at the end."""
        self.offset = end_of(GAP, self.text, self.offset)
        if self.text.startswith("/*", self.offset):
            raise self.error("a comment that ends with */")
        return self.text[self.offset : self.offset + 1]

    def node(self, depth: int) -> Node:
        mark = self.peek()
        start = self.offset
        members = None
        value: JsonValue
        if mark in {"{", "["} and depth >= DEEPEST_NESTING:
            raise self.error(f"at most {DEEPEST_NESTING} levels of nesting")
        if mark == "{":
            members = self.members(depth + 1)
            value = {member.key: member.node.value for member in members}
        elif mark == "[":
            value = self.items(depth + 1)
        else:
            value = self.string() if mark == '"' else self.bare()
        return Node(value, start, self.offset, members)

    def members(self, depth: int) -> tuple[Member, ...]:
        found: list[Member] = []
        self.offset += 1
        while (mark := self.peek()) != "}":
            if mark != '"':
                raise self.error("a key in double quotes or '}'")
            start, key, key_end = self.offset, self.string(), self.offset
            colon, node = self.take(":", "':'"), self.node(depth)
            comma = self.take(",", "','") if self.peek() == "," else None
            found.append(Member(key, start, key_end, colon, node, comma))
            if comma is None:
                break
        self.take("}", "',' or '}'")
        return tuple(found)

    def items(self, depth: int) -> list[JsonValue]:
        found: list[JsonValue] = []
        self.offset += 1
        while self.peek() != "]":
            found.append(self.node(depth).value)
            if self.peek() != ",":
                break
            self.take(",", "','")
        self.take("]", "',' or ']'")
        return found

    def take(self, mark: str, expected: str) -> int:
        if self.peek() != mark:
            raise self.error(expected)
        self.offset += 1
        return self.offset - 1

    def string(self) -> str:
        start = self.offset
        self.offset = end_of(_OPEN_STRING, self.text, start)
        if not self.text.startswith('"', self.offset):
            raise self.error(_missing_in_string(self.text[self.offset : self.offset + 1]))
        self.offset += 1
        written = self.text[start : self.offset]
        value: str = json.loads(written)
        # ``_OPEN_STRING`` refuses a surrogate that is not escaped.
        if "\\u" in written and has_surrogates(value):
            self.offset = start
            raise self.error("both halves of a surrogate pair such as \\ud83d\\ude00")
        return value

    def bare(self) -> int | float | bool | None:
        word = self.text[self.offset : end_of(_WORD, self.text, self.offset)]
        number = _NUMBER.fullmatch(word)
        if number is None and word not in _CONSTANTS:
            raise self.error("a value: a text in double quotes, a number, true, false, null, '[' or '{'")
        if number and math.isinf(float(word)):
            raise self.error("a number below 1.8e308")
        self.offset += len(word)
        if number is None:
            return _CONSTANTS[word]
        return float(word) if number["fraction"] else int(word)

    def error(self, expected: str) -> JsoncError:
        line, column = position(self.text, self.offset)
        length = max(end_of(_WORD, self.text, self.offset) - self.offset, 1)
        found = self.text[self.offset : self.offset + min(length, 20)]
        shown = "the end of the line" if LINE_END.match(found) else repr(found)
        return JsoncError(line, column, f"expected {expected}, found {shown if found else 'the end of the file'}")


def _missing_in_string(character: str) -> str:
    if character == "\\":
        return 'an escape: \\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u with four hexadecimal digits'
    if character in {"", "\n", "\r"}:
        return "'\"' at the end of the text"
    return f"the character written as {json.dumps(character)[1:-1]}"


def end_of(pattern: re.Pattern[str], text: str, offset: int) -> int:
    """Return the end of the match of ``pattern`` at ``offset``; ``offset`` itself without a match."""
    found = pattern.match(text, offset)
    return found.end() if found else offset


def set_key(text: str, key: str, value: JsonValue, *sections: str) -> str:
    """Return ``text`` with ``value`` under ``key``; a missing key is added after the others, and the rest stays.

    ``sections`` are the names of the nested objects that lead to the key, the outermost first. A missing or null
    section becomes an object with a line for each key; a section with another value raises a ``JsoncError``.
    """
    root = root_object(text)
    for depth, section in enumerate(sections):
        found = _member(root, section)
        if found is None or found.node.value is None:
            lines = f"{{{_line_end(text)}{_INDENTATION * (depth + 1)}}}"
            return set_key(_set_written(text, root, section, lines), key, value, *sections)
        if found.node.members is None:
            raise JsoncError(*position(text, found.node.start), f'expected an object under "{section}"')
        root = found.node
    return _set_written(text, root, key, _written(value, len(sections) + 1))


def _member(root: Node | None, key: str) -> Member | None:
    """Return the last member with ``key``: of several values for a key, the last one counts."""
    return next((each for each in reversed((root.members if root else None) or ()) if each.key == key), None)


def _set_written(text: str, root: Node | None, key: str, written: str) -> str:
    if root is None:
        line_end = _line_end(text)
        unfinished = text.removeprefix(BYTE_ORDER_MARK) and not text.endswith(("\n", "\r"))
        lines = ("{", f"{_INDENTATION}{json.dumps(key)}: {written}", "}", "")
        return text + (line_end if unfinished else "") + line_end.join(lines)
    if member := _member(root, key):
        return text[: member.node.start] + written + text[member.node.end :]
    return _with_new_member(text, root, f"{json.dumps(key)}: {written}")


def remove_key(text: str, key: str, *sections: str) -> str:
    """Return ``text`` without the members ``key`` of the object that ``sections`` lead to; their comments stay."""
    while True:
        root = root_object(text)
        for section in sections:
            found = _member(root, section)
            root = found.node if found else None
        members = (root.members if root else None) or ()
        places = [index for index, member in enumerate(members) if member.key == key]
        if not places:
            return text
        text = _without_member(text, members, places[-1])


def _written(value: JsonValue, levels: int) -> str:
    """Return ``value`` as JSON on one line, and refuse a value that could not be read back ``levels`` objects deep."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        _Reader("[" * levels + written + "]" * levels).root()
    except (ValueError, RecursionError, JsoncError) as error:
        raise SettingsError(
            "The value cannot be written as JSON: a number is too large or not finite, half of a surrogate pair is "
            "missing, or objects and lists are nested too deep."
        ) from error
    return written


def _with_new_member(text: str, root: Node, member: str) -> str:
    """Add ``member`` after the last member and its comments, in the last member's layout and comma style."""
    if not root.members:
        anchor, _ = _after_comments(text, root.start + 1)
        return text[:anchor] + _lead_in_empty(text, root) + member + text[anchor:]
    last = root.members[-1]
    value_end = last.node.end
    anchor, comment = _after_comments(text, value_end if last.comma is None else last.comma + 1)
    lead = _line_end(text) + _INDENTATION if comment.startswith("//") else " "
    prefix = _line_prefix(text, last.start)
    if not prefix.strip(" \t"):
        lead = _line_end(text) + prefix
    separator, trailing = (",", "") if last.comma is None else ("", ",")
    return text[:value_end] + separator + text[value_end:anchor] + lead + member + trailing + text[anchor:]


def _lead_in_empty(text: str, root: Node) -> str:
    body = text[root.start + 1 : root.end - 1]
    if not LINE_END.search(body):
        return " " if body else ""
    closing_line = _line_prefix(text, root.end - 1)
    return _line_end(text) + closing_line[: end_of(_SPACES, closing_line, 0)] + _INDENTATION


def _without_member(text: str, members: Sequence[Member], index: int) -> str:
    """Delete a member and the comma after it; if none follows, the comma before it."""
    member = members[index]
    before = members[index - 1].comma if index else None
    if before is None or member.comma is not None:
        return _without_marks(text, member, member.start, member.comma)
    if end_of(_SPACES, text, before + 1) == member.start:
        return _without_marks(text, member, before, None)
    text = _without_marks(text, member, member.start, None)
    return text[:before] + text[before + 1 :]


def _without_marks(text: str, member: Member, start: int, comma: int | None) -> str:
    """Delete from ``start`` to the end of the value, or to ``comma`` if it is given; comments in between stay."""
    end = member.node.end if comma is None else comma + 1
    gaps = [text[member.key_end : member.colon], text[member.colon + 1 : member.node.start]]
    if comma is not None:
        gaps.append(text[member.node.end : comma])
    # The comments inside the member stay, with the white space around them.
    comments = "".join(gap for gap in gaps if not gap.isspace())
    if not comments:
        start, end = _widened(text, start, end)
    return text[:start] + comments + text[end:]


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a span to its whole line if nothing else is on it, or else by the blanks after it.

    A span that begins with a comma, after other text in the line, is not widened: the text after it keeps its blanks.
    """
    prefix = _line_prefix(text, start)
    after = end_of(_SPACES, text, end)
    line_end = LINE_END.match(text, after)
    if line_end and not prefix.strip(" \t"):
        return start - len(prefix), line_end.end()
    return start, end if text[start] == "," and prefix.strip(" \t") else after


def _after_comments(text: str, offset: int) -> tuple[int, str]:
    """Return end and text of the last comment in the gap at ``offset``; if none, ``offset`` and an empty text."""
    comments = list(COMMENT.finditer(text, offset, end_of(GAP, text, offset)))
    return (comments[-1].end(), comments[-1].group()) if comments else (offset, "")


def _line_prefix(text: str, offset: int) -> str:
    return text[max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1 : offset]


def _line_end(text: str) -> str:
    found = LINE_END.search(text)
    return found.group() if found else "\n"
