"""Chooses the rows to edit, writes their text, and turns the edited text back into rows and new messages.

Each block of the text is matched with the original messages by its time, speaker and words. An unchanged message thus
stays the same row, with its exact bytes, microseconds and tool data. Blanks at line ends do not count, because editors
strip them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from chorus_cli.core.errors import EditFormatError
from chorus_cli.core.text.code_points import without_nul
from chorus_cli.core.time import timestamps
from chorus_cli.editing.rules.format import Block, ParsedEdit, render, shown_name, with_line_feeds
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.attachments import Attachment, attachment_line
from chorus_cli.log.rules.calls import calls_in_words
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Status, is_filled
from chorus_cli.log.rules.operations import Operation

_TOOL_ROLES = frozenset({Role.TOOL_USE, Role.TOOL_RESULT})
_TIME_LENGTH = len("2025-01-18 22:15:03")
_RESULT_SIGN = "→"
_FIRST_YEAR, _LAST_YEAR = 1000, 9998


class Entry(NamedTuple):
    """A block of the original text with its row, or with the rows of tool calls and their results."""

    block: Block
    rows: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """The text for the user, and the entries that it was made from. Its times are in ``zone`` (``None``: local)."""

    name: str
    text: str
    before: tuple[Entry, ...]
    context: tuple[Entry, ...]
    zone: tzinfo | None
    attachments: Mapping[str, Attachment] = field(default_factory=dict)

    @property
    def members(self) -> list[Member]:
        """The ids of the rows in context, in their order."""
        return [row.id for entry in self.context for row in entry.rows]


Member = int | MessageContent
"""The id of a row of the log, or a new message; a new message that ``revises`` a row is a rewording of the row."""


class EditCounts(NamedTuple):
    """How many messages an edit reworded, left out and added, and how many the context has after the edit."""

    reworded: int = 0
    left_out: int = 0
    added: int = 0
    all: int = 0


class EditScope(NamedTuple):
    """The rows above (``before``) and below (``context``) the line "context starts here".

    ``settled`` are all rows in context before a running turn, shown or not. The turn's ids follow ``after_message_id``.
    """

    before: tuple[Message, ...]
    context: tuple[Message, ...]
    settled: tuple[Message, ...]
    after_message_id: int


def edit_scope(
    seen: Sequence[Message],
    history: Iterable[Message],
    operations: Sequence[Operation],
    newest_id: int,
    shown_since: datetime | None,
) -> EditScope:
    """Choose rows of the view (``seen``) and of the log.

    Rows that are empty, reworded or replaced, and rows that an undone operation put in, are left out.
    """
    running = min((row.turn_id for row in seen if row.status is Status.STREAMING), default=newest_id + 1)
    settled = [row for row in seen if row.turn_id < running and _is_shown(row)]
    too_old = {row.id for row in settled if shown_since is not None and row.timestamp <= shown_since}
    counting = {operation.id for operation in journal.effective(operations)}
    known = [row for row in history if row.introduced_by is None or row.introduced_by in counting]
    marks = journal.log_marks(operations, 0)
    elsewhere = {row.id for row in seen} | {row.revises for row in [*known, *seen]}
    older = (row for row in known if row.id not in elsewhere and not marks.is_replaced(row))
    return EditScope(
        before=tuple(row for row in older if row.turn_id < running and _is_shown(row)),
        context=tuple(row for row in settled if row.id not in too_old),
        settled=tuple(settled),
        after_message_id=running - 1,
    )


def laid_out(name: str, before: Iterable[Message], context: Iterable[Message], zone: tzinfo | None = None) -> Sheet:
    """Return the text for editing the ``context``; ``before`` are rows that are not in context, in order of the log."""
    older, newer = list(before), list(context)
    lines = _attachment_lines([*older, *newer])
    above, below = _entries(older, lines, zone), _entries(newer, lines, zone)
    text = render(name, (entry.block for entry in above), (entry.block for entry in below))
    return Sheet(shown_name(name), text, above, below, zone, {line: each for each, line in lines.items()})


def matched(parsed: ParsedEdit, sheet: Sheet, thread_id: int) -> list[Member]:
    """Compare the edited text with the original ``sheet``, and return the new members of a thread's context in order.

    Above the line "context starts here", moving, copying and deleting have no effect. A new or changed block there is
    refused, because its words would be lost. If a clock change repeats a local time, the first moment is taken; if it
    skips the time, the offset before the change is used.
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
            members += [row.id for row in entries[same[index]].rows]
        else:
            source = entries[reworded[index]].rows[0] if index in reworded else None
            members.append(_changed(block, source, sheet, thread_id))
    return members


