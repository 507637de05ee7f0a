"""The tables that a copy of a log has, in the order in which their rows can be stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from typing import NamedTuple

from chorus_cli.storage import migrations
from chorus_cli.stores.rules.references import CHECKPOINTS, ITEMS, MESSAGES, OPERATIONS, SUMMARIES, THREADS

CONVERSATIONS, SESSIONS = "imported_conversations", "sessions"

_ID = ("id",)


class Table(NamedTuple):
    """A table, and the columns of its primary ``key``.

    A row of another log is the same row if its columns of the ``identity`` are the same; a table
    without an identity compares keys. ``references`` are the columns with ids of other tables. ``places`` are the
    references that mean a place in the log: if the row with that id is missing, the place is after the row before it.
    A log computes the ``computed`` columns for itself.
    """

    name: str
    key: tuple[str, ...] = _ID
    identity: str = ""
    references: Mapping[str, str] = {}
    places: tuple[str, ...] = ()
    computed: tuple[str, ...] = ("token_count",)

    @property
    def has_id(self) -> bool:
        """Whether each row has an id, which may differ in another log."""
        return self.key == _ID

    @property
    def needed(self) -> list[str]:
        """The references without which a row is not copied; into a log with other rows it also needs its thread."""
        return [each for each in self.references if each in {"operation_id", "conversation_id", "message_id"}]


_ORIGIN = "origin, origin_seq"
TABLES = (
    Table(THREADS, identity="persona, created_at"),
    Table(OPERATIONS, identity=f"persona, {_ORIGIN}, created_at", references={"thread_id": THREADS}),
    Table(
        MESSAGES,
        # Of two logs that went on from one copy, each may have given the same number to a message of its own.
        identity=f"{_ORIGIN}, role, (SELECT timestamp FROM messages AS asked "
        "WHERE asked.id = COALESCE(messages.turn_id, messages.id))",
        references={
            "thread_id": THREADS,
            **dict.fromkeys(("turn_id", "revises", "reply_id"), MESSAGES),
            **dict.fromkeys(("introduced_by", "purged_by"), OPERATIONS),
        },
        places=("purged_by",),
    ),
    Table("operation_members", ("operation_id", "position"),
          references={"operation_id": OPERATIONS, "message_id": MESSAGES}),
    Table(
        SUMMARIES,
        identity=_ORIGIN,
        references={
            "thread_id": THREADS,
            **dict.fromkeys(("operation_id", "base_operation_id"), OPERATIONS),
            **dict.fromkeys(("first_message_id", "through_message_id"), MESSAGES),
        },
        places=("first_message_id", "through_message_id"),
    ),
    Table(SESSIONS, ("persona", "session_id"), references={"through_message_id": MESSAGES},
          places=("through_message_id",)),
    Table(
        ITEMS,
        identity=_ORIGIN,
        references={
            "source_message_id": MESSAGES,
            **dict.fromkeys(("forgotten_by", "purged_by"), OPERATIONS),
            **dict.fromkeys(("replaced_by", "may_replace"), ITEMS),
        },
        places=("forgotten_by", "purged_by"),
        computed=("token_count", "importance_score", "tier", "access_count", "last_accessed", "created_at"),
    ),
    Table(CHECKPOINTS, identity="persona, created_at"),
    Table(CONVERSATIONS, identity="persona, source, conversation",
          references={"thread_id": THREADS, "operation_id": OPERATIONS}),
    Table("imported_messages", ("conversation_id", "message"),
          references={"conversation_id": CONVERSATIONS, "message_id": MESSAGES}),
    Table("other_requests", identity="persona, timestamp, purpose, usage", references={"thread_id": THREADS}),
)  # fmt: skip


@cache
def columns() -> Mapping[str, tuple[str, ...]]:
    """Return the columns of each table, as all migrations have made it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        migrations.migrate(memory)
        reading = "SELECT name FROM pragma_table_info(?)"
        return {each.name: tuple(name for (name,) in memory.execute(reading, (each.name,))) for each in TABLES}
