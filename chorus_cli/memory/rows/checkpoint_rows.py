"""Flash saves: the checkpoint, the archived items and the operation are stored in one transaction.

The last ten checkpoints of a persona are kept. The operation has the ids of the archived items too, so that an undo
outlives its checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import MemoryItemError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.memory_acts import Flash, ItemChange, ItemState, MemoryChange
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.memory.rows import item_changes, item_rows
from chorus_cli.memory.rules.checkpoint import FlashReport, checkpoint_json, read_checkpoint
from chorus_cli.memory.rules.items import Tier

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

KEPT = 10
# Those of an earlier persona of the same folder are not listed.
_OWN = (
    "persona = :persona AND id IN (SELECT json_extract(detail, '$.checkpoint') FROM operations "
    "WHERE persona = :persona AND kind = 'flash' AND id > (SELECT COALESCE(MAX(id), 0) FROM operations "
    "WHERE persona = :persona AND kind = 'clear' AND json_extract(detail, '$.begins')))"
)


class CheckpointRow(NamedTuple):
    """A checkpoint without its items; ``token_count`` is that of the active items before the flash save."""

    id: int
    created_at: datetime
    items_count: int
    items_archived: int
    hot_items_retained: int
    token_count: int


class FlashSave(NamedTuple):
    """A flash save: its operation, and the report for the user."""

    operation: Operation
    report: FlashReport


def flash(connection: sqlite3.Connection, persona: str, now: datetime, *, automatic: bool) -> FlashSave | None:
    """Renew the scores, store a checkpoint of all active items, and archive the COLD ones.

    ``None`` if the memory is empty or, for an automatic one, if there is no COLD item; then nothing was stored.
    """
    item_rows.renew(connection, persona, now)
    items = [item for item in item_rows.listing(connection, persona) if item.tier is not Tier.ARCHIVED]
    cold = tuple(sorted(item.id for item in items if item.tier is Tier.COLD))
    if not items or (automatic and not cold):
        return None
    before = sum(item.token_count or 0 for item in items)
    after = sum(item.token_count or 0 for item in items if item.tier is not Tier.COLD)
    hot = sum(item.tier is Tier.HOT for item in items)
    cursor = connection.execute(
        "INSERT INTO context_checkpoints(persona, checkpoint_data, items_count, items_archived, hot_items_retained, "
        "token_count, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            *(persona, checkpoint_json(persona, items, now), len(items), len(cold), hot, before),
            timestamps.to_text(now),
        ),
    )
    checkpoint_id = int(cursor.lastrowid or 0)
    act = Flash(checkpoint_id, cold)
    operation = operation_rows.introduce(connection, NewOperation(persona, act, now, automatic=automatic))
    item_changes.apply(connection, persona, act, operation.id, now)
    _keep_the_last(connection, persona)
    return FlashSave(operation, FlashReport(checkpoint_id, persona, len(items), len(cold), hot, before, after, now))


def checkpoints(connection: sqlite3.Connection, persona: str) -> list[CheckpointRow]:
    """Return the checkpoints of a persona, newest first."""
    found = connection.execute(
        "SELECT id, created_at, items_count, items_archived, hot_items_retained, token_count "
        f"FROM context_checkpoints WHERE {_OWN} ORDER BY id DESC",
        {"persona": persona},
    ).fetchall()
    return [CheckpointRow(id_, timestamps.from_text(created_at), *rest) for id_, created_at, *rest in found]


def restore(connection: sqlite3.Connection, persona: str, checkpoint_id: int, now: datetime) -> Operation | None:
    """Bring back the items of a checkpoint that are archived now; ``None`` if there are none.

    Forgotten items stay hidden.

    Raises:
        MemoryItemError: there is no such checkpoint, or it cannot be read.
    """
    row = connection.execute(
        f"SELECT checkpoint_data FROM context_checkpoints WHERE id = :id AND {_OWN}",
        {"id": checkpoint_id, "persona": persona},
    ).fetchone()
    if row is None:
        raise MemoryItemError(f"There is no checkpoint {checkpoint_id} here. /memory checkpoints lists them.")
    held = read_checkpoint(row[0])
    ids = {item.id for item in (*held.hot, *held.warm, *held.cold)}
    archived = [item for item in item_rows.of_ids(connection, persona, ids) if item.tier is Tier.ARCHIVED]
    if not archived:
        return None
    before, after = ItemState(archived=True), ItemState(archived=False)
    title = f"checkpoint {checkpoint_id}" if len(archived) > 1 else archived[0].content
    changes = tuple(ItemChange(item.id, before, after) for item in archived)
    return item_changes.change(connection, persona, MemoryChange("restore", changes, shortened(title)), now)


def _keep_the_last(connection: sqlite3.Connection, persona: str) -> None:
    connection.execute(
        "DELETE FROM context_checkpoints WHERE persona = :persona AND id NOT IN "
        "(SELECT id FROM context_checkpoints WHERE persona = :persona ORDER BY id DESC LIMIT :kept)",
        {"persona": persona, "kept": KEPT},
    )
