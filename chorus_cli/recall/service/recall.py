"""Recall: the memory items that go with a question, because they became HOT or because it refers to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.context.rules.memory import MOST_HOT, MOST_RECALLED, chosen_hot, contents, mentions, recall_room, unsent
from chorus_cli.context.rules.plan import system_tokens
from chorus_cli.memory.rows import item_rows
from chorus_cli.memory.rules.prompt import sent_items, tokens_in_request
from chorus_cli.memory.rules.recall import best_within, keys_of, references
from chorus_cli.memory.service.access import called_by, keyed_items, referred_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.context.rules.snapshot import ContextSnapshot
    from chorus_cli.log.rules.messages import Message, MessageContent
    from chorus_cli.memory.rules.items import Item
    from chorus_cli.storage.store import Connection

MOST_CALLED = 20


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