def with_hidden(members: Sequence[Member], scope: EditScope) -> list[Member]:
    """Insert the rows that were not shown into the members, each after the row that came before it."""
    shown = {row.id for row in scope.context}
    kept = {_row_of(member) for member in members}
    followers: dict[int, list[Member]] = {}
    last = 0
    for row in scope.settled:
        if row.id not in shown:
            # A hidden row that followed a deleted row now follows the row before the deleted one.
            followers.setdefault(last, []).append(row.id)
        elif row.id in kept:
            last = row.id
    mixed = followers.pop(0, [])
    for member in members:
        mixed += [member, *followers.get(_row_of(member), [])]
    return mixed


def _row_of(member: Member) -> int:
    """Return the id of a member's row, or of the row that a member rewords; 0 for any other new message."""
    return member if isinstance(member, int) else member.revises or 0


def edit_counts(members: Sequence[Member], before: Sequence[Member]) -> EditCounts:
    """Count the changes of an edit; ``before`` has the members before the edit."""
    rows = [_row_of(member) for member in members]
    return EditCounts(
        reworded=sum(isinstance(member, MessageContent) and member.revises is not None for member in members),
        left_out=len({*before} - {*rows}),
        added=rows.count(0),
    )


def _is_shown(row: Message) -> bool:
    spoken = row.role in {Role.USER, Role.ASSISTANT}
    return row.status is not Status.STREAMING and (not spoken or is_filled(row))


def _attachment_lines(rows: Iterable[Message]) -> dict[Attachment, str]:
    """Return the line of each attachment; if several have the same label, a number tells them apart."""
    lines: dict[Attachment, str] = {}
    taken: Counter[str] = Counter()
    for attachment in (each for row in rows for each in row.attachments):
        if attachment not in lines:
            label = attachment.label
            taken[label] += 1
            lines[attachment] = attachment_line(label if taken[label] == 1 else f"{label}, {taken[label]}")
    return lines


def _entries(rows: Sequence[Message], lines: Mapping[Attachment, str], zone: tzinfo | None) -> tuple[Entry, ...]:
    return tuple(Entry(_block(group, lines, zone), tuple(group)) for group in _groups(rows))


def _groups(rows: Sequence[Message]) -> Iterator[list[Message]]:
    """Group a tool call with its result, and parallel calls with all their results; any other row is its own group."""
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


def _block(rows: Sequence[Message], lines: Mapping[Attachment, str], zone: tzinfo | None) -> Block:
    first = rows[0]
    time = str(timestamps.local(first.timestamp, zone))[:_TIME_LENGTH]
    if first.role in _TOOL_ROLES:
        return Block(Role.TOOL_USE, time, with_line_feeds("\n".join(map(_tool_words, rows))))
    attachments = tuple(lines[each] for each in first.attachments)
    return Block(first.role, time, with_line_feeds(first.content), attachments=attachments)


def _tool_words(row: Message) -> str:
    """Return the words of a row with the names and arguments of its calls; a result begins with an arrow."""
    if row.role is Role.TOOL_RESULT:
        return f"{_RESULT_SIGN} {row.content}"
    return "\n".join(filter(None, [row.content, calls_in_words(row.tool_calls or "")]))


