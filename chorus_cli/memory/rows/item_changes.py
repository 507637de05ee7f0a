"""Changes of memory items, and flash saves; one transaction stores each with its operation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.errors import JournalError, MemoryItemError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rows.operation_rows import DETAIL
from chorus_cli.log.rules.log_acts import Flash, ItemChange, ItemState, ItemUse, MemoryAct, MemoryChange
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.memory.rows import item_rows
from chorus_cli.memory.rules import items as rules
from chorus_cli.memory.rules.items import Item, ItemType, Source, Tier
from chorus_cli.storage.port import Connection


class NewItem(NamedTuple):
    """An item to be stored; ``token_count`` counts its content. ``pinned`` has no effect on an item stored before."""

    item_type: ItemType
    content: str
    source: Source = Source.YOU
    token_count: int | None = None
    source_message_id: int | None = None
    pinned: bool = False


class Addition(NamedTuple):
    """Items to add to a persona's memory by one ``change``, such as add, import or capture.

    ``title`` names the place that several items come from. An addition is ``automatic`` if the user did not ask for it.
    If the memory has an item already, `add` counts an access, sets the item's age to zero, and brings it back if it is
    forgotten or archived; but a capture brings back only an item that an output hid. Items captured from a
    command's output replace those from its earlier outputs; ``command`` is the hash of the command.
    """

    persona: str
    items: Sequence[NewItem]
    change: str
    now: datetime
    title: str = ""
    command: str = ""
    automatic: bool = False


class Added(NamedTuple):
    """The items of an addition in their order, the ids of those that were visible before, and the operation, if any."""

    items: tuple[Item, ...] = ()
    known_ids: frozenset[int] = frozenset()
    operation: Operation | None = None

    @property
    def new(self) -> tuple[Item, ...]:
        """The items that were not visible before in any wording."""
        return tuple(item for item in self.items if item.id not in self.known_ids)


class Present(NamedTuple):
    """An item as its row has it now, with the parts that an act can change."""

    item: Item
    state: ItemState

    @property
    def is_proposed(self) -> bool:
        """Whether the item is or was only a proposal, which the user has neither accepted nor dropped."""
        return self.state.may_replace in {rules.PROPOSED, rules.WITHDRAWN}


def add(connection: Connection, addition: Addition) -> Added:
    """Store new items, change known ones, and store the operation; leave out items whose source message is purged."""
    item_rows.adopt(connection, addition.persona)
    ids: list[int] = []
    known: set[int] = set()
    changes: list[ItemChange] = []
    outdated = _outdated(connection, addition) if addition.command else []
    operation = None
    for new in addition.items:
        if _has_purged_source(connection, new):
            continue
        present = known_item(connection, addition.persona, new.content)
        if present is None and outdated:
            present = outdated.pop(0)
            ids.append(present.item.id)
            known.add(present.item.id)
            # Each item has its own operation: a purge finds an earlier text only in an operation on a single item.
            operation = _introduced(connection, addition, _brought_back(connection, addition, new, present))
        elif present is None:
            near = item_rows.nearest(connection, addition.persona, new.content) if addition.change == "add" else 0
            ids.append(insert(connection, addition, new, may_replace=near))
            changes.append(ItemChange(ids[-1], ItemState(visible=False), ItemState(visible=True)))
        elif (addition.change != "capture" or _is_dropped(connection, present)) and present.item.id not in ids:
            ids.append(present.item.id)
            known |= {present.item.id} if present.state.visible else set()
            changes += _brought_back(connection, addition, new, present)
    operation = _introduced(connection, addition, changes) if changes else operation
    if outdated:
        dropped = tuple(
            ItemChange(each.item.id, ItemState(visible=True), ItemState(visible=False)) for each in outdated
        )
        title = addition.title if len(outdated) > 1 else shortened(outdated[0].item.content)
        act = MemoryChange("drop", dropped, title, addition.command)
        change(connection, addition.persona, act, addition.now, automatic=True)
    found = {item.id: item for item in item_rows.of_ids(connection, addition.persona, ids)}
    return Added(tuple(found[id_] for id_ in ids), frozenset(known), operation)


def _has_purged_source(connection: Connection, new: NewItem) -> bool:
    purged = "SELECT 1 FROM messages WHERE id = ? AND purged_by IS NOT NULL"
    return connection.execute(purged, (new.source_message_id,)).fetchone() is not None


def _introduced(connection: Connection, addition: Addition, changes: Sequence[ItemChange]) -> Operation:
    act = MemoryChange(addition.change, tuple(changes), _title(addition, changes), addition.command)
    return change(connection, addition.persona, act, addition.now, automatic=addition.automatic)


def _outdated(connection: Connection, addition: Addition) -> list[Present]:
    """Return the items of a command's earlier outputs, without those added, edited, pinned or in the new output."""
    captured = _changed_by(connection, addition, f"json_extract({DETAIL}, '$.command') = :command")
    if captured:
        captured -= _changed_by(connection, addition, f"json_extract({DETAIL}, '$.change') IN ('add', 'edit', 'pin')")
    repeated = {new.content for new in addition.items}
    items = (present_item(connection, addition.persona, id_) for id_ in sorted(captured))
    return [each for each in items if each and each.state.visible and each.item.content not in repeated]


