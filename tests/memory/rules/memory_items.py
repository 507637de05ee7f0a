"""Memory items for tests."""

from __future__ import annotations

from datetime import datetime, timedelta

from chorus_cli.memory.rules.items import Item, ItemType, Tier
from tests.fakes import START


def item(  # noqa: PLR0913 - an item has many columns, and a test names the few that matter
    number: int = 1,
    content: str = "call the plumber",
    item_type: ItemType = ItemType.TASK,
    *,
    score: float = 0.5,
    tier: Tier = Tier.WARM,
    pinned: bool = False,
    accesses: int = 0,
    age: timedelta = timedelta(),
    accessed: datetime = START,
    source: int | None = None,
    tokens: int | None = 10,
) -> Item:
    return Item(
        number, "frodo", item_type, content, score, tier, START - age, accessed, pinned, accesses, source, tokens
    )
