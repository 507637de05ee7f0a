"""Recall: the memory items that go with a question, because they became HOT or because it refers to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.cards.macros import sent_items
from chorus_cli.core.context.memory import MOST_HOT, MOST_RECALLED, chosen_hot, contents, mentions, recall_room, unsent
from chorus_cli.core.context.plan import system_tokens
from chorus_cli.core.memory.items import Item, Tier
from chorus_cli.core.memory.keys import FIRST_WORD, Keys, keys_of
from chorus_cli.core.memory.prompt import tokens_in_request
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
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from chorus_cli.core.context.snapshot import ContextSnapshot
    from chorus_cli.core.log.messages import Message, MessageContent
    from chorus_cli.storage.sqlite.store import Connection

MOST_CALLED = 20
_MOST_LOOKED_THROUGH = 20_000
"""The characters at the end of a message that keys are looked for in."""


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

    Those whose keys the question has come first, then those whose keys the reply before it has, then the best of those
    without keys that the question refers to, then corrected ones whose old wording the request has, then those that
    have become HOT; what the request has already stays out. ``other_tokens`` are those of the rest of the preamble.
    """
    persona, messages = snapshot.target.persona.slug, _sent_messages(snapshot)
    taken_tokens = system_tokens(snapshot, snapshot.view.summary) + (question.token_count or 0) + other_tokens
    room = recall_room(snapshot.budget, taken_tokens)
    chosen: dict[int, Item] = {}
    keyed = keyed_items(connection, persona)
    called = called_by(question.content, keyed)
    called_before = called_by(messages[-1].content, keyed) if messages else []
    named = references(question.content)
    found_by_words = referred_to(connection, persona, question.content, MOST_HOT)
    referred = [item for item in found_by_words if item.id in named or keys_of(item.content) is None]
    old_wordings = {*mentions(messages), *(item.id for item in snapshot.hot)}
    corrected = item_rows.of_ids(connection, persona, old_wordings)
    # Chosen as for a block, so that an item without room there does not come with each question instead.
    hot = chosen_hot(item_rows.hot(connection, persona, MOST_HOT), snapshot.budget, contents(messages))
    by_keys = ((called, MOST_CALLED), (called_before, MOST_CALLED))
    for items, most in (*by_keys, (referred, MOST_RECALLED), (corrected, MOST_HOT), (hot, MOST_HOT)):
        left = room - sum(map(tokens_in_request, chosen.values()))
        as_sent = sent_items(snapshot.target.persona, items)
        candidates = [item for item in unsent(as_sent, snapshot.hot, messages) if item.id not in chosen]
        chosen |= {item.id: item for item in best_within(candidates, left, most)}
    loaded = {*chosen, *(item.id for item in snapshot.hot)}
    item_rows.count_access(connection, persona, loaded, question.timestamp)
    return [chosen[id_] for id_ in sorted(chosen)]


def _sent_messages(snapshot: ContextSnapshot) -> Sequence[Message]:
    """Return the messages of the next request as far as is known: from the one that the last request began with."""
    view, first = snapshot.view, snapshot.first_message_id
    beginning = next((position for position, message in enumerate(view.verbatim) if message.id == first), 0)
    pinned = (message for message in view.verbatim[:beginning] if message.id in view.pinned)
    return (*pinned, *view.verbatim[beginning:])


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
