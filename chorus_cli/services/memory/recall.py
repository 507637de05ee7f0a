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
    from datetime import datetime

    from chorus_cli.core.context.snapshot import ContextSnapshot
    from chorus_cli.core.log.messages import MessageContent
    from chorus_cli.storage.sqlite.store import Connection


def renew_if_due(connection: Connection, persona: str, now: datetime) -> bool:
    """Renew scores and tiers, at most every five minutes; return whether there are any items."""
    if not item_rows.number(connection, persona):
        return False
    if item_rows.is_renewal_due(connection, persona, now):
        item_rows.renew(connection, persona, now)
    return True


def recalled(
    connection: Connection, snapshot: ContextSnapshot, question: MessageContent, other_tokens: int
) -> list[Item]:
    """Return the items for the preamble of a question, in order of id, and count an access of all that are loaded.

    HOT items come first, then the best of the WARM ones that the question refers to by number or by rare words; those
    that the request has already stay out. ``other_tokens`` are those of the rest of the preamble.
    """
    persona = snapshot.target.persona.slug
    said = {message.id: message.content for message in snapshot.view.verbatim}
    # Chosen as for a block, so that an item without room there does not come with each question instead.
    hot = chosen_hot(item_rows.hot(connection, persona, MOST_HOT), snapshot.budget, said)
    referred = referred_to(connection, persona, question.content, MOST_HOT)
    candidates = [*hot, *(item for item in referred if item.tier is Tier.WARM)]
    taken_tokens = system_tokens(snapshot, snapshot.view.summary) + (question.token_count or 0) + other_tokens
    unsaid = unsent(candidates, snapshot.hot, snapshot.view.verbatim)
    items = best_within(unsaid, recall_room(snapshot.budget, taken_tokens), MOST_RECALLED)
    item_rows.count_access(connection, persona, {item.id for item in (*snapshot.hot, *items)}, question.timestamp)
    return items


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
