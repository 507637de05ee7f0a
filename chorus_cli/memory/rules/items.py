"""Memory items: types, tiers, scores, checks of values, statistics, checkpoints and rules of replacement.

The errors of `checked_content`, `checked_type` and `checked_tier` and the JSON of a checkpoint follow the memory's
first design word for word. That design calls a persona an agent.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import exp, log
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import MemoryItemError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.json.values import record, records, whole_number
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.search_query import spaced

LONGEST_CONTENT = limits.MEMORY_ITEM.most
"""Characters of the longest content."""


class ItemType(StrEnum):
    """The kind of an item's content."""

    TASK = "TASK"
    CODE = "CODE"
    ERROR = "ERROR"
    TEST_RESULT = "TEST_RESULT"
    PRD_SECTION = "PRD_SECTION"

    @property
    def shown(self) -> str:
        """The name of the type on the screen and for a model: ``note``, ``code`` or ``task``."""
        return {ItemType.TASK: "task", ItemType.PRD_SECTION: "note"}.get(self, "code")


WEIGHTS = dict(zip(ItemType, (1.0, 0.8, 0.7, 0.6, 0.5), strict=True))
"""The weight of each type, from 0 to 1; the type's part of a score is 0.4 times its weight."""


class Source(StrEnum):
    """Whose words an item has; TOOL or FILE also for a model's words in a turn with the text of a tool or a file."""

    YOU = "you"
    MODEL = "model"
    FILE = "file"
    TOOL = "tool"
    IMPORT = "import"

    @property
    def thing(self) -> str:
        """The source with its article: ``a file``."""
        return f"{'an' if self is Source.IMPORT else 'a'} {self}"


PROPOSED = -1
"""Marks a hidden item that the inbox proposes to remember."""

WITHDRAWN = -2
"""Marks a hidden item that was only proposed, and whose proposal was undone."""


class Tier(StrEnum):
    """How an item gets into requests: HOT always, WARM by reference or keys, COLD and ARCHIVED only by keys."""

    HOT = "HOT"
    WARM = "WARM"
    COLD = "COLD"
    ARCHIVED = "ARCHIVED"


class Item(NamedTuple):
    """One memory item; it is a tuple because a renewal reads thousands of items.

    ``source_message_id`` is the message that the item comes from; if a model chose to remember it, the question that
    the model answered. ``replaced_by`` is the id of the successor of a closed item. ``may_replace`` is the id of an
    item with nearly the same words, which the inbox proposes to close. Both are 0 if there is no such item. For a
    hidden item that is itself only proposed, ``may_replace`` is `PROPOSED` or `WITHDRAWN`.
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
    source: Source = Source.YOU
    replaced_by: int = 0
    may_replace: int = 0


def checked_content(text: str) -> str:
    """Return a content without the blanks around it; refuse it if it is empty or longer than ``LONGEST_CONTENT``."""
    content = text.strip()
    if not content:
        raise MemoryItemError("Content cannot be empty or whitespace-only")
    if len(content) > LONGEST_CONTENT:
        raise MemoryItemError(f"Content exceeds maximum length of {LONGEST_CONTENT} characters")
    return content


def checked_type(text: str) -> ItemType:
    """Return the type with a name; the name may be in any case and have ``-`` or a blank in place of ``_``."""
    name = _as_name(text)
    try:
        return ItemType.PRD_SECTION if name == "NOTE" else ItemType(name)
    except ValueError:
        raise MemoryItemError(f"Invalid item type, must be one of: {', '.join(ItemType)}") from None


def checked_tier(text: str) -> Tier:
    """Return the tier with a name, in any case; as in the first design, the error names only active tiers."""
    try:
        return Tier(_as_name(text))
    except ValueError:
        raise MemoryItemError("Tier must be one of: HOT, WARM, COLD") from None


def content_hash(text: str) -> str:
    """Return the hash that equal contents share: 64 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def _as_name(text: str) -> str:
    return text.strip().upper().replace("-", "_").replace(" ", "_")


HOT_FROM, WARM_FROM = 0.8, 0.4

_TYPE_SHARE, _AGE_SHARE, _ACCESS_SHARE = 0.4, 0.4, 0.2
_DECAY_PER_DAY = 0.5
_LOGARITHM_OF_FULL_USE = 10
_DAY = timedelta(days=1)
_EXACT_DIGITS = 12
"""Decimal places of a score that count: a microsecond of age changes the twelfth, and the rest is rounding noise."""


class Score(NamedTuple):
    """The three weighted parts of a score, which ``/memory show`` lists."""

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
    return Score(_TYPE_SHARE * WEIGHTS[item_type], _AGE_SHARE * exp(-_DECAY_PER_DAY * age_days), _ACCESS_SHARE * use)


def tier_of(score: float, *, pinned: bool = False) -> Tier:
    """Return the tier of an active item by its score; a pinned item is HOT whatever its score."""
    exact = round(score, _EXACT_DIGITS)
    if pinned or exact >= HOT_FROM:
        return Tier.HOT
    return Tier.WARM if exact >= WARM_FROM else Tier.COLD


def renewed(item: Item, now: datetime) -> Item:
    """Return an item with its score and tier at ``now``; an ARCHIVED item keeps both.

    Only the user's own words are HOT by their score; other items are at most WARM until the user pins them, so that no
    model, tool or file writes into later system messages.
    """
    if item.tier is Tier.ARCHIVED:
        return item
    score = importance(item.item_type, item.created_at, item.access_count, now).total
    tier = tier_of(score, pinned=item.pinned)
    if tier is Tier.HOT and item.source is not Source.YOU and not item.pinned:
        tier = Tier.WARM
    return item._replace(importance_score=score, tier=tier)


