"""The state of the memory: its statistics, the checkpoint of a flash save, and the report of one.

A checkpoint is JSON in the shape of the design that the memory follows, where a persona is called an agent.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import MemoryItemError
from chorus_cli.core.json.values import record, records, whole_number
from chorus_cli.core.time import timestamps
from chorus_cli.memory.rules.items import Tier

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.memory.rules.items import Item

ACTIVE = (Tier.HOT, Tier.WARM, Tier.COLD)
_SCORE_DIGITS = 6


class FlashReport(NamedTuple):
    """The result of a flash save; tokens are those of the items that are not archived, before and after."""

    checkpoint_id: int
    items_count: int
    items_archived: int
    hot_items_retained: int
    token_count_before: int
    token_count_after: int

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
    """The totals of a persona's memory by tier, of which those without items may be missing."""

    persona: str
    tiers: Mapping[Tier, TierTotal]
    last_updated: datetime

    def of(self, *tiers: Tier) -> TierTotal:
        """Return the total of some tiers together."""
        totals = [self.tiers.get(tier, TierTotal(0, 0)) for tier in tiers]
        return TierTotal(sum(total.items for total in totals), sum(total.tokens for total in totals))

    def as_json(self) -> dict[str, JsonValue]:
        """Return the totals of the tiers, and those of the active ones together, for a program."""
        active = self.of(*ACTIVE)
        return {
            "persona": self.persona,
            "total_items": active.items,
            **{f"{tier.lower()}_count": self.of(tier).items for tier in Tier},
            "total_tokens": active.tokens,
            **{f"{tier.lower()}_tokens": self.of(tier).tokens for tier in Tier},
            "last_updated": timestamps.to_text(self.last_updated),
        }


def statistics(persona: str, items: Iterable[Item], now: datetime) -> MemoryStatistics:
    """Count items and tokens by tier; an item whose tokens are not counted has none."""
    counts: Counter[Tier] = Counter()
    tokens: Counter[Tier] = Counter()
    for item in items:
        counts[item.tier] += 1
        tokens[item.tier] += item.token_count or 0
    return MemoryStatistics(persona, {tier: TierTotal(counts[tier], tokens[tier]) for tier in counts}, now)


def checkpoint_json(persona: str, items: Iterable[Item], now: datetime) -> str:
    """Return the text of a checkpoint of the items that are not archived, in order of id."""
    held = sorted(items, key=lambda item: item.id)
    counted = statistics(persona, held, now).as_json()
    metrics = ("total_items", *(f"{tier.lower()}_count" for tier in ACTIVE), "total_tokens")
    document = {
        "agent_id": persona,
        "context_state": {
            f"{tier.lower()}_items": [_written(item) for item in held if item.tier is tier] for tier in ACTIVE
        },
        "metrics": {key: counted[key] for key in metrics},
        "timestamp": f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    return json.dumps(document, ensure_ascii=False)


def ids_in(checkpoint: str) -> set[int]:
    """Return the ids of the items in the text of a checkpoint, which has at least one.

    Raises:
        MemoryItemError: the text is no checkpoint.
    """
    try:
        state = record(record(json.loads(checkpoint)).get("context_state"))
    except (ValueError, RecursionError):
        state = {}
    held = [each for tier in ACTIVE for each in records(state.get(f"{tier.lower()}_items"))]
    ids = {whole_number(each.get("id")) for each in held} - {0}
    if not ids:
        raise MemoryItemError("The checkpoint cannot be read: it is not valid. The memory was not changed.")
    return ids


def _written(item: Item) -> dict[str, JsonValue]:
    score = round(item.importance_score, _SCORE_DIGITS)
    return {"id": item.id, "type": item.item_type, "content": item.content, "score": score}
