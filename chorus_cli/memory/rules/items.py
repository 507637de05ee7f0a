"""Memory items: types, tiers and scores, and the checks of values that a user or a model gives.

The sentences of refusal are those of the design that the memory follows, word for word.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from enum import StrEnum
from math import exp, log
from typing import TYPE_CHECKING, NamedTuple, Self

from chorus_cli.core import limits
from chorus_cli.core.errors import MemoryItemError

if TYPE_CHECKING:
    from datetime import datetime

LONGEST_CONTENT = limits.MEMORY_ITEM.most
"""Characters of the longest content."""

_WEIGHTS = {"TASK": 1.0, "CODE": 0.8, "ERROR": 0.7, "TEST_RESULT": 0.6, "PRD_SECTION": 0.5}


class ItemType(StrEnum):
    """The kind of an item's content; ``weight`` is its share of the score, from 0 to 1."""

    TASK = "TASK"
    CODE = "CODE"
    ERROR = "ERROR"
    TEST_RESULT = "TEST_RESULT"
    PRD_SECTION = "PRD_SECTION"

    weight: float

    def __new__(cls, value: str) -> Self:
        """Make a member with its weight, which a renewal asks of thousands."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.weight = _WEIGHTS[value]
        return member


class Tier(StrEnum):
    """How near to a request an item is: always in it, on reference, on demand, or put away by a flash save."""

    HOT = "HOT"
    WARM = "WARM"
    COLD = "COLD"
    ARCHIVED = "ARCHIVED"


class Item(NamedTuple):
    """One memory item: a tuple, because a renewal reads thousands.

    ``created_at`` and ``last_accessed`` are aware. ``source_message_id`` is the message it was captured from, ``None``
    for an item that was typed. ``token_count`` counts the content; ``None`` means not yet counted.
    """

    id: int
    persona: str
    item_type: ItemType
    content: str
    importance_score: float
    tier: Tier
    created_at: datetime
    last_accessed: datetime
    pinned: bool = False
    access_count: int = 0
    source_message_id: int | None = None
    token_count: int | None = None


def checked_content(text: str) -> str:
    """Return the content without the blanks around it.

    Raises:
        MemoryItemError: nothing is left, or more than 100,000 characters are.
    """
    content = text.strip()
    if not content:
        raise MemoryItemError("Content cannot be empty or whitespace-only")
    if len(content) > LONGEST_CONTENT:
        raise MemoryItemError(f"Content exceeds maximum length of {LONGEST_CONTENT} characters")
    return content


def checked_type(text: str) -> ItemType:
    """Return the type of that name, in any case and with ``-`` or a blank for ``_``.

    Raises:
        MemoryItemError: there is no such type.
    """
    try:
        return ItemType(_as_name(text))
    except ValueError:
        raise MemoryItemError(f"Invalid item type, must be one of: {', '.join(ItemType)}") from None


def checked_tier(text: str) -> Tier:
    """Return the tier of that name, in any case; ``ARCHIVED`` is one, though the sentence names those of active items.

    Raises:
        MemoryItemError: there is no such tier.
    """
    try:
        return Tier(_as_name(text))
    except ValueError:
        raise MemoryItemError("Tier must be one of: HOT, WARM, COLD") from None


def checked_score(score: float) -> float:
    """Return a score from 0 to 1.

    Raises:
        MemoryItemError: it is outside.
    """
    if not 0.0 <= score <= 1.0:
        raise MemoryItemError("Importance score must be between 0.0 and 1.0")
    return score


def content_hash(text: str) -> str:
    """Return the hash by which equal contents are known, and their token counts: 64 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def _as_name(text: str) -> str:
    return text.strip().upper().replace("-", "_").replace(" ", "_")


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