def _changed_by(connection: Connection, addition: Addition, condition: str) -> set[int]:
    """Return the ids of the items that were changed by the memory operations that meet an SQL condition."""
    found = connection.execute(
        f"SELECT detail FROM operations WHERE persona = :persona AND kind = '{MemoryChange.kind}' AND {condition}",
        {"persona": addition.persona, "command": addition.command},
    ).fetchall()
    acts = (operation_rows.act_of(MemoryChange.kind, json.loads(detail)) for (detail,) in found)
    return {each.item_id for act in acts if isinstance(act, MemoryChange) for each in act.changes}


def change(
    connection: Connection, persona: str, act: MemoryChange, now: datetime, *, automatic: bool = False
) -> Operation:
    """Store a change of items and its operation; refuse if one of the items was forgotten meanwhile."""
    hidden = item_rows.forgotten_among(connection, [each.item_id for each in act.changes])
    for each in act.changes:
        if each.item_id in hidden and each.before.visible is None:
            raise JournalError(f"Memory item #{each.item_id} was forgotten meanwhile, so nothing was changed.")
    operation = operation_rows.introduce(connection, NewOperation(persona, act, now, automatic=automatic))
    apply(connection, persona, act, operation.id, now)
    return operation


def put_back(connection: Connection, act: MemoryAct, reversal: NewOperation) -> None:
    """Apply ``act`` to its items, and store ``reversal``, the undo or redo that makes this change."""
    item_rows.adopt(connection, reversal.persona)
    operation = operation_rows.introduce_reversal(connection, reversal)
    apply(connection, reversal.persona, act, operation.id, reversal.created_at)


def apply(connection: Connection, persona: str, act: MemoryAct, operation_id: int, now: datetime) -> None:
    """Bring the items of an act into the state after the act; a flash save skips items changed meanwhile."""
    for each in act.changes:
        present = present_item(connection, persona, each.item_id)
        if present is not None and each.before == each.after == ItemState():
            raise JournalError(
                f"A purge overwrote the text that memory item #{each.item_id} would get back, so nothing was changed."
            )
        if present is not None and each.fits(present.state):
            _store(connection, present, each, operation_id, now)
        elif not act.passes_over:
            fate = "is no longer there" if present is None else "was changed again since"
            raise JournalError(f"Memory item #{each.item_id} {fate}, so nothing was changed.")


def _title(addition: Addition, changes: Sequence[ItemChange]) -> str:
    """Return the first words of the item if only one was added, or else the title of the addition."""
    if len(changes) > 1:
        return addition.title
    return shortened(addition.items[0].content if len(addition.items) == 1 else addition.title)


def insert(connection: Connection, addition: Addition, new: NewItem, may_replace: int = 0) -> int:
    """Store an item, which stays hidden until its operation is applied, and return its id."""
    count, stamp = int(addition.change != "capture"), timestamps.to_text(addition.now)
    score = rules.importance(new.item_type, addition.now, count, addition.now).total
    (item_id,) = connection.execute(
        "INSERT INTO context_items(persona, item_type, content, importance_score, tier, access_count, created_at, "
        "last_accessed, source_message_id, content_hash, token_count, source, pinned, may_replace, forgotten_by) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) RETURNING id",
        (
            *(addition.persona, new.item_type, new.content, score, rules.tier_of(score), count, stamp, stamp),
            *(new.source_message_id, rules.content_hash(new.content), new.token_count, new.source),
            *(int(new.pinned), may_replace),
        ),
    ).fetchone()
    item_rows.index_words(connection, item_id, new.content)
    return int(item_id)


