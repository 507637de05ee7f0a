"""The inbox of a memory: facts that a model proposes to remember, and items that may replace an older one.

A proposed fact is a hidden item with the mark `PROPOSED`, so that no request, list or search has it. An undo of its
proposal gives it the mark `WITHDRAWN`; a fact that the user drops has no mark.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.errors import MemoryItemError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.log_acts import ItemChange, ItemState, ItemUse, MemoryChange
from chorus_cli.log.rules.messages import runs
from chorus_cli.log.rules.operations import Operation
from chorus_cli.memory.rows import item_changes, item_rows
from chorus_cli.memory.rows.item_changes import Addition
from chorus_cli.memory.rows.replacements import replaced
from chorus_cli.memory.rules.items import PROPOSED, WITHDRAWN, Item
from chorus_cli.storage.port import Connection

_WITHDRAWN, _PROPOSED, _DROPPED = (ItemState(visible=False, may_replace=mark) for mark in (WITHDRAWN, PROPOSED, 0))


class Proposal(NamedTuple):
    """An open item and the older one that it may replace; or a fact, without ``old``, and when that was said."""

    item: Item
    old: Item | None = None
    said_at: datetime | None = None


def propose(connection: Connection, addition: Addition, distilled: Collection[int]) -> Sequence[Proposal]:
    """Store the items of an addition as facts in the inbox, and return them; they come from the messages ``distilled``.

    An item that the memory or the inbox has, or that the user has forgotten or dropped, is left out. Without any fact,
    an operation still says which messages were distilled. If one of these was purged, nothing is stored.
    """
    refuse_purged(connection, distilled)
    item_rows.adopt(connection, addition.persona)
    texts: dict[int, str] = {}
    for new in addition.items:
        known = item_changes.known_item(connection, addition.persona, new.content)
        if known is None:
            texts[item_changes.insert(connection, addition, new, WITHDRAWN)] = new.content
        elif known.state.may_replace == WITHDRAWN:
            texts[known.item.id] = new.content
    title = shortened("".join(texts.values())) if len(texts) == 1 else addition.title
    changes = tuple(ItemChange(id_, _WITHDRAWN, _PROPOSED) for id_ in texts)
    act = MemoryChange(addition.change, changes, title, distilled=runs(sorted(distilled)))
    item_changes.change(connection, addition.persona, act, addition.now)
    return [each for each in _facts(connection, addition.persona) if each.item.id in texts]


def refuse_purged(connection: Connection, distilled: Collection[int]) -> None:
    """Raise a `MemoryItemError` if a message to distil was purged, because any fact may have its words."""
    if len(message_rows.rows(connection, distilled)) < len(distilled):
        raise MemoryItemError(
            "A message was purged meanwhile, so no fact was proposed. /memory distil asks with the other messages."
        )


def proposals(connection: Connection, persona: str) -> list[Proposal]:
    """Return the proposals of the inbox: facts in order of id, then items that may replace one in order of id."""
    rows = connection.execute(
        "SELECT newer.id, older.id FROM context_items AS newer JOIN context_items AS older "
        "ON older.id = newer.may_replace AND older.persona = newer.persona WHERE newer.persona = ? "
        "AND newer.may_replace > 0 AND newer.forgotten_by IS NULL AND older.forgotten_by IS NULL ORDER BY newer.id",
        (persona,),
    ).fetchall()
    items = {item.id: item for item in item_rows.of_ids(connection, persona, {id_ for row in rows for id_ in row})}
    return [*_facts(connection, persona), *(Proposal(items[newer], items[older]) for newer, older in rows)]


def _facts(connection: Connection, persona: str) -> list[Proposal]:
    rows = connection.execute(
        f"SELECT (SELECT timestamp FROM messages WHERE id = source_message_id), {item_rows.COLUMNS} FROM context_items "
        f"WHERE persona = ? AND may_replace = {PROPOSED} AND forgotten_by IS NOT NULL AND content <> '' ORDER BY id",
        (persona,),
    ).fetchall()
    return [
        Proposal(item_rows.item_of(row), said_at=timestamps.from_text(said_at) if said_at else None)
        for said_at, *row in rows
    ]


def settle(connection: Connection, persona: str, item_id: int | None, now: datetime, *, accepts: bool) -> Operation:
    """Accept or drop the proposal of an item, or all proposals in one operation.

    An accepted fact with nearly the words of an older item becomes an item that may replace the older one.

    Raises:
        MemoryItemError: there is no such proposal.
    """
    chosen = [each for each in proposals(connection, persona) if item_id in {None, each.item.id}]
    if not chosen:
        raise MemoryItemError("The inbox has no such proposal, so nothing was changed. /memory inbox lists them.")
    facts = [each.item for each in chosen if each.old is None]
    pairs = [(each.item, each.old) for each in chosen if each.old is not None]
    if accepts:
        changes = [*(_remembered(connection, fact, now) for fact in facts), *_replacements(pairs)]
        change = "accept" if facts else "replace"
    else:
        changes = [ItemChange(fact.id, _PROPOSED, _DROPPED) for fact in facts]
        changes += [_settled(item, old) for item, old in pairs]
        change = "reject" if facts else "decline"
    title = shortened(chosen[0].item.content) if len(chosen) == 1 else ""
    return item_changes.change(connection, persona, MemoryChange(change, tuple(changes), title), now)


def _remembered(connection: Connection, fact: Item, now: datetime) -> ItemChange:
    near = item_rows.nearest(connection, fact.persona, fact.content)
    use = ItemUse(timestamps.to_text(now), timestamps.to_text(now), 1)
    before = _PROPOSED._replace(use=item_changes.use_of(fact))
    return ItemChange(fact.id, before, ItemState(visible=True, may_replace=near, use=use))


def _settled(item: Item, old: Item, *, visible: bool | None = None) -> ItemChange:
    before = ItemState(visible=visible, may_replace=old.id)
    return ItemChange(item.id, before, ItemState(visible=visible, may_replace=0))


def _replacements(pairs: Sequence[tuple[Item, Item]]) -> list[ItemChange]:
    """Return the changes; if several items may replace the same one, they replace each other in their order."""
    successors: dict[int, Item] = {}
    changes: list[ItemChange] = []
    for item, older in pairs:
        old = older
        while old.id in successors:
            old = successors[old.id]
        changes += replaced(old, _settled(item, older, visible=True), is_pinned=item.pinned)
        successors[old.id] = item._replace(pinned=item.pinned or old.pinned)
    return changes
