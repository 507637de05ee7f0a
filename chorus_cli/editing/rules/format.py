r"""The text for editing a context: messages with headers, a mark where the context starts, and a mark at the end.

    # comments, six lines or more
    ---

    [2025-01-18 22:15:03] Human: a message that is not in context

    --- context starts here ---

    [2025-01-18 22:15:45] Frodo: a message in context,
    in two lines

    --- end of messages ---
    # comments, six lines or more

A line of a message that could be taken for a mark, a header or a file is escaped: one more backslash is put before it
(the rule of mboxrd). Blank lines at the end of a message are escaped too, because blank lines separate the messages. A
line that looks like a header with a slip, such as ``[20x5-01-18 22:15:03] Human: hello``, is refused, because as text
it would silently join the message above it. Carriage returns become line feeds, because editors treat them differently.

At least six lines of comments are at either end of the text, because vim obeys settings in the first and the last five
lines. Each comment line has at most 76 characters, so that an editor of 80 columns shows it whole. A form feed comes
before the comments at the end, because Emacs obeys settings on the last page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from textwrap import wrap
from types import MappingProxyType
from typing import NamedTuple

from chorus_cli.context.rules.plan import BROKEN_OFF
from chorus_cli.core.errors import EditFormatError
from chorus_cli.log.rules.messages import Role
from chorus_cli.personas.rules.persona import LONGEST_NAME, folded

LineTest = Callable[[str], bool]

HUMAN = "Human"
CONTEXT_LINE = "--- context starts here ---"
END_LINE = "--- end of messages ---"

_HEADER_BEGINNING = r"\[[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CONTEXT = r"[ \t]*-+[ \t]*context starts here[ \t]*-+"
_END = r"[ \t]*-+[ \t]*end of messages[ \t]*-+"
MARK = re.compile(rf"(?P<header>{_HEADER_BEGINNING})|(?P<context>{_CONTEXT}\s*\Z)|(?P<end>{_END}\s*\Z)")
HEADER = re.compile(r"\[([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})\] ([^:]*): ?(.*)")

# A line that begins like a mark is escaped too, because an editor that breaks lines could make it a mark.
_LIKE_A_MARK = rf"{_HEADER_BEGINNING}|{_CONTEXT}|{_END}"
_ATTACHMENT = r"\[attachment: .*\]\s*\Z"
_TO_ESCAPE = re.compile(rf"\\*(?:{_LIKE_A_MARK}|{_ATTACHMENT})|\\+\s*\Z")
ATTACHMENT = re.compile(_ATTACHMENT)

_LEAST_DIGITS = 4
_LONGEST_HEADER = 200

# The number of blanks is bounded, because a line of a million blanks would be searched again and again.
_BLANKS = r"[ \t]{0,8}"
_BRACKETS = rf"{_BLANKS}[\[\](){{}}]{{0,2}}{_BLANKS}"
_DATE = r"\w{2,5}[-/. ]\w{1,3}[-/. ]\w{1,3}"
_CLOCK = r"\w{1,2}[:.]\w{1,2}"
_BRACKETED = rf"{_BLANKS}[\[\](){{}}]{{1,2}}{_BLANKS}(?P<bracketed>{_DATE}[ ,T\t]{{1,8}}{_CLOCK})"
_STAMP = r"(?P<stamp>\d\w{0,4}(?:[:./, \t-]{1,2}\w{0,2}\d\w{0,4}){0,6})"


def header_likeness(speakers: Iterable[str]) -> LineTest:
    """Return a test for lines like a header: with a date and time in brackets, or a time before a speaker's name."""
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
    """Return the lines of a message with escapes, as the text for editing has them."""
    return [f"\\{line}" if _is_to_escape(line, is_header_like) else line for line in lines]


def unescaped(lines: Iterable[str], is_header_like: LineTest) -> list[str]:
    """Return the lines of the text without their escapes, as the message has them."""
    return [line[1:] if line.startswith("\\") and _is_to_escape(line, is_header_like) else line for line in lines]


def _is_to_escape(line: str, is_header_like: LineTest) -> bool:
    """Return whether a line after any backslashes is like a mark, a header or a file, or is blank after a backslash."""
    return _TO_ESCAPE.match(line) is not None or (":" in line and is_header_like(line.lstrip("\\")))


