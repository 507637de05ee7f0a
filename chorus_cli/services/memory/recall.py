"""Recall: the memory items that go with a question, because they became HOT or because it refers to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.context.memory import MOST_HOT, MOST_RECALLED, chosen_hot, recall_room, unsent
from chorus_cli.core.context.plan import system_tokens
from chorus_cli.core.memory.items import Item, Tier
from chorus_cli.core.memory.recall import (
    best_within,
    index_terms,
    match_query,
    meaningful_words,
    rare_words,
    references,
)
from chorus_cli.storage.sqlite.memory import item_rows, item_words

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from chorus_cli.core.context.snapshot import ContextSnapshot
    from chorus_cli.storage.sqlite.store import Connection


def renew_if_due(connection: Connection, persona: str, now: datetime) -> None:
    """Renew scores and tiers, at most every five minutes."""
    if item_rows.is_renewal_due(connection, persona, now):
        item_rows.renew(connection, persona, now)


def recalled(connection: Connection, snapshot: ContextSnapshot, question: str, question_tokens: int) -> list[Item]:
    """Return the items for the preamble of a question, in order of id, and leave out those that the request has.

    HOT items come first, then the best of the WARM ones that the question refers to by number or by rare words.
    """
    persona = snapshot.target.persona.slug
    said = {message.id: message.content for message in snapshot.view.verbatim}
    # Chosen as for a block, so that an item without room there does not come with each question instead.
    hot = chosen_hot(item_rows.hot(connection, persona, MOST_HOT), snapshot.budget, said)
    warm = [item for item in referred_to(connection, persona, question, MOST_HOT) if item.tier is Tier.WARM]
    taken_tokens = system_tokens(snapshot, snapshot.view.summary) + question_tokens
    room = recall_room(snapshot.budget, taken_tokens)
    found = unsent([*hot, *warm], snapshot.hot, snapshot.view.verbatim)
    return best_within(found, room, MOST_RECALLED)


def loaded(connection: Connection, persona: str, items: Iterable[Item], now: datetime) -> None:
    """Count one access of each item that a request loads."""
    if ids := [item.id for item in items]:
        item_rows.count_access(connection, persona, ids, now)


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
