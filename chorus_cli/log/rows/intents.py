"""Intents: changes of a file that rows belong to, so that a kill leaves both or neither.

An intent is committed before the file is written, and deleted in the transaction that stores the rows. Those that a
kill has left are settled at the next start, or before the next change of the kind: the file tells how far it came.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.acts import ACTS, Reversal, Window
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage.store import Connection, committed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from chorus_cli.core.json.jsonc import JsonValue

T = TypeVar("T")
_Row = tuple[int, bytes, bytes, bytes, bytes, bytes, bytes]

PERSONA = "persona"
"""The kind of the making of a persona."""

WINDOW_KINDS = frozenset({Window.kind, *(kind for kind, act in ACTS.items() if issubclass(act, Reversal))})
"""The kinds of changes of a window: ``detail`` has the act, its thread and the change itself."""


class Intent(NamedTuple):
    """A change of a file of ``persona``, with the hashes of the file ``before`` and ``after``.

    ``id`` is 0 until it is stored.
    """

    persona: str
    kind: str
    detail: Mapping[str, JsonValue]
    before: str
    after: str
    created_at: datetime
    id: int = 0


def hash_of(content: str | bytes) -> str:
    """Return the hash of a file with this content."""
    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def carry_out(connection: Connection, intent: Intent, present: Callable[[], str], work: Callable[[Connection], T]) -> T:
    """Commit the intent, and then ``work``, which writes the file and stores the rows, with the end of the intent.

    If that fails, the intent is withdrawn; but if the file is not as before, by its ``present`` hash, it is left to be
    settled.
    """
    row = (
        *(intent.persona, intent.kind, json.dumps(dict(intent.detail))),
        *(intent.before, intent.after, timestamps.to_text(intent.created_at)),
    )
    insert = "INSERT INTO intents(persona, kind, detail, before, after, created_at) VALUES (?, ?, ?, ?, ?, ?)"
    id_ = committed(connection, lambda c: int(c.execute(insert, row).lastrowid or 0))

    def finish(connection: Connection) -> T:
        end(connection, id_)
        return work(connection)

    try:
        return committed(connection, finish)
    except BaseException:
        # The first failure is told; an intent that is left is settled later.
        with suppress(sqlite3.Error, OSError):
            if present() == intent.before:
                committed(connection, lambda c: end(c, id_))
        raise


def unfinished(connection: sqlite3.Connection, persona: str | None = None) -> list[Intent]:
    """Return the intents of a persona, or of all, oldest first; damaged ones are left out."""
    found = (_read(row) for row in _rows(connection))
    return [intent for intent in found if intent is not None and persona in {None, intent.persona}]


def damaged(connection: sqlite3.Connection) -> list[int]:
    """Return the ids of the intents that cannot be read, and so not be settled."""
    return [row[0] for row in _rows(connection) if _read(row) is None]


def _rows(connection: sqlite3.Connection) -> list[_Row]:
    # As bytes: text that is no UTF-8 would hide the other rows.
    columns = ", ".join(
        f"CAST({name} AS BLOB)" for name in ("persona", "kind", "detail", "before", "after", "created_at")
    )
    return connection.execute(f"SELECT id, {columns} FROM intents ORDER BY id").fetchall()


def _read(row: _Row) -> Intent | None:
    id_, *texts = row
    try:
        persona, kind, written, before, after, created_at = (text.decode() for text in texts)
        detail = json.loads(written)
        moment = timestamps.from_text(created_at)
        if kind in WINDOW_KINDS:
            Window(*detail["change"])
            NewOperation(persona, ACTS[kind].from_detail(detail["act"], ()), moment, detail["thread"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    is_known = isinstance(detail, dict) and kind in {PERSONA, *WINDOW_KINDS}
    return Intent(persona, kind, detail, before, after, moment, id_) if is_known else None


def end(connection: sqlite3.Connection, id_: int) -> None:
    """Delete an intent: it is carried out, or never will be."""
    connection.execute("DELETE FROM intents WHERE id = ?", (id_,))