def accessed(item: Item, now: datetime) -> Item:
    """Return an item after an access at ``now``, with a new score and tier; an ARCHIVED item keeps both."""
    return renewed(item._replace(access_count=item.access_count + 1, last_accessed=now), now)


ACTIVE = (Tier.HOT, Tier.WARM, Tier.COLD)
_SCORE_DIGITS = 6


class FlashReport(NamedTuple):
    """The figures of a flash save; token counts are of active items, and ``token_count_after`` is not stored."""

    checkpoint_id: int
    created_at: datetime
    items_count: int
    items_archived: int
    hot_items_retained: int
    token_count_before: int
    token_count_after: int = 0

    @property
    def reduction_percentage(self) -> float:
        """The share of the tokens that was archived, in percent with two decimal places; 0 if there were no tokens."""
        if not self.token_count_before:
            return 0.0
        return round(100 * (self.token_count_before - self.token_count_after) / self.token_count_before, 2)


class TierTotal(NamedTuple):
    """The number of items in a tier, and their tokens."""

    items: int
    tokens: int


class MemoryStatistics(NamedTuple):
    """The totals of a persona's memory by tier; a tier without items may be missing in ``tiers``."""

    persona: str
    tiers: Mapping[Tier, TierTotal]
    last_updated: datetime

    def of(self, *tiers: Tier) -> TierTotal:
        """Return the sum of the totals of some tiers."""
        totals = [self.tiers.get(tier, TierTotal(0, 0)) for tier in tiers]
        return TierTotal(sum(total.items for total in totals), sum(total.tokens for total in totals))

    def as_json(self) -> dict[str, JsonValue]:
        """Return the totals for ``--json``; ``total_items`` and ``total_tokens`` leave ARCHIVED items out."""
        active = self.of(*ACTIVE)
        return {
            "persona": self.persona,
            "total_items": active.items,
            **{f"{tier.lower()}_count": self.of(tier).items for tier in Tier},
            "total_tokens": active.tokens,
            **{f"{tier.lower()}_tokens": self.of(tier).tokens for tier in Tier},
            "last_updated": timestamps.to_text(self.last_updated),
        }


def checkpoint_json(persona: str, items: Iterable[Item], now: datetime) -> str:
    """Return the JSON text of a checkpoint, with the active ones of ``items`` in order of id."""
    held = sorted(items, key=lambda item: item.id)
    counts = Counter(item.tier for item in held if item.tier in ACTIVE)
    tokens = sum(item.token_count or 0 for item in held if item.tier in ACTIVE)
    document = {
        "agent_id": persona,
        "context_state": {
            f"{tier.lower()}_items": [_written(item) for item in held if item.tier is tier] for tier in ACTIVE
        },
        "metrics": {
            "total_items": counts.total(),
            **{f"{tier.lower()}_count": counts[tier] for tier in ACTIVE},
            "total_tokens": tokens,
        },
        "timestamp": f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    return json.dumps(document, ensure_ascii=False)


def ids_in(checkpoint: str) -> set[int]:
    """Return the ids of the items in a checkpoint, none if a purge cut all of them out; refuse an invalid text."""
    try:
        state = record(record(json.loads(checkpoint)).get("context_state"))
    except (ValueError, RecursionError):
        state = {}
    tiers = [state.get(f"{tier.lower()}_items") for tier in ACTIVE]
    if not all(isinstance(each, list) for each in tiers):
        raise MemoryItemError("The checkpoint cannot be read: it is not valid. The memory was not changed.")
    return {whole_number(each.get("id")) for tier in tiers for each in records(tier)} - {0}


def _written(item: Item) -> dict[str, JsonValue]:
    score = round(item.importance_score, _SCORE_DIGITS)
    return {"id": item.id, "type": item.item_type, "content": item.content, "score": score}


_NEAR_SHARE = 0.8
"""Near texts have at least this share of the longer one's words in common."""


def nearest(content: str, texts: Iterable[tuple[int, str]]) -> int:
    """Return the id of the text with nearly the same words as a content, 0 if there is none."""
    words = words_of(content)
    shares = [(_share(words, words_of(text)), id_) for id_, text in texts]
    share, id_ = max(shares, default=(0.0, 0))
    return id_ if share >= _NEAR_SHARE else 0


def words_of(text: str) -> Counter[str]:
    """Count the folded words of a text, in the order of the text; each ideograph is a word."""
    return Counter(re.findall(r"\w+", spaced(text)))


def _share(words: Counter[str], others: Counter[str]) -> float:
    return (words & others).total() / max(words.total(), others.total(), 1)


def source_of_successor(source: Source, old: Item) -> Source:
    """Return the source of the successor of an item; ``source`` is the source of the new text.

    If a model rewords a text of a file, a tool or an import, the successor keeps that source.
    """
    return old.source if source is Source.MODEL and old.source is not Source.YOU else source


def why_kept(old: Item, source: Source) -> str:
    """Return why a text of this source must not replace an item, as a sentence for the model; empty if it may."""
    if source is Source.YOU:
        return ""
    user = f"Only the user can replace it, with /memory replace {old.id} TEXT."
    if old.pinned:
        return f"The user pinned memory item #{old.id}, so nothing was changed. {user}"
    if source in {Source.TOOL, Source.FILE} and old.source is Source.YOU:
        return (
            f"Memory item #{old.id} has the user's own words, and the new text may be {source.thing}'s, "
            f"so nothing was changed. {user}"
        )
    return ""
