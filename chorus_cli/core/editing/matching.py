"""From messages to the text in which a context is edited, and from the text back to what has become of the messages.

A block of the text is found among the messages that were laid out by its time, speaker and words, so that a message
which was left alone stays the row it is: its exact bytes, its microseconds, its tool data. Blanks at the ends of lines
do not count, because editors strip them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from chorus_cli.core.editing.format import Block, render, shown_name
from chorus_cli.core.editing.lines import with_line_feeds
from chorus_cli.core.errors import EditFormatError
from chorus_cli.core.log.messages import Role
from chorus_cli.core.text.safe_text import join_surrogates
from chorus_cli.core.time import timestamps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import tzinfo

    from chorus_cli.core.editing.format import ParsedEdit
    from chorus_cli.core.log.messages import Message

_TOOL_ROLES = frozenset({Role.TOOL_USE, Role.TOOL_RESULT})
_RESULT_SIGN = "→"
_FIRST_YEAR, _LAST_YEAR = 1000, 9998


@dataclass(frozen=True, slots=True)
class Entry:
    """A block that was laid out, and the ids of its rows: one, or those of tools' calls with their results."""

    block: Block
    row_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is put before the user: the text, and what it was made of.

    Times are local to ``zone``, ``None`` for the system's. What they were shown as is kept, so that a change of the
    system's zone while the editor is open does no harm.
    """

    name: str
    text: str
    before: tuple[Entry, ...]
    context: tuple[Entry, ...]
    zone: tzinfo | None


@dataclass(frozen=True, slots=True)
class Kept:
    """A row that stays, or comes into the context, as it is."""

    message_id: int


@dataclass(frozen=True, slots=True)
class Reworded:
    """A row that gets another text."""

    message_id: int
    text: str


@dataclass(frozen=True, slots=True)
class Added:
    """A message that is new; ``role`` is user or assistant, ``timestamp`` is aware UTC and may lie in the future."""

    role: Role
    timestamp: datetime
    text: str


Member = Kept | Reworded | Added


@dataclass(frozen=True, slots=True)
class ContextEdit:
    """What the context is to be, in order; ``dropped`` are the rows that are in it no longer, in any wording."""

    members: tuple[Member, ...]
    dropped: tuple[int, ...]
    changed: bool


def laid_out(name: str, before: Iterable[Message], context: Iterable[Message], zone: tzinfo | None = None) -> Sheet:
    """Write the text in which the context of the persona called ``name`` is edited.

    ``before`` are the rows that are not in context, in the order of the log; ``context`` are those that are, in
    theirs. No row is in both, and none is superseded by another wording.
    """
    above, below = _entries(before, zone), _entries(context, zone)
    text = render(name, (entry.block for entry in above), (entry.block for entry in below))
    return Sheet(shown_name(name), text, above, below, zone)


def matched(parsed: ParsedEdit, sheet: Sheet) -> ContextEdit:
    """Say what has become of the messages of ``sheet`` in the text that was read.

    Blocks above the line "context starts here" may have been moved, copied or deleted, which means nothing; one that
    was changed or written there is refused, because its words would be lost. A new message has the time that was
    written, the first of two when the clock is set back; a skipped one counts as if the clock had not been set yet.

    Raises:
        EditFormatError: a block above the line was changed, a tool's was changed anywhere, a message has no text, or
            the calendar has no such time.
    """
    entries = (*sheet.before, *sheet.context)
    start = parsed.context_start
    sought = list(map(_traits, parsed.blocks))
    offered = [_traits(entry.block) for entry in entries]
    above, same, reworded = _sources(sought, offered, start, len(sheet.before))
    if len(above) < start:
        _check_above(parsed.blocks[:start], sought, offered)
    members: list[Member] = []
    for index, block in enumerate(parsed.blocks[start:], start):
        if index in same:
            members += map(Kept, entries[same[index]].row_ids)
        else:
            members.append(_changed(block, entries[reworded[index]] if index in reworded else None, sheet.zone))
    inside = {member.message_id for member in members if not isinstance(member, Added)}
    ids = [row_id for entry in sheet.context for row_id in entry.row_ids]
    return ContextEdit(
        members=tuple(members),
        dropped=tuple(row_id for row_id in ids if row_id not in inside),
        changed=[member.message_id if isinstance(member, Kept) else None for member in members] != ids,
    )


def _entries(rows: Iterable[Message], zone: tzinfo | None) -> tuple[Entry, ...]:
    return tuple(Entry(_block(group, zone), tuple(row.id for row in group)) for group in _groups(list(rows)))


def _groups(rows: Sequence[Message]) -> Iterator[list[Message]]:
    """Group neighbouring calls of tools with their results; every other row is alone.

    Calls made side by side, whose results follow together, are one group: it keeps the order of its rows.
    """
    answered = {_call_of(row) for row in rows if row.role is Role.TOOL_RESULT}
    group: list[Message] = []
    pending: set[tuple[int, str | None]] = set()
    for row in rows:
        if group and not (pending and row.role in _TOOL_ROLES):
            yield group
            group = []
            pending.clear()
        group.append(row)
        if row.role is Role.TOOL_USE:
            pending |= {_call_of(row)} & answered
        elif row.role is Role.TOOL_RESULT:
            pending.discard(_call_of(row))
    if group:
        yield group


def _call_of(row: Message) -> tuple[int, str | None]:
    return row.turn_id, row.tool_call_id


def _block(rows: Sequence[Message], zone: tzinfo | None) -> Block:
    first = rows[0]
    time = timestamps.local(first.timestamp, zone).replace(tzinfo=None).isoformat(" ", "seconds")
    if first.role in _TOOL_ROLES:
        return Block(Role.TOOL_USE, time, with_line_feeds("\n".join(map(_tool_words, rows))))
    return Block(first.role, time, with_line_feeds(first.content))


def _tool_words(row: Message) -> str:
    """Show a call as the tool's name and its arguments, a result behind an arrow."""
    if row.role is Role.TOOL_RESULT:
        return f"{_RESULT_SIGN} {row.content}"
    return "\n".join(filter(None, [row.content, _calls(row.tool_calls or "")]))


