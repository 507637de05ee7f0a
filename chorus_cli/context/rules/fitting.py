"""Makes the messages of a request fit its room: leaves out the oldest turns, and cuts the longest messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chorus_cli.core.text.phrases import cut_in_the_middle
from chorus_cli.log.rules.attachments import with_lines
from chorus_cli.log.rules.messages import TOOL_ROLES, Message, Role, sent_content, turns
from chorus_cli.models.rules.budget import (
    FULLEST_SHARE,
    LEAD_TOKENS,
    Room,
    needs_lead,
    own_tokens,
    tokens_of,
    total_tokens,
)

KEPT_TURNS = 2  # newest turns, besides an unanswered one; no fold summarises them, and they are left out last
_SMALLEST_CAP = 64
_EMPTIEST_SHARE = 3 / 4
"""If a request that begins where the last one began fills less than this share of the target, older turns come back."""


def fitting(
    rows: Sequence[Message], room: Room, fixed_tokens: int, count: Callable[[str], int], begins_at: int | None = None
) -> list[Message]:
    """Return the rows that fit beside ``fixed_tokens`` of other content; shortened copies replace long rows.

    The newest user message is always sent unshortened. ``begins_at`` is the id of the message that the last request
    began with. This request begins there too while that fits, so that the provider's cache helps.
    """
    kept = _without_oldest_turns(rows, room, fixed_tokens, begins_at)
    return _cut_to_fit(kept, room.budget - fixed_tokens, count)


def _without_oldest_turns(
    rows: Sequence[Message], room: Room, fixed_tokens: int, begins_at: int | None
) -> list[Message]:
    """Leave out whole turns from the oldest if the rows are too large; begin at ``begins_at`` if that is enough."""
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
    """Return the place of the first turn to be sent; ``tokens`` is the size of the request with all turns."""
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
    """Cut the longest messages in the middle until all fit; if that is not enough, leave out the oldest messages."""
    if total_tokens(rows) <= room_tokens:
        return rows
    newest_question = next((row for row in reversed(rows) if row.role is Role.USER), None)
    # The cap is halved, not fitted exactly, so that the next requests cut a message in the same place.
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
    content = sent_content(row)
    content_tokens = count(content)
    allowed_tokens = max(0, cap_tokens - (tokens_of(row) - content_tokens))
    shortened = row._replace(content=cut_in_the_middle(content, content_tokens, allowed_tokens, count))
    return shortened._replace(token_count=own_tokens(shortened, count))


def _without_oldest_rows(rows: list[Message], kept: Message | None, room_tokens: int) -> list[Message]:
    """Leave out the oldest messages until the rest fits, but never ``kept``; a call leaves with its result."""
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
