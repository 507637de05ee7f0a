"""The memory in a request: HOT items in the system message, others in the preamble of a question that refers to them.

The block of HOT items is chosen when a prefix begins and stays the same until the prefix ends, because the provider's
cache needs the same beginning. An item that becomes HOT meanwhile goes into the preamble of the next question. No
preamble repeats an item that the request has already in its present wording.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.log.rules.messages import Message, MessageContent, Role
from chorus_cli.memory.rules import recall
from chorus_cli.memory.rules.items import Item, Tier
from chorus_cli.models.rules.declaration import without_note

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from chorus_cli.models.rules.budget import Budget

MOST_HOT = 100
MOST_RECALLED = 5
_HOT_SHARE = 0.1
_RECALLED_SHARE = 0.05
_HEADING_TOKENS = 4
FORGOTTEN = "(forgotten)"
CORRECTED = "corrected: the new wording will be sent with your next message"
_REASONS_OUTSIDE: Mapping[Tier, str] = {
    Tier.HOT: "HOT: will be sent with your next message, if there is room",
    Tier.WARM: "WARM: sent when a message refers to it",
    Tier.COLD: "COLD: only /memory show opens it",
    Tier.ARCHIVED: "ARCHIVED by a flash save",
}


def chosen_hot(items: Sequence[Item], budget: Budget, said: Mapping[int, str]) -> tuple[Item, ...]:
    """Choose the best HOT items that fit a tenth of the model's limit, without those `already_said` in ``said``."""
    unsaid = [item for item in items if not recall.already_said(item, said)]
    return tuple(recall.best_within(unsaid, _hot_room(budget), MOST_HOT))


def _hot_room(budget: Budget) -> int:
    return int(budget.limit.tokens * _HOT_SHARE / budget.calibration.factor)


def block_tokens(items: Sequence[Item]) -> int:
    """Return the estimated tokens of the block of HOT items, with its heading."""
    return _HEADING_TOKENS + sum(map(recall.tokens_in_request, items))


def recall_room(budget: Budget, taken_tokens: int) -> int:
    """Return the estimated tokens that recalled items may take beside ``taken_tokens``; below 0 means none."""
    return max(0, min(int(budget.room.budget * _RECALLED_SHARE), budget.room.budget - taken_tokens) - _HEADING_TOKENS)


def unsent(items: Iterable[Item], block: Iterable[Item], messages: Sequence[Message]) -> list[Item]:
    """Return the items whose present content is neither in the HOT block nor in the messages of a request."""
    held = {item.id: item.content for item in block}
    recalled, said = mentions(messages), contents(messages)

    def is_sent(item: Item) -> bool:
        if item.id in recalled:
            # The newest mention counts, even if the block has the present wording: the model reads the mention last.
            return recall.has_content(recalled[item.id].text, item)
        return held.get(item.id) == item.content or recall.already_said(item, said)

    return [item for item in items if not is_sent(item)]


def contents(messages: Iterable[Message]) -> dict[int, str]:
    """Return the contents of messages by their ids."""
    return {message.id: message.content for message in messages}


class Mention(NamedTuple):
    """An item as it is written in the preamble of a message, or in the result of the tool that recalls items."""

    message_id: int
    text: str


def mentions(messages: Iterable[Message]) -> dict[int, Mention]:
    """Return the newest mention of each item by its id."""
    found = ((message, message.content if is_recalled(message) else message.preamble) for message in messages)
    return {
        id_: Mention(message.id, text) for message, holder in found for id_, text in recall.items_in(holder).items()
    }


def ids_held(messages: Iterable[Message]) -> set[int]:
    """Return the ids of the items in preambles, and in calls and results of the memory's tools."""
    found = list(messages)
    kept = (_kept_by(message) for message in found if message.role is Role.TOOL_RESULT)
    return {*mentions(found), *(id_ for id_ in kept if id_ is not None)}


def without_forgotten(messages: Sequence[Message], forgotten: Collection[int]) -> list[Message]:
    """Return the messages, with the ``forgotten`` items cut out of preambles and of calls and results of tools.

    The token counts are not reduced: counts that are too large are safe, and an undo makes them true again.
    """
    results = (message for message in messages if message.role is Role.TOOL_RESULT)
    calls = {(row.turn_id, row.tool_call_id) for row in results if _kept_by(row) in forgotten}

    def cut(message: Message) -> Message:
        match message.role:
            case Role.USER if message.preamble:
                return message._replace(preamble=recall.without_items(message.preamble, forgotten))
            case Role.TOOL_RESULT:
                return message._replace(content=_result_without(message.content, forgotten))
            case Role.TOOL_USE if (message.turn_id, message.tool_call_id) in calls:
                return message._replace(tool_calls=_without_content(message.tool_calls or "[]"))
        return message

    return [cut(message) for message in messages]


class MemoryUse(NamedTuple):
    """A memory item, whether the next request has its present wording, and why."""

    item: Item
    sent: bool
    reason: str


def uses(items: Iterable[Item], block: Iterable[Item], messages: Sequence[Message], budget: Budget) -> list[MemoryUse]:
    """Say for each item, in order, whether a request with this HOT block and these messages has it, and why."""
    room = _hot_room(budget)
    listed, held = list(items), {item.id for item in block}
    missing = {item.id for item in unsent(listed, block, messages)}
    recalled = mentions(messages)

    def use(item: Item) -> MemoryUse:
        if item.id in missing:
            if item.tier is Tier.HOT and recall.tokens_in_request(item) > room:
                return MemoryUse(item, sent=False, reason=f"too large: HOT items may take {room:,} tokens")
            if item.id in held or item.id in recalled:
                return MemoryUse(item, sent=False, reason=CORRECTED)
            is_keyed = item.tier is not Tier.HOT and recall.keys_of(item.content) is not None
            keyed = f"{item.tier}: sent when a message has one of its keys"
            return MemoryUse(item, sent=False, reason=keyed if is_keyed else _REASONS_OUTSIDE[item.tier])
        if item.id in recalled:
            return MemoryUse(item, sent=True, reason=f"recalled in message #{recalled[item.id].message_id}")
        if item.id in held:
            reason = "pinned" if item.pinned else "HOT" if item.tier is Tier.HOT else "was HOT when this prefix began"
            return MemoryUse(item, sent=True, reason=reason)
        return MemoryUse(item, sent=True, reason=f"in message #{item.source_message_id} itself")

    return [use(item) for item in listed]


def is_recalled(message: Message | MessageContent) -> bool:
    """Return whether a message is the result of the tool that recalls items."""
    return message.role is Role.TOOL_RESULT and without_note(message.content).startswith(recall.RECALLED_HEADING)


def repeats_items(message: Message | MessageContent) -> bool:
    """Return whether a message is the result of a tool of the memory, which may repeat the content of items."""
    return is_recalled(message) or (message.role is Role.TOOL_RESULT and _kept_by(message) is not None)


def _kept_by(result: Message | MessageContent) -> int | None:
    return recall.kept_id(without_note(result.content))


def _result_without(result: str, forgotten: Collection[int]) -> str:
    """Return a result without the forgotten items, and without a note that quotes such an item from the arguments."""
    answer = without_note(result)
    if recall.kept_id(answer) in forgotten:
        return answer
    if not answer.startswith(recall.RECALLED_HEADING):
        return result
    return result.removesuffix(answer) + (recall.without_items(answer, forgotten) or FORGOTTEN)


def _without_content(tool_calls: str) -> str:
    calls = json.loads(tool_calls)
    for call in calls:
        call["function"]["arguments"] = json.dumps({"content": FORGOTTEN})
    return json.dumps(calls, ensure_ascii=False)