def with_line_feeds(text: str) -> str:
    """Return ``text`` with a line feed in place of each CR LF and of each other CR."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


_NO_BEGINNING = "this looks like the beginning of a message, but is not"
_RULE = "---"
_FORM_FEED = "\f"
_NAMELESS = "Persona"
_RESERVED_IN_NAMES = frozenset(":[]*")
_BYTE_ORDER_MARK = "\ufeff"

_COMMENT_COLUMNS = 76
# Each line here is a paragraph, which is wrapped when the names are known.
_OPENING = """\
Chorus context editor: {name}
Delete, change or move messages, and save to apply. To cancel, save it unchanged or empty. \
Only messages below "context starts here" are sent.
Move that line up, or delete it, to bring older messages in.
Every message, old or new, begins like this: [2025-01-18 22:15:03] {human}: TEXT. \
The speaker is {human} or {name}. Tool calls, written as {tool}, can be moved or deleted, but not changed.
A line such as [attachment: photo.png 1.2 MB] is a file of its message. Delete it, or move it to another message.
A reply that broke off is sent with {broken_off} at its end; that line is not shown here.
In a message, Chorus writes a \\ before a line that looks like a header, an [attachment] line or a --- line, and \
before blank lines at the end of the message. Write such lines the same way; Chorus takes the \\ off again."""

_CLOSING = """\
Write nothing here: text below "end of messages" belongs to no message.
A message with its old time, speaker and text stays the same message, wherever you move it. If only its text is new, \
it is the same message in new words. Everything else is a new message.
Messages above "context starts here" cannot be changed, and deleting them has no effect.
The log keeps every message and every wording; /undo reverts an edit.
Messages that arrive while you edit come after the messages above."""


def alone(body: str) -> str:
    """Return the text for editing a message alone: its words, and a line feed at the end."""
    return f"{with_line_feeds(body)}\n"


def read_alone(text: str) -> str:
    """Return the words of a message that was edited alone."""
    return with_line_feeds(text).removesuffix("\n")


class Block(NamedTuple):
    """One message in the text. It is a tuple, because an edit makes thousands, and dataclasses take twice as long.

    Tool calls and their results are one block with the role tool_use. ``time`` is local, as ``YYYY-MM-DD HH:MM:SS``.
    ``line`` is the number of the first line. ``attachments`` are the lines that stand for the message's files.
    """

    role: Role
    time: str
    body: str
    line: int = 0
    attachments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedEdit:
    """The blocks of a text. The context begins at index ``context_start``, which is 0 if its mark was deleted."""

    blocks: tuple[Block, ...]
    context_start: int


def shown_name(name: str) -> str:
    """Return a persona's name for the text: in one line, printable, without ``: [ ] *``, and other than Human."""
    fit = "".join(sign if sign.isprintable() and sign not in _RESERVED_IN_NAMES else " " for sign in name)
    shown = " ".join(fit.split()) or _NAMELESS
    return f"{shown} (persona)" if folded(shown) == folded(HUMAN) else shown


def render(name: str, before: Iterable[Block], context: Iterable[Block]) -> str:
    """Return the text for editing the context of the persona called ``name``."""
    speakers = _speakers(name)
    is_header_like = header_likeness(speakers.values())
    shown = {
        "human": HUMAN,
        "name": speakers[Role.ASSISTANT],
        "tool": speakers[Role.TOOL_USE],
        "broken_off": BROKEN_OFF,
    }
    parts = [
        f"{_commented(_OPENING.format_map(shown))}\n{_RULE}",
        *(_written(block, speakers, is_header_like) for block in before),
        CONTEXT_LINE,
        *(_written(block, speakers, is_header_like) for block in context),
        f"{END_LINE}\n{_FORM_FEED}\n{_commented(_CLOSING)}\n",
    ]
    return "\n\n".join(parts)


def _commented(paragraphs: str) -> str:
    """Write comments in lines that an editor of 80 columns shows whole."""
    filled = (wrap(each, _COMMENT_COLUMNS - len("# "), break_on_hyphens=False) for each in paragraphs.splitlines())
    return "\n".join(f"# {line}" for lines in filled for line in lines)


def newest_line(text: str) -> int:
    """Return the number of the line that begins the last message or, without messages, the context."""
    # Every line like a mark is a mark, because messages have such lines escaped.
    marks = ((number, MARK.match(line)) for number, line in enumerate(text.split("\n"), 1))
    return max(number for number, mark in marks if mark and mark.lastgroup != "end")


def parse(text: str, name: str, called: Mapping[str, Role] = MappingProxyType({})) -> ParsedEdit:
    """Read the text back, with any line ends, with or without a byte order mark and the comments.

    ``called`` has other names of the speakers, which the user may write.
    The line before the messages and the line after them are required, so that half a file is not taken for a whole one.
    """
    lines = with_line_feeds(text.removeprefix(_BYTE_ORDER_MARK)).rstrip("\n").split("\n")
    marks = _marks(lines, _opening_rule(lines))
    speakers = _speakers(name)
    others = {folded(shown_name(speaker)): role for speaker, role in called.items() if speaker}
    roles = others | {folded(speaker): role for role, speaker in speakers.items()}
    is_header_like = header_likeness(speakers.values())
    _check_header_like(lines, marks, is_header_like)
    blocks: list[Block] = []
    context: tuple[int, int] | None = None
    for (index, kind), (following, _) in pairwise(marks):
        if kind == "header":
            blocks.append(_block(lines, index, following, roles, is_header_like))
        elif context is None:
            _check_alone(lines, index, following)
            context = len(blocks), index + 1
        else:
            problem = f'"{CONTEXT_LINE}" is in line {context[1]} already; delete one of the two lines.'
            raise EditFormatError(index + 1, problem)
    return ParsedEdit(tuple(blocks), context[0] if context else 0)


