"""Overwriting the rows of a purge, in the transaction of its operation.

The rows of messages, memory items and summaries stay, empty, so that order, references and journal hold.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from chorus_cli.context.rules.memory import ids_held, without_forgotten
from chorus_cli.log.rows import message_rows, operation_rows, search_index
from chorus_cli.log.rows.search_index import IndexDamagedError
from chorus_cli.log.rules.acts import ACTS
from chorus_cli.log.rules.log_acts import MemoryAct, Purge, PurgedIds
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.memory.rows import item_rows
from chorus_cli.storage import meta_rows
from chorus_cli.stores import listing
from chorus_cli.stores.listing import AMONG

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from datetime import datetime

_TIERS = ("hot_items", "warm_items", "cold_items")


def overwrite(connection: sqlite3.Connection, purged: PurgedIds, now: datetime) -> None:
    """Overwrite rows, and store an operation for each persona that has some of them."""
    by_persona = _by_persona(connection, purged)
    operations = {
        persona: operation_rows.introduce(connection, NewOperation(persona, Purge(ids), now)).id
        for persona, ids in by_persona.items()
    }
    if operations:
        meta_rows.store(connection, meta_rows.NEWEST_PURGE, str(max(operations.values())))
    for persona, ids in by_persona.items():
        for store in listing.ROWS:
            store.erase(connection, getattr(ids, store.name), operations[persona])
        _check(connection, ids.messages)
        _cut_out(connection, persona, ids.items)
    _empty_indexes(connection, purged.items)


def _empty_indexes(connection: sqlite3.Connection, items: frozenset[int]) -> None:
    """Begin the full-text indexes anew: one keeps the words of a deleted row until it happens to merge them."""
    try:
        search_index.begin_anew(connection)
    except IndexDamagedError:
        search_index.begin_in_new_pages(connection)
    try:
        item_rows.remove_words(connection, items)
    except IndexDamagedError:
        item_rows.renew_words(connection)


def _by_persona(connection: sqlite3.Connection, purged: PurgedIds) -> Mapping[str, PurgedIds]:
    found: dict[str, PurgedIds] = {}
    for store in listing.ROWS:
        rows = connection.execute(
            f"SELECT persona, json_group_array(id) FROM {store.table} WHERE id {AMONG} GROUP BY persona",
            {"ids": json.dumps([*getattr(purged, store.name)])},
        ).fetchall()
        for persona, text in rows:
            own = PurgedIds(**{store.name: frozenset(json.loads(text))})
            found[persona] = found.get(persona, PurgedIds()).united(own)
    return found


def _check(connection: sqlite3.Connection, ids: frozenset[int]) -> None:
    """Give rows of messages the checksums of empty ones."""
    rows = connection.execute(
        f"SELECT id, role, thread_id, persona, timestamp FROM messages WHERE id {AMONG}", {"ids": json.dumps([*ids])}
    ).fetchall()
    connection.executemany(
        "UPDATE messages SET checksum = ? WHERE id = ?",
        [
            (message_rows.checksum(role, thread_id, persona, timestamp, ""), id_)
            for id_, role, thread_id, persona, timestamp in rows
        ],
    )


def _cut_out(connection: sqlite3.Connection, persona: str, ids: frozenset[int]) -> None:
    """Cut memory items out of checkpoints, the journal, preambles, and calls and results of tools."""
    if ids:
        _cut_out_of_checkpoints(connection, persona, ids)
        _cut_out_of_journal(connection, persona, ids)
        _cut_out_of_messages(connection, persona, ids)


def _cut_out_of_checkpoints(connection: sqlite3.Connection, persona: str, ids: frozenset[int]) -> None:
    found = connection.execute(
        "SELECT id, checkpoint_data FROM context_checkpoints WHERE persona = ?", (persona,)
    ).fetchall()
    for id_, text in found:
        try:
            document = json.loads(text)
            state = document["context_state"]
            kept = {tier: [each for each in state[tier] if each["id"] not in ids] for tier in _TIERS}
        except (ValueError, TypeError, KeyError):
            # One that cannot be read cannot be restored either.
            document, kept = {}, None
        if kept is None or any(len(kept[tier]) < len(state[tier]) for tier in _TIERS):
            written = document | ({"context_state": {**state, **kept}} if kept is not None else {})
            connection.execute(
                "UPDATE context_checkpoints SET checkpoint_data = ? WHERE id = ?",
                (json.dumps(written, ensure_ascii=False), id_),
            )


def _cut_out_of_journal(connection: sqlite3.Connection, persona: str, ids: frozenset[int]) -> None:
    """Delete the contents and first words of items from the operations that changed them."""
    kinds = json.dumps([kind for kind, act in ACTS.items() if issubclass(act, MemoryAct)])
    found = connection.execute(
        "SELECT id, detail FROM operations WHERE persona = ? AND kind IN (SELECT value FROM json_each(?))",
        (persona, kinds),
    ).fetchall()
    for id_, text in found:
        detail: dict[str, Any] = json.loads(text)
        items = detail.get("items", [])
        concerned = [each for each in items if each["id"] in ids]
        if not concerned:
            continue
        for each in concerned:
            each["before"].pop("content", None)
            each["after"].pop("content", None)
        if len(items) == 1:
            detail["title"] = ""
        connection.execute("UPDATE operations SET detail = ? WHERE id = ?", (json.dumps(detail), id_))


def _cut_out_of_messages(connection: sqlite3.Connection, persona: str, ids: frozenset[int]) -> None:
    """Cut items out of preambles, and out of the calls and results of the memory's tools."""
    candidates = connection.execute(
        "SELECT id FROM messages WHERE persona = ? AND purged_by IS NULL "
        "AND (preamble <> '' OR role IN ('tool_use', 'tool_result'))",
        (persona,),
    ).fetchall()
    rows = message_rows.rows(connection, (id_ for (id_,) in candidates))
    if ids.isdisjoint(ids_held(rows)):
        return
    cut = without_forgotten(rows, ids)
    for before, after in zip(rows, cut, strict=True):
        if before != after:
            stamp = connection.execute("SELECT timestamp FROM messages WHERE id = ?", (after.id,)).fetchone()[0]
            checked = message_rows.checksum(after.role, after.thread_id, after.persona, stamp, after.content)
            connection.execute(
                "UPDATE messages SET content = ?, preamble = ?, tool_calls = ?, token_count = NULL, checksum = ? "
                "WHERE id = ?",
                (after.content, after.preamble, after.tool_calls, checked, after.id),
            )
