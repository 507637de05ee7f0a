"""Replacements of memory items, and the inbox: facts that a model proposes, and items that may replace an older one.

A closed item stays as a hidden row, which names its successor. A proposed fact is a hidden item with the mark
`PROPOSED`, so that no request, list or search has it. An undo of its proposal gives it the mark `WITHDRAWN`; a fact
that the user drops has no mark.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.errors import JournalError, MemoryItemError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rows.operation_rows import SUBJECT
from chorus_cli.log.rules.log_acts import ItemChange, ItemState, ItemUse, MemoryChange
from chorus_cli.log.rules.messages import runs
from chorus_cli.log.rules.operations import Operation
from chorus_cli.memory.rows import item_changes, item_rows
from chorus_cli.memory.rows.item_changes import Addition
from chorus_cli.memory.rules.items import PROPOSED, WITHDRAWN, Item, source_of_successor, why_kept
from chorus_cli.storage.port import Connection

_WITHDRAWN, _PROPOSED, _DROPPED = (ItemState(visible=False, may_replace=mark) for mark in (WITHDRAWN, PROPOSED, 0))


class Proposal(NamedTuple):
    """An open item and the ``old`` one that it may replace; or, without ``old``, a fact and the time it was said."""

    item: Item
    old: Item | None = None
    said_at: datetime | None = None


class Version(NamedTuple):
    """One item of a chain, and the time at which it was closed, ``None`` for the open item."""

    item: Item
    closed_at: datetime | None


def propose(connection: Connection, addition: Addition, distilled: Collection[int]) -> Sequence[Proposal]:
    """Store the items of an addition as facts in the inbox, and return them; they come from the messages ``distilled``.

    An item that the memory or the inbox has, or that the user has forgotten or dropped, is left out. Without any fact,
    an operation still says which messages were distilled. Raise a `MemoryItemError` if such a message was purged.
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
    """Raise a `MemoryItemError` if a distilled message was purged, because any fact may repeat its words."""
    if len(message_rows.rows(connection, distilled)) < len(distilled):
        raise MemoryItemError(
            "A message was purged meanwhile, so no fact was proposed. /memory distil asks with the other messages."
        )


def proposals(connection: Connection, persona: str) -> list[Proposal]:
    """Return the proposals of the inbox: first facts, then items that may replace an older one, each in order of id."""
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
    """Return the changes; if several items may replace the same one, each replaces the one before it."""
    successors: dict[int, Item] = {}
    pinned: set[int] = set()
    changes: list[ItemChange] = []
    for item, older in pairs:
        old = older
        while old.id in successors:
            old = successors[old.id]
        old = old._replace(pinned=old.pinned or old.id in pinned)
        changes += _replaced(old, _settled(item, older, visible=True), is_pinned=item.pinned)
        successors[old.id] = item
        pinned |= {item.id} if old.pinned else set()
    return changes


def replace(connection: Connection, addition: Addition, old_id: int) -> Item:
    """Close an item, store the only item of ``addition`` as its successor, and return the successor."""
    item_rows.adopt(connection, addition.persona)
    (new,) = addition.items
    found = item_rows.of_ids(connection, addition.persona, (old_id,))
    if not found:
        raise JournalError(f"Memory item #{old_id} was changed meanwhile, so nothing was changed.")
    (old,) = found
    if reason := why_kept(old, new.source):
        raise MemoryItemError(reason)
    item_changes.require_new(connection, addition.persona, new.content)
    new = new._replace(source=source_of_successor(new.source, old), pinned=old.pinned)
    new_id = item_changes.insert(connection, addition, new)
    successor = ItemChange(new_id, ItemState(visible=False), ItemState(visible=True))
    changes = _replaced(old, successor, is_pinned=new.pinned)
    act = MemoryChange(addition.change, changes, shortened(new.content))
    item_changes.change(connection, addition.persona, act, addition.now)
    return item_rows.of_ids(connection, addition.persona, (new_id,))[0]


def _replaced(old: Item, successor: ItemChange, *, is_pinned: bool) -> tuple[ItemChange, ItemChange]:
    """Return the changes of a replacement; the successor of a pinned item is pinned."""
    new_id, before, after = successor
    if old.pinned and not is_pinned:
        before, after = before._replace(pinned=False), after._replace(pinned=True)
    closed = ItemChange(old.id, ItemState(visible=True, replaced_by=0), ItemState(visible=False, replaced_by=new_id))
    return ItemChange(new_id, before, after), closed


def versions(connection: Connection, persona: str, item_id: int) -> list[Version]:
    """Return all versions of an item in the order in which they were closed, the open one last.

    An item and its successor are versions of each other. Forgotten and purged items are left out.
    """
    rows = connection.execute(
        f"""
        WITH RECURSIVE chain(id) AS (VALUES (CAST(:id AS BIGINT)) UNION SELECT other.id FROM chain
            JOIN context_items AS own USING (id) JOIN context_items AS other
            ON other.persona = :persona AND (other.replaced_by = own.id OR other.id = own.replaced_by))
        SELECT (SELECT COALESCE(
            (SELECT created_at FROM operations AS redone WHERE redone.id = {SUBJECT}), created_at
        ) FROM operations WHERE operations.id = forgotten_by), {item_rows.COLUMNS}
        FROM context_items WHERE id IN (SELECT id FROM chain) AND persona = :persona AND content <> ''
        AND (forgotten_by IS NULL OR replaced_by > 0) ORDER BY forgotten_by IS NULL, forgotten_by, id""",
        {"id": item_id, "persona": persona},
    ).fetchall()
    return [Version(item_rows.item_of(row), timestamps.from_text(at) if at else None) for at, *row in rows]
