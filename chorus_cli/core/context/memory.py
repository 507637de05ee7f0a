"""The memory in a request: HOT items in the system message, others before the question that refers to them.

The block of the system message is chosen where a prefix begins and held with it, because a change would cost the
provider's cache. An item that becomes HOT meanwhile, or that a question refers to, goes into the question's preamble
instead, unless a request has it already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.memory.items import Tier
from chorus_cli.core.memory.prompt import already_said, ids_in, tokens_in_request, without_items
from chorus_cli.core.memory.recall import best_within

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from chorus_cli.core.context.budget import Budget
    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.memory.items import Item

MOST_HOT = 100
MOST_RECALLED = 5
_HOT_SHARE = 0.1
_RECALLED_SHARE = 0.05
_HEADING_TOKENS = 6
_REASONS_OUTSIDE: Mapping[Tier, str] = {
    Tier.HOT: "HOT: goes with your next message, if there is room",
    Tier.WARM: "WARM: sent when a message refers to it",
    Tier.COLD: "COLD: only /memory show opens it",
    Tier.ARCHIVED: "ARCHIVED by a flash save",
}


def chosen_hot(items: Sequence[Item], budget: Budget, said: Mapping[int, str]) -> tuple[Item, ...]:
    """Choose the block of the system message from the HOT items, best first: a tenth of the model's limit at most.

    ``said`` holds the messages in context by their ids; an item that was captured from one of them is there already.
    """
    room = int(budget.limit.tokens * _HOT_SHARE / budget.calibration.factor)
    unsaid = [item for item in items if not already_said(item, said)]
    return tuple(best_within(unsaid, room, MOST_HOT))


def block_tokens(items: Sequence[Item]) -> int:
    """Return the estimated tokens of the block."""
    return _HEADING_TOKENS + sum(map(tokens_in_request, items))


def recall_room(budget: Budget, taken_tokens: int) -> int:
    """Return the estimated tokens that recalled items may take, after ``taken_tokens`` of what must be sent."""
    return max(0, min(int(budget.room.budget * _RECALLED_SHARE), budget.room.budget - taken_tokens) - _HEADING_TOKENS)


def unsent(items: Iterable[Item], block: Iterable[Item], messages: Sequence[Message]) -> list[Item]:
    """Return the items that neither the block nor the messages of a request hold, in their order."""
    held = {item.id: item.content for item in block}
    recalled = ids_recalled(messages)
    said = {message.id: message.content for message in messages}
    return [
        item
        for item in items
        if held.get(item.id) != item.content and item.id not in recalled and not already_said(item, said)
    ]


def ids_recalled(messages: Iterable[Message]) -> set[int]:
    """Return the items that stand in the preambles of messages."""
    return {id_ for message in messages if message.preamble for id_ in ids_in(message.preamble)}


def without_forgotten(messages: Iterable[Message], forgotten: Collection[int]) -> list[Message]:
    """Return the messages with the items ``forgotten`` cut out of their preambles.

    A count of tokens that the cut makes too large stays: it is on the safe side, and true again after an undo.
    """
    if not forgotten:
        return list(messages)
    return [
        message._replace(preamble=without_items(message.preamble, forgotten)) if message.preamble else message
        for message in messages
    ]


class MemoryUse(NamedTuple):
    """A memory item, whether the next request has it, and why."""

    item: Item
    sent: bool
    reason: str


def uses(items: Iterable[Item], block: Iterable[Item], messages: Sequence[Message]) -> list[MemoryUse]:
    """Return the use of each item in a request that has this block and these messages, in their order."""
    held = {item.id for item in block}
    recalled = {id_: message.id for message in messages if message.preamble for id_ in ids_in(message.preamble)}
    said = {message.id: message.content for message in messages}

    def use(item: Item) -> MemoryUse:
        if item.id in held:
            return MemoryUse(item, sent=True, reason="pinned" if item.pinned else "HOT")
        if item.id in recalled:
            return MemoryUse(item, sent=True, reason=f"recalled before message #{recalled[item.id]}")
        if already_said(item, said):
            return MemoryUse(item, sent=True, reason=f"in message #{item.source_message_id} itself")
        return MemoryUse(item, sent=False, reason=_REASONS_OUTSIDE[item.tier])

    return [use(item) for item in items]