_Claims = dict[int, int]
"""Maps the index of a block to the index of the entry that the block comes from."""


def _sources(
    sought: Sequence[str], offered: Sequence[str], start: int, context_start: int
) -> tuple[_Claims, _Claims, _Claims]:
    """Return the claims of unchanged blocks above ``start``, unchanged blocks below, and reworded blocks below."""
    blocks, entries = dict(enumerate(sought)), dict(enumerate(offered))
    inside = range(start, len(sought))
    everywhere = range(len(offered))
    same = _claimed(blocks, entries, inside, range(context_start, len(offered)), str)
    same |= _claimed(blocks, entries, inside, everywhere, str)
    above = _claimed(blocks, entries, range(start), everywhere, str)
    return above, same, _claimed(blocks, entries, inside, everywhere, lambda traits: traits.partition("\n")[0])


def _claimed(
    blocks: dict[int, str], entries: dict[int, str], seekers: range, places: range, likeness: Callable[[str], str]
) -> _Claims:
    """Remove and return pairs of a block and an entry that are alike; of equal blocks, the k-th gets the k-th entry."""
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
        if (entry := first.pop(key, None)) is None:
            continue
        claimed[seeker] = entry
        del blocks[seeker], entries[entry]
        if (after := following[entry]) is not None:
            first[key] = after
    return claimed


def _traits(block: Block) -> str:
    """Return the key for matching a block: its time, speaker, attachments and words, without blanks at line ends."""
    # The attachments come before the text, so that no line of the text can be taken for an attachment.
    words = [str(block.attachments), *map(str.rstrip, block.body.split("\n"))]
    return "\n".join([f"{block.time} {block.role}", *words])


def _check_above(blocks: Sequence[Block], sought: Sequence[str], offered: Sequence[str]) -> None:
    """Refuse new words above the context, because they would be lost."""
    known = set(offered)
    for block, traits in zip(blocks, sought, strict=False):
        if traits not in known:
            raise EditFormatError(
                block.line,
                'this message is new or changed, but no message above the line "context starts here" is sent; '
                "move it below the line, put it back as it was, or delete it.",
            )


def _changed(block: Block, source: Message | None, sheet: Sheet, thread_id: int) -> MessageContent:
    if block.role is Role.TOOL_USE:
        raise EditFormatError(
            block.line, "tool calls cannot be changed or added; put this block back as it was, or delete all of it."
        )
    if unknown := next((line for line in block.attachments if line not in sheet.attachments), None):
        raise EditFormatError(
            block.line,
            f"no message here has the file {unknown}; put a \\ before that line if it is text, or delete it. "
            "/attach FILE attaches a file to your next message.",
        )
    attachments = tuple(sheet.attachments[line] for line in block.attachments)
    body = without_nul(block.body)
    if not body.strip() and not attachments:
        raise EditFormatError(block.line, "this message has no text; write some, or delete this line too.")
    if source is None:
        return MessageContent(thread_id, block.role, body, _moment(block, sheet.zone), attachments=attachments)
    return reworded(source, thread_id, body)._replace(attachments=attachments)


def reworded(source: Message, thread_id: int, words: str) -> MessageContent:
    """Return a message that replaces a row, with other words, in the context of a thread."""
    return MessageContent(
        thread_id,
        source.role,
        words,
        source.timestamp,
        source.turn_id,
        revises=source.id,
        preamble=source.preamble,
        model=source.model,
        attachments=source.attachments,
    )


def _moment(block: Block, zone: tzinfo | None) -> datetime:
    local = datetime.fromisoformat(block.time)
    if not _FIRST_YEAR <= local.year <= _LAST_YEAR:
        raise EditFormatError(block.line, f"{block.time} is too far away; write another time.")
    return (local if zone is None else local.replace(tzinfo=zone)).astimezone(UTC)
