"""The state of the memory: its statistics, the checkpoint of a flash save, and the report of one.

A checkpoint is JSON in the shape of the design that the memory follows, where a persona is called an agent.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from chorus_cli.core.errors import MemoryItemError
from chorus_cli.core.time import timestamps
from chorus_cli.memory.rules.items import Tier, checked_score, checked_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.memory.rules.items import Item, ItemType

_SCORE_DIGITS = 6
_LARGEST_ID = 2**63 - 1
_ACTIVE = (Tier.HOT, Tier.WARM, Tier.COLD)
_Value = TypeVar("_Value", str, int, float, list[Any], dict[str, Any])


class CheckpointItem(NamedTuple):
    """An item as a checkpoint holds it."""

    id: int
    item_type: ItemType
    content: str
    score: float


class Checkpoint(NamedTuple):
    """The active items of a persona at a moment; those in ``cold`` were archived then."""

    persona: str
    hot: tuple[CheckpointItem, ...]
    warm: tuple[CheckpointItem, ...]
    cold: tuple[CheckpointItem, ...]
    total_tokens: int
    timestamp: datetime


class FlashReport(NamedTuple):
    """The result of a flash save; tokens are those of the items that are not archived, before and after."""

    checkpoint_id: int
    persona: str
    items_count: int
    items_archived: int
    hot_items_retained: int
    token_count_before: int
    token_count_after: int
    created_at: datetime

    @property
    def reduction_percentage(self) -> float:
        """The share of the tokens that was archived, in percent with two decimal places; 0 if there were none."""
        if not self.token_count_before:
            return 0.0
        return round(100 * (self.token_count_before - self.token_count_after) / self.token_count_before, 2)


class TierTotal(NamedTuple):
    """The number of items in a tier, and their tokens."""

    items: int
    tokens: int


class MemoryStatistics(NamedTuple):
    """Items and tokens of a persona's memory by tier; the totals are those of HOT, WARM and COLD."""

    persona: str
    total_items: int
    hot_count: int
    warm_count: int
    cold_count: int
    archived_count: int
    total_tokens: int
    hot_tokens: int
    warm_tokens: int
    cold_tokens: int
    archived_tokens: int
    last_updated: datetime

    def as_json(self) -> dict[str, JsonValue]:
        """Return the statistics by the names of their fields, with the time as UTC text."""
        return self._asdict() | {"last_updated": timestamps.to_text(self.last_updated)}


def statistics(persona: str, items: Iterable[Item], now: datetime) -> MemoryStatistics:
    """Count items and tokens by tier; an item whose tokens are not counted has none."""
    counts: Counter[Tier] = Counter()
    tokens: Counter[Tier] = Counter()
    for item in items:
        counts[item.tier] += 1
        tokens[item.tier] += item.token_count or 0
    return statistics_of(persona, {tier: TierTotal(counts[tier], tokens[tier]) for tier in counts}, now)


def statistics_of(persona: str, totals: Mapping[Tier, TierTotal], updated: datetime) -> MemoryStatistics:
    """Return the statistics of a memory from the totals of its tiers; a tier may be missing."""
    hot, warm, cold, archived = (totals.get(tier, TierTotal(0, 0)) for tier in (*_ACTIVE, Tier.ARCHIVED))
    return MemoryStatistics(
        persona=persona,
        total_items=hot.items + warm.items + cold.items,
        hot_count=hot.items,
        warm_count=warm.items,
        cold_count=cold.items,
        archived_count=archived.items,
        total_tokens=hot.tokens + warm.tokens + cold.tokens,
        hot_tokens=hot.tokens,
        warm_tokens=warm.tokens,
        cold_tokens=cold.tokens,
        archived_tokens=archived.tokens,
        last_updated=updated,
    )


def checkpoint_json(persona: str, items: Iterable[Item], now: datetime) -> str:
    """Return the text of a checkpoint of the items that are not archived, in order of id."""
    held = sorted(items, key=lambda item: item.id)
    counted = statistics(persona, held, now)
    state = {f"{tier.lower()}_items": [_written(item) for item in held if item.tier is tier] for tier in _ACTIVE}
    metrics = {key: getattr(counted, key) for key in ("total_items", "hot_count", "warm_count", "cold_count")}
    document = {
        "agent_id": persona,
        "context_state": state,
        "metrics": metrics | {"total_tokens": counted.total_tokens},
        "timestamp": f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    return json.dumps(document, ensure_ascii=False)


def read_checkpoint(text: str) -> Checkpoint:
    """Return the checkpoint of a text.

    Raises:
        MemoryItemError: the text is no checkpoint; the sentence names the fault.
    """
    try:
        document = json.loads(text)
        return _checkpoint(_of_kind({"checkpoint": document}, "checkpoint", dict))
    except (ValueError, RecursionError, OverflowError):
        raise MemoryItemError("The checkpoint cannot be read: it is not valid. The memory was not changed.") from None


def _written(item: Item) -> dict[str, JsonValue]:
    score = round(item.importance_score, _SCORE_DIGITS)
    return {"id": item.id, "type": item.item_type, "content": item.content, "score": score}


def _checkpoint(document: Mapping[str, Any]) -> Checkpoint:
    state = _of_kind(document, "context_state", dict)
    hot, warm, cold = (
        tuple(_read(each) for each in _of_kind(state, f"{tier.lower()}_items", list)) for tier in _ACTIVE
    )
    tokens = _of_kind(_of_kind(document, "metrics", dict), "total_tokens", int)
    moment = timestamps.from_text(_of_kind(document, "timestamp", str))
    return Checkpoint(_of_kind(document, "agent_id", str), hot, warm, cold, tokens, moment)


def _read(value: object) -> CheckpointItem:
    item = _of_kind({"item": value}, "item", dict)
    number, score = _of_kind(item, "id", int), item.get("score")
    score = float(_of_kind(item, "score", int if isinstance(score, int) else float))
    if not 0 < number <= _LARGEST_ID:
        raise ValueError(number)
    name, content = _of_kind(item, "type", str), _of_kind(item, "content", str)
    try:
        return CheckpointItem(number, checked_type(name), content, checked_score(score))
    except MemoryItemError as error:
        raise MemoryItemError(
            f"The checkpoint cannot be read: it is not valid. {error}. The memory was not changed."
        ) from None


def _of_kind(values: Mapping[str, Any], key: str, kind: type[_Value]) -> _Value:
    value = values.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MemoryItemError(
            f'The checkpoint cannot be read: its "{key}" is missing or of the wrong kind. The memory was not changed.'
        )
    return value
