"""From what is in context to the request: the prompt, part by part.

One system message comes first (system prompt, documents, summary), then the view, word for word. A request that would
be too large leaves out whole turns from the oldest until it takes half of the model's limit, but keeps the last two.
What is still too large is cut in the middle, the longest messages first; the newest user message stays whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chorus_cli.core.budget import TOKENS_PER_MESSAGE
from chorus_cli.core.cutting import cut_in_the_middle
from chorus_cli.core.exchange import PromptMessage
from chorus_cli.core.messages import Message, Role, Status, turns
from chorus_cli.core.preamble import joined
from chorus_cli.core.summary import HEADING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from chorus_cli.core.budget import Room
    from chorus_cli.core.persona import Document
    from chorus_cli.core.summary import Summary

BROKEN_OFF = "[this reply broke off here]"
LEAD = "(The conversation goes on.)"
KEPT_TURNS = 2
"""How many turns before the newest question are never folded or left out while there is another way."""

_MARK_TOKENS = 8
_LEAD_TOKENS = _MARK_TOKENS + TOKENS_PER_MESSAGE
_HEADING_TOKENS = 10
_SMALLEST_CAP = 64


@dataclass(frozen=True, slots=True)
class Foundation:
    """What stands before the messages: the system message's text, and the tokens of each of its parts."""

    text: str
    system_prompt_tokens: int
    document_tokens: int
    summary_tokens: int = 0

    @property
    def tokens(self) -> int:
        """The whole system message."""
        return self.system_prompt_tokens + self.document_tokens + self.summary_tokens + TOKENS_PER_MESSAGE

    def with_summary(self, summary: Summary | None) -> Foundation:
        """Return it with what stands for the older part of the conversation."""
        if summary is None:
            return self
        text = f"{self.text}\n\n{HEADING}\n{summary.content}"
        return replace(self, text=text, summary_tokens=(summary.token_count or 0) + _HEADING_TOKENS)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of a request, the rows they come from, those that were cut or left out, and their tokens."""

    messages: tuple[PromptMessage, ...]
    sent: tuple[Message, ...]
    too_large: tuple[Message, ...]
    foundation: Foundation
    message_tokens: int
    cut: tuple[Message, ...] = ()

    @property
    def tokens(self) -> int:
        """The estimate for the whole request."""
        return self.foundation.tokens + self.message_tokens


def system_text(system_prompt: str, documents: Iterable[Document]) -> str:
    """Return the system message: the prompt, then each document under its name."""
    return "\n\n".join([system_prompt, *(f"# {document.name}\n\n{document.content}" for document in documents)])


def assemble(foundation: Foundation, view: Sequence[Message], room: Room, count: Callable[[str], int]) -> Prompt:
    """Build the request from the view; every message of it must be counted, as ``count`` does.

    It fits ``room`` if the foundation and the newest user message do.
    """
    rows = usable(view)
    left = _without_oldest_turns(rows, room, foundation.tokens)
    fitted = _cut_to_fit(left, room.budget - foundation.tokens, count)
    known = {row.id: row for row in rows}
    sent = {row.id for row in fitted}
    lead = [PromptMessage("user", LEAD)] if _needs_lead(fitted) else []
    return Prompt(
        messages=(PromptMessage("system", foundation.text), *lead, *map(_as_sent, fitted)),
        sent=tuple(fitted),
        too_large=tuple(row for row in rows if row.id not in sent),
        foundation=foundation,
        message_tokens=total_tokens(fitted),
        cut=tuple(known[row.id] for row in fitted if row is not known[row.id]),
    )


def tokens_of(message: Message) -> int:
    """Return what a stored message costs in a request; its own count must be known."""
    mark = _MARK_TOKENS if message.status.broke_off else 0
    return (message.token_count or 0) + TOKENS_PER_MESSAGE + mark


def total_tokens(rows: Sequence[Message]) -> int:
    """Return what messages cost together, with the line that leads a view which no user begins."""
    return _lead_tokens(rows) + sum(map(tokens_of, rows))


def text_tokens(message: Message, count: Callable[[str], int]) -> int:
    """Count everything that a message says."""
    return sum(map(count, filter(None, (message.preamble, message.content, message.tool_calls))))


def usable(view: Sequence[Message]) -> list[Message]:
    """Leave out what a model must not see: replies in progress, empty rows, and tool rows without their partner."""
    calls = {(row.turn_id, row.tool_call_id) for row in view if row.role is Role.TOOL_USE}
    results = {(row.turn_id, row.tool_call_id) for row in view if row.role is Role.TOOL_RESULT}
    paired = calls & results

    def is_usable(row: Message) -> bool:
        if row.role in {Role.TOOL_USE, Role.TOOL_RESULT}:
            return (row.turn_id, row.tool_call_id) in paired
        return row.status is not Status.STREAMING and bool(row.content.strip())

    return [row for row in view if is_usable(row)]


def _needs_lead(rows: Sequence[Message]) -> bool:
    """Return whether the first message is none of the user's, which some models require."""
    return bool(rows) and rows[0].role is not Role.USER