def _brought_back(connection: Connection, addition: Addition, new: NewItem, present: Present) -> list[ItemChange]:
    """Return the change that makes a known item active and like ``new``; if none is needed, only store age and use."""
    young = present.item._replace(created_at=addition.now)
    item = young if addition.change == "capture" else rules.accessed(young, addition.now)
    wanted = ItemState(visible=True, archived=False, item_type=new.item_type, content=new.content).over(present.state)
    if present.is_proposed:
        wanted = wanted._replace(may_replace=0)
    if new.source is Source.YOU:
        wanted = wanted._replace(source=new.source)
    if wanted == present.state:
        item_rows.store_scores(connection, [item])
        return []
    wanted = wanted._replace(use=use_of(item))
    return [ItemChange(item.id, present.state.differing(wanted), wanted.differing(present.state))]


def known_item(connection: Connection, persona: str, content: str) -> Present | None:
    """Return the item with this content, visible or hidden but not closed; ``None`` if there is none."""
    row = connection.execute(
        "SELECT id FROM context_items WHERE persona = ? AND content_hash = ? AND replaced_by = 0",
        (persona, rules.content_hash(content)),
    ).fetchone()
    return None if row is None else present_item(connection, persona, row[0])


def is_forgotten(connection: Connection, persona: str, content: str) -> bool:
    """Return whether the user, not a command's later output, hid the item with this content; no proposal counts."""
    known = known_item(connection, persona, content)
    if known is None or known.state.visible or known.is_proposed:
        return False
    return not _is_dropped(connection, known)


def _is_dropped(connection: Connection, present: Present) -> bool:
    """Return whether a later output of a command, not the user, has hidden an item."""
    found = connection.execute(
        "SELECT 1 FROM operations JOIN context_items ON forgotten_by = operations.id "
        f"WHERE context_items.id = ? AND json_extract({DETAIL}, '$.change') = 'drop'",
        (present.item.id,),
    )
    return found.fetchone() is not None


def present_item(connection: Connection, persona: str, item_id: int) -> Present | None:
    """Return an item, hidden or not; ``None`` if it is purged or not there."""
    row = connection.execute(
        f"SELECT forgotten_by IS NULL, {item_rows.COLUMNS} FROM context_items WHERE id = ? AND persona = ? "
        "AND purged_by IS NULL",
        (item_id, persona),
    ).fetchone()
    if row is None:
        return None
    visible, *columns = row
    item = item_rows.item_of(columns)
    archived, use = item.tier is Tier.ARCHIVED, use_of(item)
    words = (item.item_type, item.content)
    state = ItemState(bool(visible), archived, item.pinned, *words, use, item.replaced_by, item.may_replace)
    return Present(item, state._replace(source=item.source))


def use_of(item: Item) -> ItemUse:
    """Return the age and use of an item."""
    return ItemUse(timestamps.to_text(item.created_at), timestamps.to_text(item.last_accessed), item.access_count)


def _store(connection: Connection, present: Present, step: ItemChange, operation_id: int, now: datetime) -> None:
    """Store the new state of an item, with the score and tier that follow from it."""
    state = step.over(present.state)
    use = state.use or use_of(present.item)
    item = present.item._replace(
        item_type=ItemType(str(state.item_type)),
        pinned=bool(state.pinned),
        tier=Tier.WARM,
        content=str(state.content),
        created_at=timestamps.from_text(use.created_at),
        last_accessed=timestamps.from_text(use.last_accessed),
        access_count=use.access_count,
        replaced_by=state.replaced_by or 0,
        may_replace=state.may_replace or 0,
        source=Source(str(state.source)),
    )
    item = item._replace(tier=Tier.ARCHIVED) if state.archived else rules.renewed(item, now)
    item_rows.store_scores(connection, [item])
    is_reopened = not item.replaced_by and present.item.replaced_by
    if is_reopened or (not item.replaced_by and item.content != present.item.content):
        require_new(connection, item.persona, item.content, item.id)
    connection.execute(
        "UPDATE context_items SET item_type = ?, pinned = ?, replaced_by = ?, may_replace = ?, source = ?, "
        "forgotten_by = CASE WHEN ? THEN NULL ELSE COALESCE(forgotten_by, ?) END WHERE id = ?",
        (
            *(item.item_type, int(item.pinned), item.replaced_by, item.may_replace, item.source),
            *(state.visible, operation_id, item.id),
        ),
    )
    if item.content != present.item.content:
        _reword(connection, item)


