"""Makes the messages of a request fit its room: the oldest turns stay out, the longest messages lose their middle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chorus_cli.core.text.phrases import cut_in_the_middle
from chorus_cli.log.rules.attachments import with_lines
from chorus_cli.log.rules.messages import TOOL_ROLES, Message, Role, turns
from chorus_cli.models.rules.budget import (
    FULLEST_SHARE,
    LEAD_TOKENS,
    Room,
    needs_lead,
    own_tokens,
    tokens_of,
    total_tokens,
)

KEPT_TURNS = 2
"""How many turns before the newest question are never folded or left out while there is another way."""

_SMALLEST_CAP = 64
_EMPTIEST_SHARE = 3 / 4
"""Below which share of what it might have then a request does not begin where the last one did: there is more room."""


def fitting(
    rows: Sequence[Message], room: Room, fixed_tokens: int, count: Callable[[str], int], begins_at: int | None = None
) -> list[Message]:
    """Return what of the rows is sent beside ``fixed_tokens``, shortened copies among them.

    The newest user message is among them, whole. A provider still knows what follows ``begins_at``, the message that
    the last request began with, so this one begins there too while that fits.
    """
    kept = _without_oldest_turns(rows, room, fixed_tokens, begins_at)
    return _cut_to_fit(kept, room.budget - fixed_tokens, count)


def _without_oldest_turns(
    rows: Sequence[Message], room: Room, fixed_tokens: int, begins_at: int | None
) -> list[Message]:
    """Leave out the oldest turns, whole, if there is too much: up to where the last request began if that will do."""
    if fixed_tokens + total_tokens(rows) <= room.budget:
        return list(rows)
    groups = turns(rows)
    asked = (place for place, group in enumerate(groups) if any(row.role is Role.USER for row in group))
    newest_question = max(asked, default=len(groups) - 1)
    is_open = bool(groups) and groups[-1][-1].role is Role.USER
    last = max(0, min(len(groups) - KEPT_TURNS - is_open, newest_question))
    first = _first_kept(groups[: last + 1], fixed_tokens + sum(map(tokens_of, rows)), room, begins_at)
    return [row for group in groups[first:] for row in group]


def _first_kept(groups: Sequence[Sequence[Message]], tokens: int, room: Room, begins_at: int | None) -> int:
    """Return which of the turns is the first to be sent, where all of them would make a request of so many tokens."""
    target = min(room.half, int(FULLEST_SHARE * room.budget))
    needed: list[int] = []
    for group in groups:
        needed.append(tokens + (LEAD_TOKENS if needs_lead(group) else 0))
        tokens -= sum(map(tokens_of, group))
    held = next((place for place, group in enumerate(groups) if group[0].id == begins_at), None)
    if held is not None and _EMPTIEST_SHARE * target <= needed[held] <= room.budget:
        return held
    return next((place for place, each in enumerate(needed) if each <= target), len(groups) - 1)


def _cut_to_fit(rows: list[Message], room_tokens: int, count: Callable[[str], int]) -> list[Message]:
    """Cut the longest messages until all fit; if that is not enough, leave out the oldest remaining ones."""
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
    if row.attachments:
        row = row._replace(content=with_lines(row.content, row.attachments), attachments=())
        return _cut(row._replace(token_count=own_tokens(row, count)), cap_tokens, count)
    content_tokens = count(row.content)
    allowed_tokens = max(0, cap_tokens - (tokens_of(row) - content_tokens))
    shortened = row._replace(content=cut_in_the_middle(row.content, content_tokens, allowed_tokens, count))
    return shortened._replace(token_count=own_tokens(shortened, count))


def _without_oldest_rows(rows: list[Message], kept: Message | None, room_tokens: int) -> list[Message]:
    """Leave out message by message from the oldest, a tool's call and its result together, but never ``kept``."""
    units: dict[object, list[Message]] = {}
    for row in rows:
        is_tool = row.role in TOOL_ROLES
        units.setdefault((row.turn_id, row.tool_call_id) if is_tool else row.id, []).append(row)
    gone: set[int] = set()
    left = LEAD_TOKENS + sum(map(tokens_of, rows))
    for unit in units.values():
        if left > room_tokens and kept not in unit:
            left -= sum(map(tokens_of, unit))
            gone |= {row.id for row in unit}
    return [row for row in rows if row.id not in gone]
