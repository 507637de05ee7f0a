"""Replacements of memory items: a closed item stays as a hidden row, which names its successor."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.errors import JournalError, MemoryItemError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows.operation_rows import SUBJECT
from chorus_cli.log.rules.acts import Undo
from chorus_cli.log.rules.log_acts import ItemChange, ItemState, MemoryChange
from chorus_cli.memory.rows import item_changes, item_rows
from chorus_cli.memory.rows.item_changes import Addition
from chorus_cli.memory.rules.items import Item, Source, source_of_successor, why_kept
from chorus_cli.storage.port import Connection


class Version(NamedTuple):
    """One item of a chain, and the time at which it was closed, ``None`` for the open item."""

    item: Item
    closed_at: datetime | None


def replace(connection: Connection, addition: Addition, old_id: int) -> Item:
    """Close an item with the one item of an addition as its successor, and return the successor.

    Raises:
        JournalError: the old item is hidden meanwhile.
        MemoryItemError: the old item has this content, or must not be replaced by a text of this source.
    """
    item_rows.adopt(connection, addition.persona)
    (new,) = addition.items
    found = item_rows.of_ids(connection, addition.persona, (old_id,))
    if not found:
        raise JournalError(f"Memory item #{old_id} was changed meanwhile, so nothing was changed.")
    (old,) = found
    known = item_changes.known_item(connection, addition.persona, new.content)
    # A model may also repeat the text of an item that has come from a tool.
    sources = [new.source] if known is None or new.source is Source.YOU else [new.source, known.item.source]
    if reasons := list(filter(None, (why_kept(old, source) for source in sources))):
        raise MemoryItemError(reasons[0])
    new = new._replace(source=source_of_successor(new.source, old), pinned=old.pinned)
    if known is None:
        new_id = item_changes.insert(connection, addition, new)
        successor, is_pinned = ItemChange(new_id, ItemState(visible=False), ItemState(visible=True)), new.pinned
    elif known.item.id == old_id:
        raise MemoryItemError(f"Memory item #{old_id} has this content already.")
    else:
        new_id, is_pinned = known.item.id, known.item.pinned
        is_archived, proposal = known.state.archived or None, known.state.may_replace if known.is_proposed else None
        before = ItemState(known.state.visible, is_archived, may_replace=proposal)
        after = ItemState(visible=True, archived=False if is_archived else None, may_replace=proposal and 0)
        successor = ItemChange(new_id, before, after)
    changes = replaced(old, successor, is_pinned=is_pinned)
    act = MemoryChange(addition.change, changes, shortened(new.content))
    item_changes.change(connection, addition.persona, act, addition.now)
    return item_rows.of_ids(connection, addition.persona, (new_id,))[0]


def replaced(old: Item, successor: ItemChange, *, is_pinned: bool) -> tuple[ItemChange, ItemChange]:
    """Return the changes of a replacement; the successor of a pinned item is pinned."""
    new_id, before, after = successor
    if old.pinned and not is_pinned:
        before, after = before._replace(pinned=False), after._replace(pinned=True)
    closed = ItemChange(old.id, ItemState(visible=True, replaced_by=0), ItemState(visible=False, replaced_by=new_id))
    return ItemChange(new_id, before, after), closed


def versions(connection: Connection, persona: str, item_id: int) -> list[Version]:
    """Return the item and all that it replaced or that replaced it, the first closed first and the open one last.

    Forgotten and purged items are left out.
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


def way_back(connection: Connection, persona: str, item_id: int) -> str:
    """Return the command that brings a forgotten item back; empty if its operation is not known."""
    row = connection.execute(
        f"""
        SELECT operations.kind = '{Undo.kind}', subject.number FROM context_items
        JOIN operations ON operations.id = forgotten_by
        JOIN operations AS subject ON subject.id = COALESCE({SUBJECT}, operations.id)
        WHERE context_items.id = ? AND context_items.persona = ?""",
        (item_id, persona),
    ).fetchone()
    return f"/context {'redo' if row[0] else 'undo'} {row[1]}" if row else ""
