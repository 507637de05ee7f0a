"""The score of a memory item, and the tier that follows from it.

``score = 0.4·weight + 0.4·e^(-0.5·age in days) + 0.2·min(ln(accesses + 1) / 10, 1)``, held between 0 and 1. An age
below 0 is 0, since a clock may be set back. A score of 0.8 is HOT, one of 0.4 WARM, the rest is COLD.
"""

from __future__ import annotations

from datetime import timedelta
from math import exp, log
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.memory.rules.items import Tier

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.memory.rules.items import Item, ItemType

HOT_FROM, WARM_FROM = 0.8, 0.4

_TYPE_SHARE, _AGE_SHARE, _ACCESS_SHARE = 0.4, 0.4, 0.2
_DECAY_PER_DAY = 0.5
_LOGARITHM_OF_FULL_USE = 10
_DAY = timedelta(days=1)
_EXACT_DIGITS = 12
"""Decimal places of a score that are not noise of the sum: a microsecond of age shows in the twelfth."""


class Score(NamedTuple):
    """A score as its three weighted parts, which ``/memory show`` lists."""

    type_part: float
    age_part: float
    access_part: float

    @property
    def total(self) -> float:
        """The score, from 0 to 1."""
        return min(max(self.type_part + self.age_part + self.access_part, 0.0), 1.0)


def importance(item_type: ItemType, created_at: datetime, access_count: int, now: datetime) -> Score:
    """Return the score of an item; a negative number of accesses counts as none."""
    age_days = max(now - created_at, timedelta()) / _DAY
    use = min(log(max(access_count, 0) + 1) / _LOGARITHM_OF_FULL_USE, 1.0)
    return Score(_TYPE_SHARE * item_type.weight, _AGE_SHARE * exp(-_DECAY_PER_DAY * age_days), _ACCESS_SHARE * use)


def tier_of(score: float, *, pinned: bool = False) -> Tier:
    """Return the tier of an active item; a pinned one is HOT."""
    exact = round(score, _EXACT_DIGITS)
    if pinned or exact >= HOT_FROM:
        return Tier.HOT
    return Tier.WARM if exact >= WARM_FROM else Tier.COLD


def renewed(item: Item, now: datetime) -> Item:
    """Return an item with the score and tier of ``now``; an ARCHIVED one stays as it is."""
    if item.tier is Tier.ARCHIVED:
        return item
    score = importance(item.item_type, item.created_at, item.access_count, now).total
    return item._replace(importance_score=score, tier=tier_of(score, pinned=item.pinned))


def accessed(item: Item, now: datetime) -> Item:
    """Return an item after one more access at ``now``, renewed; an ARCHIVED one keeps its score and tier."""
    return renewed(item._replace(access_count=item.access_count + 1, last_accessed=now), now)