def _lead_tokens(rows: Sequence[Message]) -> int:
    return _LEAD_TOKENS if _needs_lead(rows) else 0


def _without_oldest_turns(rows: Sequence[Message], room: Room, fixed_tokens: int) -> list[Message]:
    """Leave out whole turns from the oldest, down to half of the limit, if there is too much."""
    if fixed_tokens + total_tokens(rows) <= room.budget:
        return list(rows)
    groups = turns(rows)
    newest_question = max((place for place, group in enumerate(groups) if _asks(group)), default=len(groups) - 1)
    is_open = bool(groups) and groups[-1][-1].role is Role.USER
    first, last = 0, min(len(groups) - KEPT_TURNS - is_open, newest_question)
    left = fixed_tokens + sum(map(tokens_of, rows))
    while first < last and left + _lead_tokens(groups[first]) > room.half:
        left -= sum(map(tokens_of, groups[first]))
        first += 1
    return [row for group in groups[first:] for row in group]


def _asks(group: Sequence[Message]) -> bool:
    return any(row.role is Role.USER for row in group)


def _cut_to_fit(rows: list[Message], room_tokens: int, count: Callable[[str], int]) -> list[Message]:
    """Cut the longest messages until all fit; where that is not enough, leave out the oldest of what is left."""
    if total_tokens(rows) <= room_tokens:
        return rows
    newest_question = next((row for row in reversed(rows) if row.role is Role.USER), None)
    # Halves of halves, not what just fits: so a message stays cut in the same place while the talk goes on.
    cap = room_tokens // 2
    while cap >= _SMALLEST_CAP:
        cut = [row if row is newest_question else _cut(row, cap, count) for row in rows]
        if total_tokens(cut) <= room_tokens:
            return cut
        cap //= 2
    cut = [row if row is newest_question else _cut(row, _SMALLEST_CAP, count) for row in rows]
    return _without_oldest_rows(cut, newest_question, room_tokens)


def _cut(row: Message, cap_tokens: int, count: Callable[[str], int]) -> Message:
    if tokens_of(row) <= cap_tokens:
        return row
    content_tokens = count(row.content)
    allowed_tokens = max(0, cap_tokens - (tokens_of(row) - content_tokens))
    shortened = replace(row, content=cut_in_the_middle(row.content, content_tokens, allowed_tokens, count))
    return replace(shortened, token_count=text_tokens(shortened, count))


def _without_oldest_rows(rows: list[Message], kept: Message | None, room_tokens: int) -> list[Message]:
    """Leave out message by message from the oldest, a tool's call and its result together, but never ``kept``."""
    units: dict[object, list[Message]] = {}
    for row in rows:
        is_tool = row.role in {Role.TOOL_USE, Role.TOOL_RESULT}
        units.setdefault((row.turn_id, row.tool_call_id) if is_tool else row.id, []).append(row)
    gone: set[int] = set()
    left = _LEAD_TOKENS + sum(map(tokens_of, rows))
    for unit in units.values():
        if left > room_tokens and kept not in unit:
            left -= sum(map(tokens_of, unit))
            gone |= {row.id for row in unit}
    return [row for row in rows if row.id not in gone]


def _as_sent(message: Message) -> PromptMessage:
    match message.role:
        case Role.USER:
            return PromptMessage("user", joined(message.preamble, message.content))
        case Role.TOOL_USE:
            return PromptMessage("assistant", message.content, tool_calls=message.tool_calls)
        case Role.TOOL_RESULT:
            return PromptMessage("tool", message.content, tool_call_id=message.tool_call_id)
        case Role.ASSISTANT:
            broken = f"{message.content}\n{BROKEN_OFF}" if message.status.broke_off else message.content
            return PromptMessage("assistant", broken)