def _speakers(name: str) -> dict[Role, str]:
    shown = shown_name(name)
    return {Role.USER: HUMAN, Role.ASSISTANT: shown, Role.TOOL_USE: f"{shown} (tool)"}


def _written(block: Block, speakers: dict[Role, str], is_header_like: LineTest) -> str:
    first, *others = block.body.split("\n")
    blank_from = len(others)
    while blank_from and not others[blank_from - 1].strip():
        blank_from -= 1
    written = escaped(others[:blank_from], is_header_like)
    blank = [f"\\{line}" for line in others[blank_from:]]
    return "\n".join([f"[{block.time}] {speakers[block.role]}: {first}", *written, *blank, *block.attachments])


def _opening_rule(lines: Sequence[str]) -> int:
    """Return the index of the line ``---`` after the comments at the top."""
    for index, line in enumerate(lines):
        if line.rstrip() == _RULE:
            return index
        if line.strip() and not line.startswith("#"):
            raise EditFormatError(index + 1, f'a line "{_RULE}" must come first; only comments (#) may come before it.')
    raise EditFormatError(len(lines), f'the line "{_RULE}" that comes before the messages is missing.')


def _marks(lines: Sequence[str], rule: int) -> list[tuple[int, str]]:
    """Return the index and kind of each header and mark; the last one is the end line."""
    marks: list[tuple[int, str]] = []
    for index in range(rule + 1, len(lines)):
        mark = MARK.match(lines[index])
        if mark is not None:
            marks.append((index, str(mark.lastgroup)))
            if mark.lastgroup == "end":
                break
        elif not marks and lines[index].strip():
            raise EditFormatError(index + 1, f"no message begins before this text; {_hint()}")
    else:
        raise EditFormatError(
            len(lines),
            f'the line "{END_LINE}" is missing, so messages may be missing too; put it after the last message.',
        )
    for index in range(marks[-1][0] + 1, len(lines)):
        if lines[index].strip() and not lines[index].startswith("#"):
            raise EditFormatError(index + 1, f'this text is below "{END_LINE}" and belongs to no message; move it up.')
    return marks


def _check_alone(lines: Sequence[str], mark: int, following: int) -> None:
    """Refuse text between the line "context starts here" and the next message, such as the rest of a message."""
    for index in range(mark + 1, following):
        if lines[index].strip():
            problem = f'"{CONTEXT_LINE}" must be between messages, but line {index + 1} begins no message.'
            raise EditFormatError(mark + 1, problem)


def _check_header_like(lines: Sequence[str], marks: Sequence[tuple[int, str]], is_header_like: LineTest) -> None:
    """Refuse a line in a message if it looks like a header: a message would silently join the message above it."""
    for (mark, kind), (following, _) in pairwise(marks):
        for number, line in enumerate(lines[mark + 1 : following] if kind == "header" else (), mark + 2):
            if ":" in line and is_header_like(line):
                raise EditFormatError(number, f"{_NO_BEGINNING}; {_hint()}")


def _block(lines: Sequence[str], index: int, following: int, roles: dict[str, Role], is_header_like: LineTest) -> Block:
    header = HEADER.fullmatch(lines[index])
    if header is None:
        raise EditFormatError(index + 1, f"{_NO_BEGINNING}; {_hint()}")
    time, speaker, first = header.groups()
    role = roles.get(folded(speaker))
    if role is None:
        raise EditFormatError(index + 1, f"nobody here is called {speaker[:LONGEST_NAME]!r}; {_hint()}")
    try:
        datetime.fromisoformat(time)
    except ValueError as error:
        raise EditFormatError(index + 1, f"there is no such time as {time}; {_hint()}") from error
    written = [line for line in lines[index + 1 : following] if not ATTACHMENT.match(line)]
    while written and not written[-1].strip():
        written.pop()
    attachments = (line.rstrip() for line in lines[index + 1 : following] if ATTACHMENT.match(line))
    body = "\n".join([first, *unescaped(written, is_header_like)])
    return Block(role, time, body, index + 1, tuple(attachments))


def _hint() -> str:
    return (
        f"begin a message with [2025-01-18 22:15:03] {HUMAN}: TEXT, or put a \\ before this line if it is part of one."
    )
