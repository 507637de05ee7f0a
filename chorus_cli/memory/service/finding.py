"""Finding memory items: by a query, by the words or numbers of a text, by their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.memory.rows import item_rows, item_words
from chorus_cli.memory.rules.items import Item, Tier
from chorus_cli.memory.rules.keys import FIRST_WORD, Keys, keys_of
from chorus_cli.memory.rules.recall import index_terms, match_query, meaningful_words, rare_words, references

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from chorus_cli.storage.store import Connection

_MOST_LOOKED_THROUGH = 20_000
"""The characters at the end of a message that keys are looked for in."""


def renew_if_due(connection: Connection, persona: str, now: datetime) -> bool:
    """Renew scores and tiers, at most every five minutes; return whether there are any items."""
    if not item_rows.number(connection, persona):
        return False
    if item_rows.is_renewal_due(connection, persona, now):
        item_rows.renew(connection, persona, now)
    return True


def keyed_items(connection: Connection, persona: str) -> list[tuple[Item, Keys]]:
    """Return the items that have keys, of any tier.

    Raises:
        IndexDamagedError: the index of the items' words cannot be read.
    """
    ids = item_words.beginning_with(connection, persona, FIRST_WORD)
    found = item_rows.of_ids(connection, persona, ids) if ids else []
    return [(item, keys) for item in found if (keys := keys_of(item.content)) is not None]


def called_by(text: str, keyed: Iterable[tuple[Item, Keys]]) -> list[Item]:
    """Return the items whose keys occur in the last part of a text."""
    folded = text[-_MOST_LOOKED_THROUGH:].casefold()
    return [item for item, keys in keyed if keys.call(folded)]


def found(connection: Connection, persona: str, query: str, limit: int) -> list[Item]:
    """Return the HOT and WARM items that a query names, then those that have any of its words, best match first.

    Raises:
        IndexDamagedError: the index of the items' words cannot be read.
    """
    named = referred_to(connection, persona, query, limit)
    words, known = meaningful_words(query), {item.id for item in named}
    by_words = item_rows.matching(connection, persona, match_query(words), limit) if words else []
    return [*named, *(item for item in by_words if item.id not in known)][:limit]


def referred_to(connection: Connection, persona: str, text: str, limit: int) -> list[Item]:
    """Return the HOT and WARM items that a text refers to: by number, then by rare words, best match first.

    Raises:
        IndexDamagedError: the index of the items' words cannot be read.
    """
    ids, words = references(text), meaningful_words(text)
    number = item_rows.number(connection, persona) if words else 0
    # A word that more items have than this is not rare.
    frequency = item_words.frequencies(connection, persona, index_terms(words), number // 10 + 5) if number else {}
    rare = rare_words(words, frequency, number)
    by_words = item_rows.matching(connection, persona, match_query(rare), limit) if rare else []
    named = [item for item in item_rows.of_ids(connection, persona, ids) if item.tier in {Tier.HOT, Tier.WARM}]
    return [*named, *(item for item in by_words if item.id not in ids)][:limit]