def _calls(tool_calls: str) -> str:
    """Return the calls in JSON text, one in a line; what is not in the shape of the OpenAI API is shown as it is."""
    try:
        calls: object = json.loads(tool_calls)
    except (ValueError, RecursionError):
        return tool_calls
    words: list[str] = []
    for call in calls if isinstance(calls, list) else [calls]:
        match call:
            case {"function": {"name": str(name), "arguments": str(arguments)}}:
                words.append(join_surrogates(f"{name} {arguments}"))
            case _:
                return tool_calls
    return "\n".join(words)


_Claims = dict[int, int]
"""Blocks and the entries that they come from, by their indices."""


def _sources(
    sought: Sequence[str], offered: Sequence[str], start: int, context_start: int
) -> tuple[_Claims, _Claims, _Claims]:
    """Return the blocks before ``start`` that are as they were, those after it that are, and those that are reworded.

    Whoever is found with its own words is found first, and where it was if there are several. Blocks above only keep
    others from taking their entries.
    """
    blocks, entries = dict(enumerate(sought)), dict(enumerate(offered))
    inside = range(start, len(sought))
    everywhere = range(len(offered))
    same = _claimed(blocks, entries, inside, range(context_start, len(offered)), str)
    same |= _claimed(blocks, entries, inside, everywhere, str)
    above = _claimed(blocks, entries, range(start), everywhere, str)
    return above, same, _claimed(blocks, entries, inside, everywhere, _time_and_speaker)


def _claimed(
    blocks: dict[int, str], entries: dict[int, str], seekers: range, places: range, likeness: Callable[[str], str]
) -> _Claims:
    """Take out of ``blocks`` and ``entries`` what is alike, the k-th of the one with the k-th of the other."""
    seeking = [index for index in seekers if index in blocks]
    first: dict[str, int] = {}
    following: dict[int, int | None] = {}
    for index in reversed(places) if seeking else ():
        if index in entries:
            key = likeness(entries[index])
            following[index] = first.get(key)
            first[key] = index
    claimed: _Claims = {}
    for seeker in seeking:
        key = likeness(blocks[seeker])
        entry = first.pop(key, None)
        if entry is None:
            continue
        claimed[seeker] = entry
        del blocks[seeker], entries[entry]
        if (after := following[entry]) is not None:
            first[key] = after
    return claimed


def _traits(block: Block) -> str:
    """Return by what a block is found: a line of its time and speaker, and its words.

    Editors strip blanks from the ends of lines, so these do not count.
    """
    return "\n".join([f"{block.time} {block.role}", *map(str.rstrip, block.body.split("\n"))])


def _time_and_speaker(traits: str) -> str:
    return traits.partition("\n")[0]


def _check_above(blocks: Sequence[Block], sought: Sequence[str], offered: Sequence[str]) -> None:
    """Refuse words above the context that were not laid out, because nobody would ever see them."""
    known = set(offered)
    for block, traits in zip(blocks, sought, strict=False):
        if traits not in known:
            raise EditFormatError(
                block.line,
                "this message is new or changed, but nobody would see it here; move it below the line "
                '"context starts here", put it back as it was, or delete it.',
            )


def _changed(block: Block, source: Entry | None, zone: tzinfo | None) -> Reworded | Added:
    if block.role is Role.TOOL_USE:
        raise EditFormatError(
            block.line, "what a tool did cannot be changed or made up; put it back as it was, or delete all of it."
        )
    if not block.body.strip():
        raise EditFormatError(block.line, "this message has no text; write some, or delete this line too.")
    if source is not None:
        return Reworded(source.row_ids[0], block.body)
    return Added(block.role, _moment(block, zone), block.body)


def _moment(block: Block, zone: tzinfo | None) -> datetime:
    local = datetime.fromisoformat(block.time)
    if not _FIRST_YEAR <= local.year <= _LAST_YEAR:
        raise EditFormatError(block.line, f"{block.time} is too far away; write another time.")
    return (local if zone is None else local.replace(tzinfo=zone)).astimezone(UTC)