def require_new(connection: Connection, persona: str, content: str, item_id: int = 0) -> None:
    """Raise a ``MemoryItemError`` if an item other than ``item_id`` has this content."""
    other = known_item(connection, persona, content)
    if other is not None and other.item.id != item_id:
        hidden = "" if other.state.visible else "; it is hidden, and adding the text again brings it back"
        raise MemoryItemError(f"Memory item #{other.item.id} has this content already{hidden}.")


def _reword(connection: Connection, item: Item) -> None:
    hashed = rules.content_hash(item.content)
    connection.execute(
        "UPDATE context_items SET content = ?, content_hash = ?, token_count = NULL WHERE id = ?",
        (item.content, hashed, item.id),
    )
    item_rows.index_words(connection, item.id, item.content)


KEPT = 10
# A deleted persona of the same folder may have left checkpoints, which this condition keeps out.
_OWN = (
    f"persona = :persona AND id IN (SELECT CAST(json_extract({DETAIL}, '$.checkpoint') AS BIGINT) FROM operations "
    "WHERE persona = :persona AND kind = 'flash' AND id > (SELECT COALESCE(MAX(id), 0) FROM operations "
    f"WHERE persona = :persona AND kind = 'clear' AND json_extract({DETAIL}, '$.begins') IS NOT NULL))"
)


def flash(connection: Connection, persona: str, now: datetime, *, automatic: bool) -> rules.FlashReport | None:
    """Renew the scores, store a checkpoint of all active items, and archive the COLD ones.

    Without active items or, in an ``automatic`` flash save, without COLD ones, store only the scores; return ``None``.
    """
    item_rows.renew(connection, persona, now)
    items = [item for item in item_rows.listing(connection, persona) if item.tier is not Tier.ARCHIVED]
    cold = tuple(sorted(item.id for item in items if item.tier is Tier.COLD))
    if not items or (automatic and not cold):
        return None
    before = sum(item.token_count or 0 for item in items)
    after = sum(item.token_count or 0 for item in items if item.tier is not Tier.COLD)
    hot = sum(item.tier is Tier.HOT for item in items)
    (checkpoint_id,) = connection.execute(
        "INSERT INTO context_checkpoints(persona, checkpoint_data, items_count, items_archived, hot_items_retained, "
        "token_count, created_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            *(persona, rules.checkpoint_json(persona, items, now), len(items), len(cold), hot, before),
            timestamps.to_text(now),
        ),
    ).fetchone()
    act = Flash(checkpoint_id, cold)
    operation = operation_rows.introduce(connection, NewOperation(persona, act, now, automatic=automatic))
    apply(connection, persona, act, operation.id, now)
    connection.execute(
        "DELETE FROM context_checkpoints WHERE persona = :persona AND id NOT IN "
        "(SELECT id FROM context_checkpoints WHERE persona = :persona ORDER BY id DESC LIMIT :kept)",
        {"persona": persona, "kept": KEPT},
    )
    return rules.FlashReport(checkpoint_id, now, len(items), len(cold), hot, before, after)


def checkpoints(connection: Connection, persona: str) -> list[rules.FlashReport]:
    """Return the checkpoints of a persona, newest first, each with ``token_count_after`` 0."""
    found = connection.execute(
        "SELECT id, created_at, items_count, items_archived, hot_items_retained, token_count "
        f"FROM context_checkpoints WHERE {_OWN} ORDER BY id DESC",
        {"persona": persona},
    ).fetchall()
    return [rules.FlashReport(id_, timestamps.from_text(created_at), *rest) for id_, created_at, *rest in found]


def restore(connection: Connection, persona: str, checkpoint_id: int, now: datetime) -> Operation | None:
    """Bring back the items of a checkpoint that are archived and not forgotten; return ``None`` if there are none."""
    row = connection.execute(
        f"SELECT checkpoint_data FROM context_checkpoints WHERE id = :id AND {_OWN}",
        {"id": checkpoint_id, "persona": persona},
    ).fetchone()
    if row is None:
        raise MemoryItemError(f"There is no checkpoint {checkpoint_id} here. /memory checkpoints lists them.")
    held = item_rows.of_ids(connection, persona, rules.ids_in(row[0]))
    archived = [item for item in held if item.tier is Tier.ARCHIVED]
    if not archived:
        return None
    before, after = ItemState(archived=True), ItemState(archived=False)
    title = f"checkpoint {checkpoint_id}" if len(archived) > 1 else archived[0].content
    changes = tuple(ItemChange(item.id, before, after) for item in archived)
    return change(connection, persona, MemoryChange("restore", changes, shortened(title)), now)
